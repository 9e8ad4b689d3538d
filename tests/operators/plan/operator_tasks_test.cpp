#include "operators/plan/operator_tasks.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

OperatorMachine two_equal_devices() {
  return {.devices = {{.device_class = "a", .node = 0}, {.device_class = "a", .node = 1}},
          .within_node = {},
          .between_nodes = {}};
}

Operator operator_of(const std::string& name, OperatorKind kind, Bytes output, Bytes weights) {
  return {.name = name,
          .kind = kind,
          .layer = 0,
          .output_bytes = output,
          .weight_bytes = weights,
          .times = {{.device_class = "a", .overhead_ns = 10, .work_ns = 100}}};
}

/// The second reads the first, of 500 bytes for 10 samples.
OperatorGraph pair_of_forwards() {
  return {.net = "pair",
          .batch = 10,
          .operators = {operator_of("f", OperatorKind::forward, 500, 0), operator_of("g", OperatorKind::forward, 0, 0)},
          .edges = {{.from = 0, .to = 1}}};
}

std::vector<Nanoseconds> durations(const OperatorTasks& tasks) {
  std::vector<Nanoseconds> all;
  for (const auto& task : tasks.tasks) all.push_back(task.duration_ns);
  return all;
}

// Device 0 has samples 0 to 5 of the reader, but 0 to 3 of its input: samples 4 and 5 are sent, a fifth of 500 bytes.
TEST(OperatorTasks, OnlySamplesThatAreElsewhereTravel) {
  const OperatorGraph graph = pair_of_forwards();
  const auto tasks = tasks_of(graph, two_equal_devices(), {{{0, 0, 4}, {1, 4, 10}}, {{0, 0, 6}, {1, 6, 10}}});
  ASSERT_EQ(tasks.tasks.size(), 4);
  EXPECT_EQ(durations(tasks), (std::vector<Nanoseconds>{10 + 40, 10 + 60, 10 + 60, 10 + 40}));
  EXPECT_EQ(tasks.transfers,
            (std::vector<TaskTransfer>{{.task = 1, .to_device = 0, .begin = 4, .end = 6, .bytes = 100}}));
  EXPECT_EQ(tasks.num_inputs, (std::vector<int>{0, 0, 2, 1}));
}

// Two readers on the other device need samples 4 to 6 and 4 to 8: one transfer sends all of them.
TEST(OperatorTasks, OneTransferBringsWhatSeveralReadersNeed) {
  const OperatorGraph graph{
      .net = "three",
      .batch = 10,
      .operators = {operator_of("f", OperatorKind::forward, 500, 0), operator_of("g", OperatorKind::forward, 0, 0),
                    operator_of("h", OperatorKind::forward, 0, 0)},
      .edges = {{.from = 0, .to = 1}, {.from = 0, .to = 2}}};
  const auto tasks =
      tasks_of(graph, two_equal_devices(), {{{0, 0, 4}, {1, 4, 10}}, {{0, 0, 6}, {1, 6, 10}}, {{0, 0, 8}, {1, 8, 10}}});
  EXPECT_EQ(tasks.transfers,
            (std::vector<TaskTransfer>{{.task = 1, .to_device = 0, .begin = 4, .end = 8, .bytes = 200}}));
  EXPECT_EQ(tasks.transfer_readers[0].size(), 2);
}

// 500 bytes at 50 bytes a nanosecond take 10 ns of the sender and of the receiver. Of an update of 400 bytes each
// device sends 200 of its gradient and 200 of its new weights, and gets as many: 4 ns each time.
TEST(OperatorTasks, MessagesTakeTimeOfBothProcessorsIfTheMachineSaysSo) {
  const OperatorGraph pair = pair_of_forwards();
  const OperatorGraph layer{.net = "layer",
                            .batch = 10,
                            .operators = {operator_of("f", OperatorKind::forward, 0, 400),
                                          operator_of("w", OperatorKind::weight_gradient, 0, 400),
                                          operator_of("u", OperatorKind::update, 0, 400)},
                            .edges = {{.from = 1, .to = 2, .kind = OperatorEdgeKind::weight_gradient}}};
  const OperatorPlacement moved = {{{0, 0, 10}}, {{1, 0, 10}}};
  const OperatorPlacement halved = {{{0, 0, 5}, {1, 5, 10}}, {{0, 0, 5}, {1, 5, 10}}, {}};
  auto machine = two_equal_devices();
  EXPECT_EQ(durations(tasks_of(pair, machine, moved)), (std::vector<Nanoseconds>{110, 110}));
  EXPECT_EQ(durations(tasks_of(layer, machine, halved)), (std::vector<Nanoseconds>{60, 60, 60, 60, 60, 60}));
  machine.message_bytes_per_cpu_second = 50'000'000'000;
  EXPECT_EQ(durations(tasks_of(pair, machine, moved)), (std::vector<Nanoseconds>{110 + 10, 110 + 10}));
  EXPECT_EQ(durations(tasks_of(layer, machine, halved)),
            (std::vector<Nanoseconds>{60, 60, 60 + 4, 60 + 4, 60 + 3 * 4, 60 + 3 * 4}));
  EXPECT_EQ(durations(tasks_of(pair, machine, {{{0, 0, 10}}, {{0, 0, 10}}})), (std::vector<Nanoseconds>{110, 110}));
}

}  // namespace
}  // namespace frostpipe
