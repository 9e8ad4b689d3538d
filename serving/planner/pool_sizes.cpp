#include "serving/planner/pool_sizes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "serving/planner/milp.h"

namespace frostpipe {
namespace {

constexpr double kGap = 1e-5;
/// Limits that suffice to prove the plans of PPipe's artifact optimal. An iteration's time grows with the number of
/// rows and columns, so large programs get fewer iterations.
constexpr int kMaxNodes = 200'000;
constexpr double kMaxWork = 1e8;  // iterations x columns; about 50 s

/// The columns of one candidate. A pipeline of one pool needs no throughput column, since its throughput is rate x
/// size.
struct CandidateColumns {
  int used = 0;
  std::vector<int> sizes;
  std::optional<int> throughput;
};

/// The linear program. Throughputs are divided by unit_ x weight, so that all columns are of order one.
class LinearProgram {
 public:
  LinearProgram(const PoolProblem& problem, const PoolSizes& start) : problem_(problem), start_(start) {
    const bool for_throughput = problem.objective == ServingObjective::throughput;
    unit_ = for_throughput ? start.value : 1;
    milp_.maximize = for_throughput;
    max_ = for_throughput ? add_column(0, max_value(), 1, false) : -1;
    for (std::size_t n = 0; n < problem.models.size(); ++n) add_model(n);
    for (std::size_t k = 0; k < problem.num_devices.size(); ++k) {
      MilpRow row{.lower = -kUnbounded, .upper = static_cast<double>(problem.num_devices[k])};
      for (const auto& [place, column] : devices_)
        if (place.device_class == static_cast<int>(k)) row.terms.emplace_back(column, 1);
      milp_.rows.push_back(row);
    }
    if (!start.pipelines.empty()) set_start();
  }

  std::optional<PoolSizes> solve() const {
    const double iterations = kMaxWork / static_cast<double>(milp_.columns.size());
    const auto solution =
        frostpipe::solve(milp_, kGap, {.nodes = kMaxNodes, .iterations = static_cast<int>(std::min(iterations, 1e9))});
    if (!solution) return std::nullopt;
    PoolSizes result{.pipelines = std::vector<std::vector<SizedPipeline>>(problem_.models.size()),
                     .bound = solution->bound * unit_};
    for (std::size_t n = 0; n < problem_.models.size(); ++n) {
      for (std::size_t c = 0; c < columns_[n].size(); ++c) {
        SizedPipeline pipeline{.candidate = static_cast<int>(c)};
        for (const int column : columns_[n][c].sizes)
          pipeline.sizes.push_back(static_cast<int>(solution->values[column]));
        if (std::ranges::all_of(pipeline.sizes, [](int size) { return size > 0; }))
          result.pipelines[n].push_back(std::move(pipeline));
      }
    }
    return result;
  }

 private:
  struct Place {
    std::size_t model;
    std::size_t place;
    int device_class;
    auto operator<=>(const Place&) const = default;
  };

  int add_column(double lower, double upper, double objective, bool is_integer) {
    milp_.columns.push_back({lower, upper, objective, is_integer});
    return static_cast<int>(milp_.columns.size()) - 1;
  }

  double scale(std::size_t n) const { return problem_.models[n].weight * unit_; }

  /// Returns the throughput of a pipeline with all devices to itself, in scaled units.
  double most_of(std::size_t n, const CandidatePipeline& candidate) const {
    double most = std::numeric_limits<double>::infinity();
    for (const auto& pool : candidate.pools)
      most = std::min(most, pool.requests_per_second * problem_.num_devices[pool.device_class] * pool.share / scale(n));
    return most;
  }

  double max_value() const {
    double most = std::numeric_limits<double>::infinity();
    for (std::size_t n = 0; n < problem_.models.size(); ++n) {
      double of_model = 0;
      for (const auto& candidate : problem_.models[n].candidates) of_model += most_of(n, candidate);
      most = std::min(most, of_model);
    }
    return most;
  }

  void add_model(std::size_t n) {
    const auto& [weight, required, candidates] = problem_.models[n];
    auto& columns = columns_.emplace_back();
    MilpRow throughput{.lower = 0, .upper = kUnbounded};
    if (max_ >= 0)
      throughput.terms.emplace_back(max_, -1);
    else
      throughput.lower = required / scale(n);
    std::map<Place, MilpRow> used;
    std::map<std::vector<int>, MilpRow> sequences;
    for (const auto& candidate : candidates) {
      columns.push_back(add_candidate(n, candidate, throughput));
      std::vector<int> classes;
      for (std::size_t place = 0; place < candidate.pools.size(); ++place) {
        const CandidatePool& pool = candidate.pools[place];
        used[{n, place, pool.device_class}].terms.emplace_back(columns.back().sizes[place], 1.0 / pool.share);
        classes.push_back(pool.device_class);
        sequences[classes].terms.emplace_back(columns.back().used, 1);
      }
    }
    milp_.rows.push_back(std::move(throughput));
    for (auto& [place, row] : used) add_devices(place, row);
    for (auto& [classes, row] : sequences) {
      row.lower = -kUnbounded;
      row.upper = std::pow(static_cast<double>(problem_.num_devices.size()),
                           problem_.max_partitions - static_cast<double>(classes.size()));
      milp_.rows.push_back(std::move(row));
    }
  }

  /// Adds the number of whole devices that the virtual devices of a place use.
  void add_devices(const Place& place, MilpRow& row) {
    const double price = milp_.maximize ? 0 : problem_.prices[place.device_class];
    const int devices = add_column(0, problem_.num_devices[place.device_class], price, true);
    devices_.emplace(place, devices);
    row.terms.emplace_back(devices, -1);
    row.lower = -kUnbounded;
    row.upper = 0;
    milp_.rows.push_back(std::move(row));
  }

