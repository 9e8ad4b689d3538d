#pragma once
// A valid plan, a valid run and the operators of a small net, which tests change.
#include <string>

#include "operators/graph/operator_graph.h"
#include "plan/plan.h"
#include "plan/summary.h"

namespace frostpipe::test {

inline TrainingPlan small_plan() {
  TrainingPlan plan{.method = PlanMethod::static_pipeline,
                    .world_size = 2,
                    .global_batch_size = 8,
                    .num_steps = 20,
                    .phases = {Phase{}}};
  plan.phases[0].layout = {.pipeline_parallel_size = 2, .placement = {1, 0}};
  plan.phases[0].partition = {{0, 2}, {2, 6}};
  plan.phases[0].cache.found = {{2, 0.5}};
  return plan;
}

inline RunSummary small_run() {
  RunSummary run{.name = "run",
                 .phases = {PhaseSummary{}},
                 .steps = {{.step = 0, .loss = 0.5}},
                 .label_names = {"a", "b"},
                 .test_items = {1},
                 .test_labels = {0},
                 .test_predictions = {1}};
  run.recoveries.push_back({.step = 3, .cause = "c", .source = "s"});
  return run;
}

inline OperatorGraph small_graph() {
  OperatorGraph graph{.net = "small", .batch = 4};
  const auto add = [&](const std::string& name, OperatorKind kind) {
    graph.operators.push_back({.name = name, .kind = kind, .output_bytes = 64, .weight_bytes = 32});
    graph.operators.back().times = {{.device_class = "cpu", .overhead_ns = 10, .work_ns = 100}};
  };
  add("forward", OperatorKind::forward);
  add("statistics", OperatorKind::statistics);
  add("normalise", OperatorKind::normalise);
  add("weights", OperatorKind::weight_gradient);
  add("update", OperatorKind::update);
  graph.edges = {{0, 1}, {1, 2, OperatorEdgeKind::statistics}, {2, 3}, {3, 4, OperatorEdgeKind::weight_gradient}};
  return graph;
}

}  // namespace frostpipe::test
