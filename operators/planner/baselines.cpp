#include "operators/planner/baselines.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "operators/plan/operator_tasks.h"

namespace frostpipe {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

int num_devices(const OperatorProblem& problem) { return static_cast<int>(problem.machine.devices.size()); }

/// Returns the time of all operators of a layer, [layer][device].
std::vector<std::vector<double>> layer_times(const OperatorProblem& problem) {
  std::vector<std::vector<double>> times(num_layers(problem.graph), std::vector<double>(num_devices(problem)));
  for (const auto& one : problem.graph.operators) {
    const auto on_devices = time_on_devices(problem, one);
    for (int d = 0; d < num_devices(problem); ++d) times[one.layer][d] += on_devices[d];
  }
  return times;
}

/// Returns, for each layer, the bytes that pass between it and the next one: its output and the gradient of that.
std::vector<Bytes> layer_outputs(const OperatorGraph& graph) {
  std::vector<Bytes> bytes(num_layers(graph));
  for (const auto& one : graph.operators)
    if (one.kind == OperatorKind::forward || one.kind == OperatorKind::elementwise)
      bytes[one.layer] = std::max(bytes[one.layer], 2 * one.output_bytes);
  return bytes;
}

OperatorPlacement placement_of_layers(const OperatorProblem& problem, const std::vector<int>& device_of_layer) {
  OperatorPlacement placement;
  for (const auto& one : problem.graph.operators)
    placement.push_back(is_split_by_samples(one.kind) ? whole_on(problem, device_of_layer[one.layer])
                                                      : std::vector<OperatorRange>{});
  return placement;
}

/// Returns the device of each layer such that the sum of the layers' times and of the messages between each layer and
/// the next one is least.
std::vector<int> best_device_of_layers(const OperatorProblem& problem) {
  const auto times = layer_times(problem);
  const auto outputs = layer_outputs(problem.graph);
  const int layers = static_cast<int>(times.size()), devices = num_devices(problem);
  std::vector<std::vector<int>> before(layers, std::vector<int>(devices));
  std::vector<double> cost = times.front();
  for (int layer = 1; layer < layers; ++layer) {
    std::vector<double> next(devices, kNever);
    for (int d = 0; d < devices; ++d)
      for (int from = 0; from < devices; ++from) {
        const double message =
            from == d ? 0 : static_cast<double>(message_ns(problem.machine, from, d, outputs[layer - 1]));
        if (cost[from] + message + times[layer][d] < next[d])
          next[d] = cost[from] + message + times[layer][d], before[layer][d] = from;
      }
    cost = next;
  }
  std::vector<int> chosen(layers);
  chosen.back() = static_cast<int>(std::ranges::min_element(cost) - cost.begin());
  for (int layer = layers - 1; layer > 0; --layer) chosen[layer - 1] = before[layer][chosen[layer]];
  return chosen;
}

/// Returns the stage of each layer. Stages consist of neighbouring layers, stage d is on device d, and the longest
/// stage is as short as possible.
std::vector<int> stage_of_layers(const OperatorProblem& problem) {
  const auto times = layer_times(problem);
  const int layers = static_cast<int>(times.size()), devices = num_devices(problem);
  std::vector<std::vector<double>> sums(devices, std::vector<double>(layers + 1));
  for (int d = 0; d < devices; ++d)
    for (int layer = 0; layer < layers; ++layer) sums[d][layer + 1] = sums[d][layer] + times[layer][d];
  std::vector<std::vector<double>> best(devices + 1, std::vector<double>(layers + 1, kNever));
  std::vector<std::vector<int>> begin(devices + 1, std::vector<int>(layers + 1));
  best[0][0] = 0;
  for (int d = 0; d < devices; ++d)
    for (int end = 0; end <= layers; ++end)
      for (int from = 0; from <= end; ++from) {
        const double longest = std::max(best[d][from], sums[d][end] - sums[d][from]);
        if (longest < best[d + 1][end]) best[d + 1][end] = longest, begin[d + 1][end] = from;
      }
  std::vector<int> stage(layers);
  for (int d = devices, end = layers; d > 0; end = begin[d][end], --d)
    std::fill(stage.begin() + begin[d][end], stage.begin() + end, d - 1);
  return stage;
}

/// The intervals in which a device is busy, ascending: begin and end in nanoseconds.
using BusyIntervals = std::vector<std::pair<double, double>>;

double first_gap(const BusyIntervals& busy, double from, double length) {
  for (const auto& [begin, end] : busy) {
    if (from + length <= begin) break;
    from = std::max(from, end);
  }
  return from;
}

}  // namespace

Nanoseconds message_ns(const OperatorMachine& machine, int from, int to, Bytes bytes) {
  if (from == to) return 0;
  return link_between(machine, from, to).latency_ns + message_occupancy_ns(machine, from, to, bytes) +
         2 * message_work_ns(machine, bytes);
}

OperatorPlacement baseline_placement(const OperatorProblem& problem, OperatorMethod method) {
  const auto speeds = speeds_of(problem);
  std::vector<int> devices(speeds.size());
  std::iota(devices.begin(), devices.end(), 0);
  switch (method) {
    case OperatorMethod::single: {
      const auto fastest = static_cast<int>(std::ranges::max_element(speeds) - speeds.begin());
      return uniform_placement(problem, whole_on(problem, fastest));
    }
    case OperatorMethod::data_parallel:
      return uniform_placement(problem, ranges_over(problem, devices, speeds));
    case OperatorMethod::layer_wise:
      return placement_of_layers(problem, best_device_of_layers(problem));
    case OperatorMethod::pipeline:
      return placement_of_layers(problem, stage_of_layers(problem));
    case OperatorMethod::mtrain:
      break;
  }
  FROSTPIPE_CHECK(false, "mtrain is no baseline");
}

OperatorPlacement earliest_finish_placement(const OperatorProblem& problem) {
  const auto& graph = problem.graph;
  const auto places = places_by_rank(problem);
  std::vector<int> by_rank(places.size());
  for (std::size_t op = 0; op < places.size(); ++op) by_rank[places[op]] = static_cast<int>(op);
  std::vector<std::vector<int>> inputs(places.size());
  for (const auto& edge : graph.edges) inputs[edge.to].push_back(edge.from);
  std::vector<int> device_of(places.size());
  std::vector<double> end_of(places.size());
  std::vector<BusyIntervals> busy(problem.machine.devices.size());
  for (const int op : by_rank) {
    const auto times = time_on_devices(problem, graph.operators[op]);
    double earliest = kNever, begin = 0;
    for (int d = 0; d < num_devices(problem); ++d) {
      double ready = 0;
      for (const int input : inputs[op]) {
        const Bytes bytes = output_bytes(graph, {.op = input, .begin = 0, .end = graph.batch});
        ready = std::max(ready,
                         end_of[input] + static_cast<double>(message_ns(problem.machine, device_of[input], d, bytes)));
      }
      const double from = first_gap(busy[d], ready, times[d]);
      if (from + times[d] < earliest) earliest = from + times[d], begin = from, device_of[op] = d;
    }
    end_of[op] = earliest;
    BusyIntervals& of_device = busy[device_of[op]];
    of_device.insert(std::ranges::lower_bound(of_device, std::pair(begin, earliest)), {begin, earliest});
  }
  OperatorPlacement placement;
  for (std::size_t op = 0; op < places.size(); ++op)
    placement.push_back(is_split_by_samples(graph.operators[op].kind) ? whole_on(problem, device_of[op])
                                                                      : std::vector<OperatorRange>{});
  return placement;
}

}  // namespace frostpipe
