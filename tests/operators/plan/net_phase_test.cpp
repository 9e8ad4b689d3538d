// Oracle: the fields of the operator plan.
#include "operators/plan/net_phase.h"

#include <gtest/gtest.h>

#include "plan/plan.h"

namespace frostpipe {
namespace {

OperatorPlan small_plan() {
  OperatorPlan plan{.method = OperatorMethod::data_parallel, .frozen_layers = 1};
  plan.machine.devices = {{.device_class = "cpu", .node = 0}, {.device_class = "cpu / 2", .node = 1}};
  plan.machine.between_nodes = {.latency_ns = 3, .bandwidth_bytes_per_second = 4'000'000};
  plan.graph = {.net = "small", .batch = 2};
  for (const int layer : {0, 1}) {
    plan.graph.operators.push_back({.name = "forward" + std::to_string(layer), .layer = layer, .output_bytes = 8});
    for (const char* const device : {"cpu", "cpu / 2"})
      plan.graph.operators.back().times.push_back({.device_class = device, .work_ns = 100});
  }
  plan.graph.edges = {{0, 1}};
  plan.placement = {{{0, 0, 1}, {1, 1, 2}}, {{0, 0, 1}, {1, 1, 2}}};
  plan.order = {{0, 1}, {0, 1}};
  plan.predicted_ns = 77;
  plan.predicted_memory_bytes = {5, 6};
  return plan;
}

TEST(NetPhase, CarriesItsOperatorPlanThroughAPlansFile) {
  const OperatorPlan plan = small_plan();
  TrainingPlan run{.world_size = 2, .num_steps = 10, .phases = {phase_of(plan, 0), phase_of(plan, 4)}};
  EXPECT_EQ(plan_from_json(to_json(run), "plan.json"), run);
  const Phase& phase = run.phases[1];
  EXPECT_EQ(operator_plan_of(phase, "plan.json"), plan);
  EXPECT_EQ(phase.from_step, 4);
  EXPECT_EQ(phase.first_trainable_layer, 1);
  EXPECT_EQ(num_ranks(phase.layout), 2);
  EXPECT_EQ(phase.partition, (Partition{{0, 2}}));
  EXPECT_EQ(phase.predicted.iteration_ns, 77);
  EXPECT_EQ(phase.predicted.peak_memory_bytes, (std::vector<Bytes>{5, 6}));
}

TEST(NetPhase, HasADeviceOfTheClusterForEachOfThePlans) {
  const Cluster cluster = cluster_of(small_plan());
  ASSERT_EQ(cluster.devices.size(), 2u);
  EXPECT_EQ(cluster.devices[1].type, "cpu / 2");
  EXPECT_EQ(cluster.devices[1].node, 1);
  EXPECT_EQ(cluster.inter_node.point_to_point.latency_ns, 3);
}

}  // namespace
}  // namespace frostpipe
