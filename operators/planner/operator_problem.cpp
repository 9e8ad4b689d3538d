#include "operators/planner/operator_problem.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace frostpipe {

std::vector<int> in_proportion(int total, const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int> parts(weights.size());
  std::vector<std::pair<double, std::size_t>> remainders;
  int left = total;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double exact = total * weights[i] / sum;
    parts[i] = static_cast<int>(std::floor(exact));
    left -= parts[i];
    remainders.emplace_back(parts[i] - exact, i);
  }
  std::ranges::sort(remainders);
  for (int i = 0; i < left; ++i) ++parts[remainders[i % remainders.size()].second];
  return parts;
}

std::vector<double> work_on_devices(const OperatorProblem& problem, const Operator& one) {
  std::vector<double> work;
  for (const auto& device : problem.machine.devices)
    work.push_back(
        static_cast<double>(std::ranges::find(one.times, device.device_class, &ClassCost::device_class)->work_ns));
  return work;
}

std::vector<double> time_on_devices(const OperatorProblem& problem, const Operator& one) {
  std::vector<double> times;
  for (const auto& device : problem.machine.devices)
    times.push_back(static_cast<double>(duration_ns(one, device.device_class, 1)));
  return times;
}

std::vector<double> speeds_of(const OperatorProblem& problem) {
  std::vector<double> sums(problem.machine.devices.size());
  for (const auto& one : problem.graph.operators) {
    const auto times = time_on_devices(problem, one);
    for (std::size_t device = 0; device < sums.size(); ++device) sums[device] += times[device];
  }
  for (double& sum : sums) sum = 1 / std::max(sum, 1.0);
  return sums;
}

std::vector<OperatorRange> ranges_over(const OperatorProblem& problem, const std::vector<int>& devices,
                                       const std::vector<double>& speeds) {
  std::vector<double> weights;
  for (const int device : devices) weights.push_back(speeds[device]);
  const auto parts = in_proportion(problem.graph.batch, weights);
  std::vector<OperatorRange> ranges;
  int end = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == 0) continue;
    ranges.push_back({.device = devices[i], .begin = end, .end = end + parts[i]});
    end += parts[i];
  }
  return ranges;
}

std::vector<OperatorRange> whole_on(const OperatorProblem& problem, int device) {
  return {{.device = device, .begin = 0, .end = problem.graph.batch}};
}

OperatorPlacement uniform_placement(const OperatorProblem& problem, const std::vector<OperatorRange>& ranges) {
  OperatorPlacement placement;
  for (const auto& one : problem.graph.operators)
    placement.push_back(is_split_by_samples(one.kind) ? ranges : std::vector<OperatorRange>{});
  return placement;
}

std::vector<int> places_by_rank(const OperatorProblem& problem) {
  const auto& graph = problem.graph;
  std::vector<double> rank(graph.operators.size());
  for (std::size_t op = 0; op < rank.size(); ++op) {
    double speed = 0;
    for (const double time : time_on_devices(problem, graph.operators[op])) speed += 1 / std::max(time, 1.0);
    rank[op] = 1 / speed;
  }
  std::vector<std::vector<int>> readers(rank.size());
  for (const auto& edge : graph.edges) readers[edge.from].push_back(edge.to);
  const auto order = topological_order(graph);
  std::vector<int> topological_place(rank.size()), by_rank = order, places(rank.size());
  for (std::size_t i = 0; i < order.size(); ++i) topological_place[order[i]] = static_cast<int>(i);
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    double longest = 0;
    for (const int reader : readers[*op]) longest = std::max(longest, rank[reader]);
    rank[*op] += longest;
  }
  std::ranges::sort(by_rank, [&](int a, int b) {
    return rank[a] != rank[b] ? rank[a] > rank[b] : topological_place[a] < topological_place[b];
  });
  for (std::size_t i = 0; i < by_rank.size(); ++i) places[by_rank[i]] = static_cast<int>(i);
  return places;
}

}  // namespace frostpipe
