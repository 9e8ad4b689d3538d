#include "operators/simulator/operator_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "tests/operators/planner/brute_force.h"
#include "tests/operators/planner/random_problem.h"

namespace frostpipe {
namespace {

/// 12 samples; every operator takes 120 ns for all of them.
Operator operator_of(const std::string& name, OperatorKind kind, int layer, Bytes output, Bytes weights) {
  return {.name = name,
          .kind = kind,
          .layer = layer,
          .output_bytes = output,
          .weight_bytes = weights,
          .times = {{.device_class = "a", .overhead_ns = 0, .work_ns = 120}}};
}

std::vector<Bytes> peaks_of(const OperatorPlan& plan) {
  validate(plan.graph, "graph");
  const auto tasks = tasks_of(plan.graph, plan.machine, plan.placement);
  return peak_memory_of(plan, tasks, simulate_operators(plan, tasks, "plan"));
}

/// A plan with all operators on one device, or halved on two, in the same order.
OperatorPlan plan_of(OperatorGraph graph, int devices, const std::vector<int>& order) {
  OperatorPlan plan{.machine = {}, .graph = std::move(graph), .placement = {}, .order = {}};
  std::vector<OperatorRange> ranges;
  for (int d = 0; d < devices; ++d) {
    plan.machine.devices.push_back({.device_class = "a", .node = d});
    plan.order.push_back(order);
    ranges.push_back({.device = d, .begin = 12 / devices * d, .end = 12 / devices * (d + 1)});
  }
  for (const auto& one : plan.graph.operators)
    plan.placement.push_back(is_split_by_samples(one.kind) ? ranges : std::vector<OperatorRange>{});
  return plan;
}

/// A layer of 400 bytes of weights, whose output of 1200 its weight gradient reads.
OperatorGraph layer_with_update() {
  return {.net = "layer",
          .batch = 12,
          .operators = {operator_of("f", OperatorKind::forward, 0, 1200, 400),
                        operator_of("g", OperatorKind::weight_gradient, 0, 0, 400),
                        operator_of("u", OperatorKind::update, 0, 0, 400)},
          .edges = {{.from = 0, .to = 1}, {.from = 1, .to = 2, .kind = OperatorEdgeKind::weight_gradient}}};
}

// While the weight gradient is computed, there are weights, momentum, its input and the gradient. The update is in
// place.
TEST(OperatorMemory, OfALayerOnOneDeviceIsMostInItsWeightGradient) {
  EXPECT_EQ(peaks_of(plan_of(layer_with_update(), 1, {0, 1, 2})), (std::vector<Bytes>{400 + 400 + 1200 + 400}));
}

// All weights, and half of the momentum and of the output. The gradient is whole, and there is room for half of the
// other device's.
TEST(OperatorMemory, OfALayerOnTwoDevicesIsHalvedWhereItsPartsAre) {
  constexpr Bytes kPeak = 400 + 200 + 600 + 400 + 200;
  EXPECT_EQ(peaks_of(plan_of(layer_with_update(), 2, {0, 1, 2})), (std::vector<Bytes>{kPeak, kPeak}));
}

TEST(OperatorMemory, HoldsNewWeightsWhereTheOldOnesAreStillRead) {
  OperatorGraph graph{.net = "layer",
                      .batch = 12,
                      .operators = {operator_of("g", OperatorKind::weight_gradient, 0, 0, 400),
                                    operator_of("u", OperatorKind::update, 0, 0, 400),
                                    operator_of("i", OperatorKind::input_gradient, 0, 120, 400)},
                      .edges = {{.from = 0, .to = 1, .kind = OperatorEdgeKind::weight_gradient}}};
  EXPECT_EQ(peaks_of(plan_of(graph, 1, {0, 2, 1})), (std::vector<Bytes>{400 + 400 + 400 + 120}));  // while i runs
  EXPECT_EQ(peaks_of(plan_of(graph, 1, {0, 1, 2})), (std::vector<Bytes>{400 + 400 + 400 + 400}));  // while u runs
}

// The first layer has no momentum and no gradient. Its output is the weight gradient's other input.
TEST(OperatorMemory, OfAFrozenLayerHasNoMomentum) {
  OperatorGraph graph{.net = "layers",
                      .batch = 12,
                      .operators = {operator_of("f0", OperatorKind::forward, 0, 1200, 500),
                                    operator_of("f1", OperatorKind::forward, 1, 120, 300),
                                    operator_of("g1", OperatorKind::weight_gradient, 1, 0, 300),
                                    operator_of("u1", OperatorKind::update, 1, 0, 300),
                                    operator_of("g0", OperatorKind::weight_gradient, 0, 0, 500),
                                    operator_of("u0", OperatorKind::update, 0, 0, 500)},
                      .edges = {{.from = 0, .to = 1},
                                {.from = 0, .to = 2},
                                {.from = 1, .to = 2},
                                {.from = 2, .to = 3, .kind = OperatorEdgeKind::weight_gradient},
                                {.from = 1, .to = 4},
                                {.from = 4, .to = 5, .kind = OperatorEdgeKind::weight_gradient}}};
  EXPECT_EQ(peaks_of(plan_of(frozen(graph, 1), 1, {0, 1, 2, 3})),
            (std::vector<Bytes>{500 + 300 + 300 + 1200 + 120 + 300}));
}

// Device 1 has ten tasks before it reads the message of device 0; the message has memory from the fourth of them on.
TEST(OperatorMemory, MakesRoomForAMessageSomeTasksBeforeItIsRead) {
  ASSERT_EQ(kTasksAhead, 8);
  const auto peaks = [](int large_task) {
    OperatorPlan plan;
    plan.machine.devices = {{.device_class = "a", .node = 0}, {.device_class = "a", .node = 1}};
    plan.graph = {.net = "messages", .batch = 12, .operators = {}, .edges = {{.from = 0, .to = 11}}};
    plan.order = {{0}, {}};
    for (int op = 0; op < 12; ++op) {
      const Bytes bytes = op == 0 ? 1200 : op == large_task ? 5000 : 0;
      plan.graph.operators.push_back(operator_of(std::to_string(op), OperatorKind::elementwise, 0, bytes, 0));
      plan.placement.push_back({{.device = op == 0 ? 0 : 1, .begin = 0, .end = 12}});
      if (op > 0) plan.order[1].push_back(op);
    }
    return peaks_of(plan);
  };
  EXPECT_EQ(peaks(3), (std::vector<Bytes>{1200, 5000}));
  EXPECT_EQ(peaks(4), (std::vector<Bytes>{1200, 5000 + 1200}));
}

// Device 0 has computed 1200 bytes at 120. Device 1 requests them with its fourth task, at 360, and gets them at once;
// until then they are in memory besides what device 0 computes meanwhile.
TEST(OperatorMemory, HoldsWhatIsSentUntilItsReceiverAsksForIt) {
  const auto peak = [](int num_others) {
    OperatorPlan plan;
    plan.machine.devices = {{.device_class = "a", .node = 0}, {.device_class = "a", .node = 1}};
    plan.graph = {.net = "messages", .batch = 12, .operators = {}, .edges = {{.from = 0, .to = 11}}};
    plan.order = {{0}, {}};
    for (int op = 0; op < 12 + num_others; ++op) {
      const bool is_first = op == 0 || op >= 12;
      const Bytes bytes = op == 0 ? 1200 : op == 11 + num_others ? 5000 : 0;
      plan.graph.operators.push_back(operator_of(std::to_string(op), OperatorKind::elementwise, 0, bytes, 0));
      plan.placement.push_back({{.device = is_first ? 0 : 1, .begin = 0, .end = 12}});
      if (op > 0) plan.order[is_first ? 0 : 1].push_back(op);
    }
    return peaks_of(plan)[0];
  };
  EXPECT_EQ(peak(2), 1200 + 5000);  // the large one from 240 to 360
  EXPECT_EQ(peak(3), 5000);         // from 360 on
}

TEST(OperatorMemory, CountsWhatAnOperatorNeedsForItself) {
  auto graph = layer_with_update();
  graph.operators[1].times[0].overhead_bytes = 7;
  graph.operators[1].times[0].work_bytes = 60;
  EXPECT_EQ(peaks_of(plan_of(graph, 1, {0, 1, 2})), (std::vector<Bytes>{400 + 400 + 1200 + 400 + 7 + 60}));
  constexpr Bytes kPeak = 400 + 200 + 600 + 400 + 200 + 7 + 30;
  EXPECT_EQ(peaks_of(plan_of(graph, 2, {0, 1, 2})), (std::vector<Bytes>{kPeak, kPeak}));
}

// The 8 bytes of scale and shift have a momentum, and there are as many running statistics.
TEST(OperatorMemory, OfANormUpdateIsWholeOnEveryDevice) {
  OperatorGraph graph{.net = "norm",
                      .batch = 12,
                      .operators = {operator_of("n", OperatorKind::normalise, 0, 0, 0),
                                    operator_of("u", OperatorKind::norm_update, 0, 0, 8)},
                      .edges = {}};
  graph.operators[1].times[0].work_bytes = 60;
  EXPECT_EQ(peaks_of(plan_of(graph, 1, {0, 1})), (std::vector<Bytes>{3 * 8 + 60}));
  EXPECT_EQ(peaks_of(plan_of(graph, 2, {0, 1})), (std::vector<Bytes>{3 * 8 + 60, 3 * 8 + 60}));
}

/// Counts the live bytes at a time, for each device.
class Recount {
 public:
  Recount(const OperatorPlan& plan, const OperatorTasks& tasks, const OperatorRun& run)
      : plan_(plan), tasks_(tasks), run_(run) {}