  CandidateColumns add_candidate(std::size_t n, const CandidatePipeline& candidate, MilpRow& throughput) {
    CandidateColumns columns{.used = add_column(0, 1, 0, true)};
    const double most = most_of(n, candidate);
    if (candidate.pools.size() > 1) {
      columns.throughput = add_column(0, most, 0, false);
      throughput.terms.emplace_back(*columns.throughput, 1);
      milp_.rows.push_back(
          {.terms = {{*columns.throughput, 1}, {columns.used, -most}}, .lower = -kUnbounded, .upper = 0});
    }
    for (const auto& pool : candidate.pools) {
      const double rate = pool.requests_per_second / scale(n);
      const double largest =
          std::min<double>(problem_.num_devices[pool.device_class] * pool.share, std::ceil(most / rate - 1e-9));
      const int size = add_column(0, largest, 0, true);
      columns.sizes.push_back(size);
      milp_.rows.push_back({.terms = {{size, 1}, {columns.used, -largest}}, .lower = -kUnbounded, .upper = 0});
      if (columns.throughput)
        milp_.rows.push_back({.terms = {{*columns.throughput, 1}, {size, -rate}}, .lower = -kUnbounded, .upper = 0});
      else
        throughput.terms.emplace_back(size, rate);
    }
    return columns;
  }

  void set_start() {
    auto& values = milp_.start;
    values.assign(milp_.columns.size(), 0);
    if (max_ >= 0) values[max_] = 1;
    for (std::size_t n = 0; n < problem_.models.size(); ++n) {
      std::map<Place, double> used;
      for (const auto& [index, sizes] : start_.pipelines[n]) {
        const auto& candidate = problem_.models[n].candidates[index];
        const auto& columns = columns_[n][index];
        values[columns.used] = 1;
        const double through = requests_per_second(candidate, sizes);
        if (columns.throughput) values[*columns.throughput] = through / scale(n);
        for (std::size_t place = 0; place < sizes.size(); ++place) {
          values[columns.sizes[place]] = sizes[place];
          used[{n, place, candidate.pools[place].device_class}] +=
              static_cast<double>(sizes[place]) / candidate.pools[place].share;
        }
      }
      for (const auto& [place, devices] : used) values[devices_.at(place)] = std::ceil(devices - 1e-9);
    }
  }

  const PoolProblem& problem_;
  const PoolSizes& start_;
  double unit_ = 1;
  Milp milp_;
  int max_ = -1;  // column of the objective
  std::vector<std::vector<CandidateColumns>> columns_;
  std::map<Place, int> devices_;
};

double value_of(const PoolProblem& problem, const PoolSizes& sizes) {
  double cost = 0, least = std::numeric_limits<double>::infinity();
  for (std::size_t n = 0; n < problem.models.size(); ++n) {
    const auto& [weight, required, candidates] = problem.models[n];
    double sum = 0;
    for (const auto& [index, of_pools] : sizes.pipelines[n]) sum += requests_per_second(candidates[index], of_pools);
    least = std::min(least, sum / weight);
    if (problem.objective == ServingObjective::cost)
      for (std::size_t k = 0; k < problem.num_devices.size(); ++k)
        cost += problem.prices[k] * devices_of(sizes.pipelines[n], candidates, static_cast<int>(k));
  }
  return problem.objective == ServingObjective::cost ? cost : least;
}

/// Removes surplus virtual devices: a pool needs no more throughput than its pipeline's slowest pool, which the search
/// does not enforce.
void trim(const PoolProblem& problem, PoolSizes& sizes) {
  for (std::size_t n = 0; n < problem.models.size(); ++n) {
    for (auto& [index, of_pools] : sizes.pipelines[n]) {
      const auto& candidate = problem.models[n].candidates[index];
      const double slowest = requests_per_second(candidate, of_pools);
      for (std::size_t i = 0; i < of_pools.size(); ++i)
        of_pools[i] = std::max(1, static_cast<int>(std::ceil(slowest / candidate.pools[i].requests_per_second - 1e-9)));
    }
  }
}

}  // namespace

double requests_per_second(const CandidatePipeline& candidate, const std::vector<int>& sizes) {
  double slowest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < sizes.size(); ++i)
    slowest = std::min(slowest, candidate.pools[i].requests_per_second * sizes[i]);
  return slowest;
}

int devices_of(const std::vector<SizedPipeline>& pipelines, const std::vector<CandidatePipeline>& candidates,
               int device_class) {
  std::int64_t parts = 1;
  for (const auto& pipeline : pipelines)
    for (const auto& pool : candidates[pipeline.candidate].pools) parts = std::lcm(parts, std::int64_t{pool.share});
  std::map<std::size_t, std::int64_t> used;
  for (const auto& pipeline : pipelines) {
    const auto& pools = candidates[pipeline.candidate].pools;
    for (std::size_t place = 0; place < pools.size(); ++place)
      if (pools[place].device_class == device_class)
        used[place] += pipeline.sizes[place] * (parts / pools[place].share);
  }
  std::int64_t devices = 0;
  for (const auto& [place, of_place] : used) devices += (of_place + parts - 1) / parts;
  return static_cast<int>(devices);
}

std::optional<PoolSizes> size_pools(const PoolProblem& problem) {
  const auto start = size_single_pipelines(problem);
  if (!start && problem.objective == ServingObjective::throughput) return std::nullopt;
  auto sizes = LinearProgram(problem, start.value_or(PoolSizes{})).solve();
  if (!sizes) return std::nullopt;
  trim(problem, *sizes);
  sizes->value = value_of(problem, *sizes);
  return sizes;
}

}  // namespace frostpipe
