#include "tests/operators/planner/brute_force.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/operators/planner/order_search.h"

namespace frostpipe {
namespace {

using Times = std::vector<double>;

class PlacementSearch {
 public:
  PlacementSearch(const OperatorProblem& problem, Nanoseconds below_ns)
      : problem_(problem),
        candidates_(candidate_ranges(problem)),
        begun_{.net = problem.graph.net, .batch = problem.graph.batch},
        best_ns_(below_ns) {
    const std::size_t count = problem.graph.operators.size();
    from_begin_.resize(count + 1);
    for (std::size_t op = count; op-- > 0;) {
      for (const auto& edge : problem.graph.edges)
        if (edge.from == static_cast<int>(op)) from_begin_[op] = std::max(from_begin_[op], from_begin_[edge.to]);
      from_begin_[op] += least_part_ns(problem.graph.operators[op]);
    }
    const Times speeds = speeds_of(problem);
    weights_ = {speeds, Times(speeds.size(), 1)};
    for (Times& weights : weights_) {
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (double& weight : weights) weight /= sum;
      auto& rest = rest_of_.emplace_back(count + 1);
      for (std::size_t op = count; op-- > 0;)
        rest[op] = rest[op + 1] + least_load(problem.graph.operators[op], weights);
    }
  }

  Nanoseconds best_ns() {
    place(0);
    return best_ns_;
  }

 private:
  /// Whether any part of the operator is on the device.
  double least_part_ns(const Operator& one) const {
    const Times times = time_on_devices(problem_, one), work = work_on_devices(problem_, one);
    const int max_parts = is_split_by_samples(one.kind) ? problem_.graph.batch : static_cast<int>(times.size());
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t d = 0; d < times.size(); ++d) least = std::min(least, times[d] - work[d] + work[d] / max_parts);
    return least;
  }

  double least_load(const Operator& one, const Times& weights) const {
    const Times times = time_on_devices(problem_, one);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t d = 0; d < times.size(); ++d) least = std::min(least, weights[d] * times[d]);
    return least;
  }

  void place(std::size_t op) {
    const auto tasks = tasks_of(begun_, problem_.machine, placement_);
    if (!can_be_better(tasks, op)) return;
    if (op == problem_.graph.operators.size()) {
      best_ns_ = best_order_ns(tasks, problem_.machine, best_ns_);
      return;
    }
    const std::size_t num_edges = begun_.edges.size();
    begun_.operators.push_back(problem_.graph.operators[op]);
    for (const auto& edge : problem_.graph.edges)
      if (edge.to == static_cast<int>(op)) begun_.edges.push_back(edge);
    const bool is_split = is_split_by_samples(problem_.graph.operators[op].kind);
    for (const auto& ranges : is_split ? candidates_ : OperatorPlacement{{}}) {
      placement_.push_back(ranges);
      place(op + 1);
      placement_.pop_back();
    }
    begun_.edges.resize(num_edges);
    begun_.operators.pop_back();
  }

  /// A lower bound from the placed operators, and the least that the operators from `op` on can add.
  bool can_be_better(const OperatorTasks& tasks, std::size_t op) const {
    const auto best = static_cast<double>(best_ns_);
    const LongestWays ways = longest_ways(tasks, problem_.machine);
    Times loads(problem_.machine.devices.size());
    for (std::size_t task = 0; task < tasks.tasks.size(); ++task) {
      loads[tasks.tasks[task].device] += static_cast<double>(tasks.tasks[task].duration_ns);
      double after = 0;
      for (const auto& edge : problem_.graph.edges)
        if (edge.from == tasks.tasks[task].op && edge.to >= static_cast<int>(op))
          after = std::max(after, from_begin_[edge.to]);
      if (static_cast<double>(ways.until_end[task]) + after >= best) return false;
    }
    if (std::ranges::max(loads) >= best) return false;
    for (std::size_t i = 0; i < weights_.size(); ++i)
      if (std::inner_product(loads.begin(), loads.end(), weights_[i].begin(), rest_of_[i][op]) >= best) return false;
    return true;
  }

  const OperatorProblem& problem_;
  std::vector<std::vector<OperatorRange>> candidates_;
  std::vector<double> from_begin_;  // by operator: the least time from its start to the end of the iteration
  std::vector<Times> weights_;      // of devices: the mean of their loads is no more than the longest
  std::vector<Times> rest_of_;      // by weights and operator: the least mean load of it and of the following ones
  OperatorGraph begun_;             // the operators that are placed
  OperatorPlacement placement_;
  Nanoseconds best_ns_;
};

}  // namespace

std::vector<std::vector<OperatorRange>> candidate_ranges(const OperatorProblem& problem) {
  const auto speeds = speeds_of(problem);
  std::vector<int> devices(speeds.size());
  std::iota(devices.begin(), devices.end(), 0);
  std::vector<std::vector<OperatorRange>> candidates;
  for (const int device : devices) candidates.push_back(whole_on(problem, device));
  const auto over_all = ranges_over(problem, devices, speeds);
  if (std::ranges::find(candidates, over_all) == candidates.end()) candidates.push_back(over_all);
  return candidates;
}

Nanoseconds best_by_brute_force(const OperatorProblem& problem, Nanoseconds below_ns) {
  return PlacementSearch(problem, below_ns).best_ns();
}

}  // namespace frostpipe