  Bytes always(int device) const {
    Bytes bytes = 0;
    const auto holders = holders_of(plan_.graph, plan_.placement);
    std::set<int> layers;
    for (const auto& task : tasks_.tasks) {
      const Operator& op = plan_.graph.operators[task.op];
      if (task.device != device) continue;
      if (op.kind == OperatorKind::forward && layers.insert(op.layer).second) bytes += op.weight_bytes;
      if (op.kind == OperatorKind::update) bytes += op.weight_bytes / std::ssize(holders[task.op]);
    }
    return bytes;
  }

  Bytes at(int device, Nanoseconds time) const {
    Bytes bytes = always(device);
    for (int i = 0; i < std::ssize(tasks_.tasks); ++i)
      if (tasks_.tasks[i].device == device && run_.task_begin_ns[i] <= time && time < end_of_output(i))
        bytes += output_of(i);
    for (int i = 0; i < std::ssize(tasks_.transfers); ++i)
      if (tasks_.transfers[i].to_device == device && is_there(i, time)) bytes += tasks_.transfers[i].bytes;
    return bytes;
  }

 private:
  Nanoseconds end_of_output(int i) const {
    const OperatorTask& task = tasks_.tasks[i];
    Nanoseconds end = run_.task_end_ns[i];
    if (plan_.graph.operators[task.op].kind == OperatorKind::update) {
      for (int other = 0; other < std::ssize(tasks_.tasks); ++other) {
        const Operator& op = plan_.graph.operators[tasks_.tasks[other].op];
        const bool reads_weights = op.kind == OperatorKind::forward && op.layer == plan_.graph.operators[task.op].layer;
        if (reads_weights && tasks_.tasks[other].device == task.device && run_.task_end_ns[other] > end)
          return run_.makespan_ns;
      }
      return 0;
    }
    for (const int reader : tasks_.local_readers[i]) end = std::max(end, run_.task_end_ns[reader]);
    for (const int transfer : tasks_.transfers_of[i])
      end = std::max({end, run_.transfer_end_ns[transfer], asked_for(transfer)});
    return end;
  }

