#pragma once
#include <string>

#include "plan/comparison.h"
#include "tests/cli/report/traces.h"

namespace frostpipe::test {

/// A run of two phases, the second with a frozen block; predicted 26 and 10 ms, measured 25 and 10 ms.
inline RunSummary run_with_hostile_names(const std::string& name) {
  PhaseSummary first;
  first.num_steps = 2;
  first.stages = 2;
  first.num_micro_batches = 4;
  first.schedule = "1F1B";
  first.partition = "[0,3) [3,6)";
  first.predicted_iteration_ns = 26'000'000;
  first.measured_iteration_ns = 25'000'000;
  first.measured_iteration_low_ns = 24'000'000;
  first.measured_iteration_high_ns = 50'000'000;
  first.predicted_peak_memory_bytes = {Bytes{180} << 20, Bytes{100} << 20};
  first.measured_peak_memory_bytes = {Bytes{200} << 20, Bytes{50} << 20};
  first.predicted_timeline = two_rank_trace();
  PhaseSummary second = first;
  second.from_step = 2;
  second.frozen_blocks = 1;
  second.predicted_iteration_ns = second.measured_iteration_ns = 10'000'000;
  second.predicted_timeline = {};
  RunSummary run;
  run.name = name;
  run.freeze = "plan & <more>";
  run.method = "static";
  run.world_size = 2;
  run.epochs = 2;
  run.num_steps = 4;
  run.global_batch_size = 64;
  run.samples_per_second = 1234.5;
  run.num_test_samples = 4;
  run.test_accuracy = 0.75;
  run.test_accuracy_standard_error = 0.03;
  run.phases = {first, second};
  for (int step = 0; step < 4; ++step)
    run.steps.push_back({.step = step, .loss = 2.0 / (1 + step), .samples = 64, .iteration_ns = 10'000'000});
  run.evaluations = {{.step = 2, .accuracy = 0.5}, {.step = 4, .accuracy = 0.75}};
  run.decisions = {{.step = 2, .frozen_blocks = 1, .explanation = "a <b> & c"}};
  run.label_names = {"<script>alert('x')</script>", "Käse & \"Brot\""};
  run.test_items = {0, 1, 2, 3};
  run.test_labels = {0, 0, 0, 1};
  run.test_predictions = {0, 0, 1, 1};
  return run;
}

inline Comparison hostile_comparison() {
  Comparison comparison;
  comparison.runs = {run_with_hostile_names("<base>"), run_with_hostile_names("a & \"b\"")};
  comparison.speedups = {{.run = "a & \"b\"", .baseline = "<base>", .factor = 1.5, .low = 1.25, .high = 1.75}};
  comparison.accuracies = {{.run = "a & \"b\"", .baseline = "<base>", .difference = 0.01, .low = -0.02, .high = 0.04}};
  comparison.what_ifs = {{.name = "what if <x>",
                          .iteration_ns = 8'000'000,
                          .baseline_iteration_ns = 10'000'000,
                          .sentence = "It <would> & could."}};
  return comparison;
}

}  // namespace frostpipe::test
