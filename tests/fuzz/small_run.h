#pragma once
// A valid plan and a valid run, to be changed.
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

}  // namespace frostpipe::test
