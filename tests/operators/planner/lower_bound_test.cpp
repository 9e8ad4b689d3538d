#include "operators/planner/lower_bound.h"

#include <gtest/gtest.h>

#include "operators/planner/make_operator_plan.h"

namespace frostpipe {
namespace {

/// A machine of devices on separate nodes, with classes "0", "1", ..., and links of 50 ns and 1 GB/s.
OperatorProblem problem_of(int devices) {
  OperatorProblem problem{.graph = {.net = "small", .batch = 12}, .machine = {}};
  for (int d = 0; d < devices; ++d) problem.machine.devices.push_back({.device_class = std::to_string(d), .node = d});
  problem.machine.between_nodes = {.latency_ns = 50, .bandwidth_bytes_per_second = 1'000'000'000};
  return problem;
}

/// Device d takes overhead + (d + 1) x work.
void add(OperatorProblem& problem, OperatorKind kind, Nanoseconds overhead, Nanoseconds work, Bytes bytes) {
  Operator one{.name = std::to_string(problem.graph.operators.size()), .kind = kind, .times = {}};
  (kind == OperatorKind::weight_gradient || kind == OperatorKind::update ? one.weight_bytes : one.output_bytes) = bytes;
  for (std::size_t d = 0; d < problem.machine.devices.size(); ++d)
    one.times.push_back({.device_class = std::to_string(d),
                         .overhead_ns = overhead,
                         .work_ns = work * (static_cast<Nanoseconds>(d) + 1)});
  problem.graph.operators.push_back(one);
}

void same_speeds(OperatorProblem& problem) {
  for (auto& device : problem.machine.devices) device.device_class = "0";
}

// Two operators of 100 + 1000, halved: each sample is in parts that take 100 + 500. The total work gives 2200 / 2.
TEST(LowerBound, CountsTheWholeOverheadOnTheWayOfASample) {
  auto problem = problem_of(2);
  add(problem, OperatorKind::forward, 100, 1000, 0);
  add(problem, OperatorKind::forward, 100, 1000, 0);
  same_speeds(problem);
  problem.graph.edges = {{.from = 0, .to = 1}};
  EXPECT_NEAR(static_cast<double>(operator_lower_bound_ns(problem)), 1200, 1);
  EXPECT_EQ(make_operator_plan(problem, OperatorMethod::data_parallel).predicted_ns, 1200);
}

/// A forward, its statistics of 8 bytes, and the operator that applies them, on two devices, the second half as fast as
/// the first.
OperatorProblem with_statistics(Nanoseconds normalise_ns) {
  auto problem = problem_of(2);
  add(problem, OperatorKind::forward, 0, 3000, 1200);
  add(problem, OperatorKind::statistics, 0, 300, 8);
  add(problem, OperatorKind::normalise, 0, normalise_ns, 1200);
  problem.graph.edges = {
      {.from = 0, .to = 1}, {.from = 0, .to = 2}, {.from = 1, .to = 2, .kind = OperatorEdgeKind::statistics}};
  return problem;
}

// The statistics end at 2200. Then both devices take 400, and the slower one, with a third of the total speed, waits
// for 8 bytes: 58 / 3 more. A plan with unchanged ranges takes 58 more.
TEST(LowerBound, LetsAllDevicesButOneWaitForStatistics) {
  const auto problem = with_statistics(600);
  EXPECT_EQ(operator_lower_bound_ns(problem), 2200 + 400 + 58 / 3);
  EXPECT_EQ(make_operator_plan(problem, OperatorMethod::data_parallel).predicted_ns, 2200 + 400 + 58);
}

// The next operator takes 30 on the fastest device, which is done before the other one could begin.
TEST(LowerBound, LetsOneDeviceDoAloneWhatIsShorterThanAMessage) {
  const auto problem = with_statistics(30);
  EXPECT_NEAR(static_cast<double>(operator_lower_bound_ns(problem)), 2200 + 30, 1);
}

// Forward and weight gradient take 500 each if halved. Then the update takes 1000 on one device, or 500 and two
// messages of 200 bytes, 250 each; with faster messages of 100 it takes 500 + 200.
TEST(LowerBound, CountsTheMessagesOfAnUpdateThatIsSplit) {
  auto problem = problem_of(2);
  for (const auto kind : {OperatorKind::forward, OperatorKind::weight_gradient, OperatorKind::update})
    add(problem, kind, 0, 1000, kind == OperatorKind::forward ? 0 : 400);
  same_speeds(problem);
  problem.graph.edges = {{.from = 0, .to = 1}, {.from = 1, .to = 2, .kind = OperatorEdgeKind::weight_gradient}};
  EXPECT_NEAR(static_cast<double>(operator_lower_bound_ns(problem)), 2000, 1);
  EXPECT_EQ(make_operator_plan(problem, OperatorMethod::data_parallel).predicted_ns, 2000);
  problem.machine.between_nodes.bandwidth_bytes_per_second = 4'000'000'000;
  EXPECT_NEAR(static_cast<double>(operator_lower_bound_ns(problem)), 1700, 1);
  EXPECT_EQ(make_operator_plan(problem, OperatorMethod::data_parallel).predicted_ns, 1700);
}

}  // namespace
}  // namespace frostpipe