  Bytes output_of(int i) const {
    const OperatorTask& task = tasks_.tasks[i];
    const Operator& op = plan_.graph.operators[task.op];
    if (op.kind == OperatorKind::update)
      return op.weight_bytes / std::ranges::count(tasks_.tasks, task.op, &OperatorTask::op);
    if (op.kind == OperatorKind::weight_gradient) return op.weight_bytes;
    return op.kind == OperatorKind::statistics ? op.output_bytes
                                               : op.output_bytes * (task.end - task.begin) / plan_.graph.batch;
  }

  bool reads(int task, int transfer) const { return std::ranges::count(tasks_.transfer_readers[transfer], task) > 0; }

  /// Only new weights, at the end, have no reader.
  Nanoseconds asked_for(int transfer) const {
    const auto& order = run_.order[tasks_.transfers[transfer].to_device];
    const auto first = std::ranges::find_if(order, [&](int task) { return reads(task, transfer); }) - order.begin();
    if (first == std::ssize(order)) return run_.makespan_ns;
    return run_.task_begin_ns[order[std::max<std::ptrdiff_t>(0, first - kTasksAhead + 1)]];
  }

  bool is_there(int transfer, Nanoseconds time) const {
    const auto& order = run_.order[tasks_.transfers[transfer].to_device];
    const auto last = std::find_if(order.rbegin(), order.rend(), [&](int task) { return reads(task, transfer); });
    return last != order.rend() && asked_for(transfer) <= time && time < run_.task_end_ns[*last];
  }

  const OperatorPlan& plan_;
  const OperatorTasks& tasks_;
  const OperatorRun& run_;
};

TEST(OperatorMemory, IsTheMostThatLivesAtATimeOfAnyPlan) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto problem = random_problem(seed, 2 + static_cast<int>(seed % 2), 3 + static_cast<int>(seed % 12));
    std::mt19937_64 random(seed);
    OperatorPlan plan{.machine = problem.machine, .graph = problem.graph, .placement = {}, .order = {}};
    const auto candidates = candidate_ranges(problem);
    for (const auto& one : plan.graph.operators)
      plan.placement.push_back(is_split_by_samples(one.kind) ? candidates[random() % candidates.size()]
                                                             : std::vector<OperatorRange>{});
    std::vector<int> places(plan.graph.operators.size());
    std::iota(places.begin(), places.end(), 0);
    for (std::size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[random() % i]);
    const auto tasks = tasks_of(plan.graph, plan.machine, plan.placement);
    const OperatorRun run = run_by_priority(tasks, plan.machine, places);
    const auto peaks = peak_memory_of(plan, tasks, run);
    const Recount recount(plan, tasks, run);
    for (int device = 0; device < std::ssize(peaks); ++device) {
      Bytes most = recount.always(device);
      EXPECT_GE(peaks[device], most);
      for (const Nanoseconds time : run.task_begin_ns) most = std::max(most, recount.at(device, time));
      EXPECT_EQ(peaks[device], most) << "seed " << seed << ", device " << device;
    }
  }
}

}  // namespace
}  // namespace frostpipe
