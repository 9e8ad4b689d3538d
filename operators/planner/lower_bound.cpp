#include "operators/planner/lower_bound.h"

#include <algorithm>
#include <boost/dynamic_bitset.hpp>
#include <cmath>

#include "operators/planner/mean_part.h"

namespace frostpipe {
namespace {

using OperatorSet = boost::dynamic_bitset<>;
using Weights = std::vector<double>;

constexpr int kWeightRounds = 200;

double weighted_time(const std::vector<double>& times, const Weights& weights) {
  double least = weights[0] * times[0];
  for (std::size_t d = 1; d < times.size(); ++d) least = std::min(least, weights[d] * times[d]);
  return least;
}

/// Improves the weights by the method of multiplicative weights: in each round, the weight of a device that gets more
/// than its part grows. Any weights give a valid bound.
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

/// Returns weights in proportion to the devices' speeds, which are best if the times of devices differ only by a
/// factor.
Weights speed_weights(const OperatorProblem& problem) {
  Weights weights = speeds_of(problem);
  double sum = 0;
  for (const double weight : weights) sum += weight;
  for (double& weight : weights) weight /= sum;
  return weights;
}

bool is_barrier(const OperatorGraph& graph, int op) {
  const auto kind = graph.operators[op].kind;
  if (kind != OperatorKind::statistics && kind != OperatorKind::statistics_gradient) return false;
  return std::ranges::all_of(graph.edges, [&](const OperatorEdge& edge) {
    return edge.from != op || edge.kind == OperatorEdgeKind::statistics;
  });
}

/// An operator of kind statistics or statistics_gradient. For `wait` nanoseconds after its end, all devices but one
/// cannot begin anything that follows.
struct Barrier {
  int op = 0;
  double wait = 0;
};

class LowerBound {
 public:
  explicit LowerBound(const OperatorProblem& problem) : problem_(problem), graph_(problem.graph) {
    const std::size_t count = graph_.operators.size();
    before_.assign(count, OperatorSet(count));
    after_ = before_;
    inputs_.resize(count);
    for (const auto& edge : graph_.edges) inputs_[edge.to].push_back(edge);
    std::vector<std::vector<double>> times;
    for (const auto& one : graph_.operators) times.push_back(time_on_devices(problem, one));
    for (const Weights& weights : {best_weights(times), speed_weights(problem)}) {
      max_weight_.push_back(*std::ranges::max_element(weights));
      auto& work = work_.emplace_back();
      for (const auto& of_devices : times) work.push_back(weighted_time(of_devices, weights));
    }
  }

  double most() {
    const auto order = topological_order(graph_);
    find_sets(order);
    end_.resize(order.size());
    double most = time_of(OperatorSet(order.size()).set(), 0);
    for (const int op : order) {
      end_[op] = end_of_path(op);
      if (is_barrier(graph_, op)) most = std::max(most, add_barrier(op));
      most = std::max(most, end_[op]);
    }
    return most;
  }

 private:
  void find_sets(const std::vector<int>& order) {
    for (const int op : order) {
      before_[op].set(op);
      for (const auto& edge : inputs_[op]) before_[op] |= before_[edge.from];
    }
    for (auto op = order.rbegin(); op != order.rend(); ++op) {
      after_[*op].set(*op);
      for (const auto& edge : inputs_[*op]) after_[edge.from] |= after_[*op];
    }
  }

  /// Returns a bound on the end of an operator by the path to it: on the mean end of its parts if another operator
  /// reads its samples, else on the end of the last part. An operator whose samples are read is no barrier.
  double end_of_path(int op) const {
    const Operator& one = graph_.operators[op];
    double end = least_mean_part(problem_, one);
    for (const auto& edge : inputs_[op]) {
      const Operator& read = graph_.operators[edge.from];
      end = std::max(
          end, end_[edge.from] + (edge.kind == OperatorEdgeKind::samples ? least_mean_part(problem_, one)
                                                                         : least_mean_part_after(problem_, one, read)));
    }
    return end;
  }

  /// Raises the end of a barrier to the bound by the work before it. Returns a bound on the whole iteration, which adds
  /// the work after it.
  double add_barrier(int op) {
    double& end = end_[op];
    end = std::max(end, time_of(before_[op], 0));
    for (const Barrier& barrier : barriers_)
      if (before_[op].test(barrier.op)) {
        auto between = before_[op] & after_[barrier.op];
        between.reset(barrier.op);
        end = std::max(end, end_[barrier.op] + time_of(between, barrier.wait));
      }
    auto rest = after_[op];
    rest.reset(op);
    barriers_.push_back({.op = op, .wait = wait_after(op, rest)});
    return end + time_of(rest, barriers_.back().wait);
  }

  /// Returns for how long at least all devices wait, except the one on which the last part of the statistics ended.
  /// They begin when a message has brought these statistics, or the output of an operator that reads them.
  double wait_after(int op, const OperatorSet& rest) const {
    double wait = least_message(problem_.machine, graph_.operators[op].output_bytes);
    const double latency = least_message(problem_.machine, 0);
    for (auto later = rest.find_first(); later != OperatorSet::npos; later = rest.find_next(later)) {
      const Operator& one = graph_.operators[later];
      if (is_split_by_samples(one.kind)) wait = std::min(wait, latency + least_part(problem_, one));
    }
    return wait;
  }

  /// Returns a bound on the time in which all devices together can run the operators, if all devices but one begin
  /// after `wait`.
  double time_of(const OperatorSet& set, double wait) const {
    double most = 0;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      double work = 0;
      for (auto op = set.find_first(); op != OperatorSet::npos; op = set.find_next(op)) work += work_[i][op];
      const double alone = max_weight_[i] * wait;  // done by one device before the others begin
      most = std::max(most, work <= alone ? work / max_weight_[i] : work + wait - alone);
    }
    return most;
  }

  const OperatorProblem& problem_;
  const OperatorGraph& graph_;
  std::vector<std::vector<OperatorEdge>> inputs_;
  std::vector<OperatorSet> before_, after_;  // by operator, which belongs to both
  std::vector<double> max_weight_;           // by set of weights
  std::vector<std::vector<double>> work_;    // [set of weights][operator]
  std::vector<double> end_;                  // by operator: the last part does not end before then
  std::vector<Barrier> barriers_;
};

}  // namespace

Nanoseconds operator_lower_bound_ns(const OperatorProblem& problem) {
  // Sums of doubles are not exact, so the bound is lowered by more than their error.
  return static_cast<Nanoseconds>(std::floor(LowerBound(problem).most() * (1 - 1e-9)));
}

}  // namespace frostpipe
