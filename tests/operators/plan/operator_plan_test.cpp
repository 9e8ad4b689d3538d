#include "operators/plan/operator_plan.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace frostpipe {
namespace {

/// Every field has a value that is not its default.
OperatorPlan plan_with_all_fields() {
  OperatorPlan plan{.method = OperatorMethod::layer_wise, .frozen_layers = 1};
  plan.machine = {.devices = {{.device_class = "cpu", .node = 0}, {.device_class = "cpu / 2", .node = 1}},
                  .within_node = {.latency_ns = 1, .bandwidth_bytes_per_second = 2'000'000},
                  .between_nodes = {.latency_ns = 3, .bandwidth_bytes_per_second = 4'000'000},
                  .shared_ports = true,
                  .message_bytes_per_cpu_second = 5'000'000};
  plan.graph = {.net = "small", .batch = 6, .operators = {}, .edges = {{.from = 0, .to = 1}}};
  for (const char* name : {"f", "g"})
    plan.graph.operators.push_back({.name = name,
                                    .kind = OperatorKind::forward,
                                    .layer = 1,
                                    .output_bytes = 7,
                                    .weight_bytes = 8,
                                    .times = {{.device_class = "cpu", .overhead_ns = 9, .work_ns = 10},
                                              {.device_class = "cpu / 2", .overhead_ns = 11, .work_ns = 12}}});
  plan.placement = {{{0, 0, 4}, {1, 4, 6}}, {{1, 0, 6}}};
  plan.order = {{0}, {0, 1}};
  plan.predicted_ns = 14;
  plan.lower_bound_ns = 13;
  plan.predicted_memory_bytes = {15, 16};
  plan.provenance.model_name = "small";
  return plan;
}

std::string refusal_of(const OperatorPlan& plan) {
  try {
    operator_plan_from_json(to_json(plan), "plan.json");
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(OperatorPlan, IsReadAsWritten) {
  const auto plan = plan_with_all_fields();
  EXPECT_EQ(operator_plan_from_json(to_json(plan), "plan.json"), plan);
}

TEST(OperatorPlan, OfAFileWithoutWorkOfMessagesHasNone) {
  auto plan = plan_with_all_fields();
  auto json = to_json(plan);
  const std::string field = "\"message_bytes_per_cpu_second\": 5000000";
  const auto at = json.find(field);
  ASSERT_NE(at, std::string::npos);
  json.erase(json.rfind(',', at), at + field.size() - json.rfind(',', at));
  plan.machine.message_bytes_per_cpu_second = 0;
  EXPECT_EQ(operator_plan_from_json(json, "plan.json"), plan);
}

TEST(OperatorPlan, WrongOnesAreNamed) {
  auto plan = plan_with_all_fields();
  plan.machine.message_bytes_per_cpu_second = -1;
  EXPECT_NE(refusal_of(plan).find("machine.message_bytes_per_cpu_second: must be >= 0, is -1"), std::string::npos)
      << refusal_of(plan);
  plan = plan_with_all_fields();
  plan.predicted_memory_bytes.pop_back();
  EXPECT_EQ(refusal_of(plan), "plan.json: predicted_memory_bytes: must have a value for each of the 2 devices, is 1");
  plan = plan_with_all_fields();
  plan.lower_bound_ns = 15;
  EXPECT_EQ(refusal_of(plan), "plan.json: lower_bound_ns: must be <= predicted_ns, is 15");
  plan = plan_with_all_fields();
  plan.graph.operators[1].times.pop_back();
  EXPECT_EQ(refusal_of(plan),
            "plan.json: graph.operators: must have times of every operator on \"cpu / 2\", is without one of \"g\"");
}

// At 1 GB/s from end to end, 1000 bytes take 1000 ns, of which each end takes 200 at 5 GB/s. At 1 GB/s per end nothing
// is left for the link.
TEST(OperatorMachine, ProcessorTimeOfAMessageIsNotPartOfItsOccupancy) {
  OperatorMachine machine;
  machine.devices = {{.device_class = "a", .node = 0}, {.device_class = "a", .node = 1}};
  machine.within_node = {.latency_ns = 7, .bandwidth_bytes_per_second = 0};
  machine.between_nodes = {.latency_ns = 3, .bandwidth_bytes_per_second = 1'000'000'000};
  EXPECT_EQ(link_between(machine, 0, 1).latency_ns, 3);
  EXPECT_EQ(message_occupancy_ns(machine, 0, 1, 1000), 1000);
  machine.message_bytes_per_cpu_second = 5'000'000'000;
  EXPECT_EQ(message_work_ns(machine, 1000), 200);
  EXPECT_EQ(message_occupancy_ns(machine, 0, 1, 1000), 600);
  machine.message_bytes_per_cpu_second = 1'000'000'000;
  EXPECT_EQ(message_occupancy_ns(machine, 0, 1, 1000), 0);
}

}  // namespace
}  // namespace frostpipe
