#include "planner/operators/lower_bound.h"

#include <algorithm>
#include <boost/dynamic_bitset.hpp>
#include <cmath>
#include <limits>
#include <numeric>

namespace frostpipe {
namespace {

using OperatorSet = boost::dynamic_bitset<>;
using Weights = std::vector<double>;

constexpr int kWeightRounds = 200;

double weighted_time(const std::vector<double>& times, const Weights& weights) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t d = 0; d < times.size(); ++d) least = std::min(least, weights[d] * times[d]);
  return least;
}

/// By multiplicative weights: a device that would get more than its part becomes dearer. Any weights are a bound.
Weights best_weights(const std::vector<std::vector<double>>& times) {
  const std::size_t num_devices = times.front().size();
  Weights weights(num_devices, 1.0 / static_cast<double>(num_devices)), best = weights;
  double most = 0;
  for (int round = 0; round < kWeightRounds; ++round) {
    std::vector<double> load(num_devices);
    double bound = 0;
    for (const auto& of_devices : times) {
      std::size_t cheapest = 0;
      for (std::size_t d = 1; d < num_devices; ++d)
        if (weights[d] * of_devices[d] < weights[cheapest] * of_devices[cheapest]) cheapest = d;
      load[cheapest] += of_devices[cheapest];
      bound += weights[cheapest] * of_devices[cheapest];
    }
    if (bound > most) most = bound, best = weights;
    const double largest = *std::ranges::max_element(load);
    if (largest <= 0) break;
    double sum = 0;
    for (std::size_t d = 0; d < num_devices; ++d) {
      weights[d] *= std::exp((load[d] / largest) / (2 + 0.5 * round));
      sum += weights[d];
    }
    for (double& weight : weights) weight /= sum;
  }
  return best;
}

/// Where devices differ by a factor alone: by their speeds.
Weights speed_weights(const OperatorProblem& problem) {
  Weights weights = speeds_of(problem);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

double work_in(const OperatorSet& set, const std::vector<double>& work) {
  double sum = 0;
  for (auto op = set.find_first(); op != OperatorSet::npos; op = set.find_next(op)) sum += work[op];
  return sum;
}

bool is_barrier(const OperatorGraph& graph, int op) {
  const auto kind = graph.operators[op].kind;
  if (kind != OperatorKind::statistics && kind != OperatorKind::statistics_gradient) return false;
  return std::ranges::all_of(graph.edges, [&](const OperatorEdge& edge) {
    return edge.from != op || edge.kind == OperatorEdgeKind::statistics;
  });
}

/// The longest chain of work between barriers. `work` is each operator's, weighted.
double barrier_bound(const OperatorGraph& graph, const std::vector<int>& order, const std::vector<double>& work) {
  const std::size_t count = graph.operators.size();
  std::vector<OperatorSet> before(count, OperatorSet(count)), after(count, OperatorSet(count));  // with itself
  std::vector<std::vector<int>> inputs(count), readers(count);
  for (const auto& edge : graph.edges) inputs[edge.to].push_back(edge.from), readers[edge.from].push_back(edge.to);
  for (const int op : order) {
    before[op].set(op);
    for (const int input : inputs[op]) before[op] |= before[input];
  }
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    after[*op].set(*op);
    for (const int reader : readers[*op]) after[*op] |= after[reader];
  }
  double most = std::accumulate(work.begin(), work.end(), 0.0);
  std::vector<std::pair<int, double>> ends;  // barriers so far, and before which time none can have ended
  for (const int op : order) {
    if (!is_barrier(graph, op)) continue;
    double end = work_in(before[op], work);
    for (const auto& [barrier, barrier_end] : ends)
      if (before[op].test(barrier)) {
        auto between = before[op] & after[barrier];
        between.reset(barrier);
        end = std::max(end, barrier_end + work_in(between, work));
      }
    ends.emplace_back(op, end);
    auto rest = after[op];
    rest.reset(op);
    most = std::max(most, end + work_in(rest, work));
  }
  return most;
}

double sample_bound(const OperatorProblem& problem, const std::vector<int>& order) {
  const auto& graph = problem.graph;
  std::vector<double> end(graph.operators.size());
  std::vector<std::vector<int>> inputs(end.size());
  for (const auto& edge : graph.edges) inputs[edge.to].push_back(edge.from);
  double most = 0;
  for (const int op : order) {
    for (const int input : inputs[op]) end[op] = std::max(end[op], end[input]);
    const Operator& one = graph.operators[op];
    const auto times = time_on_devices(problem, one), work = work_on_devices(problem, one);
    const double most_parts = one.kind == OperatorKind::update        ? static_cast<double>(times.size())
                              : one.kind == OperatorKind::norm_update ? 1
                                                                      : graph.batch;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t d = 0; d < times.size(); ++d) least = std::min(least, times[d] - work[d] + work[d] / most_parts);
    end[op] += least;
    most = std::max(most, end[op]);
  }
  return most;
}

}  // namespace

Nanoseconds operator_lower_bound_ns(const OperatorProblem& problem) {
  const auto order = topological_order(problem.graph);
  std::vector<std::vector<double>> times;
  for (const auto& one : problem.graph.operators) times.push_back(time_on_devices(problem, one));
  double bound = sample_bound(problem, order);
  for (const Weights& weights : {best_weights(times), speed_weights(problem)}) {
    std::vector<double> work;
    for (const auto& of_devices : times) work.push_back(weighted_time(of_devices, weights));
    bound = std::max(bound, barrier_bound(problem.graph, order, work));
  }
  // Shares of samples are exact, sums of doubles are not.
  return static_cast<Nanoseconds>(std::floor(bound * (1 - 1e-9)));
}

}  // namespace frostpipe
