#include "cli/shared/run_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunSummary example_run() {
  RunSummary run;
  run.name = "elastic";
  run.freeze = "plan";
  run.world_size = 2;
  run.epochs = 3;
  run.num_steps = 30;
  run.global_batch_size = 64;
  run.samples_per_second = 1234.56;
  run.wall_seconds = 1.5;
  run.num_test_samples = 100;
  run.test_accuracy = 0.9;
  run.test_accuracy_standard_error = 0.03;
  PhaseSummary phase;
  phase.num_steps = 30;
  phase.schedule = "1F1B";
  phase.partition = "[0,6)";
  phase.predicted_iteration_ns = 26'000'000;
  phase.measured_iteration_ns = 25'000'000;
  phase.measured_iteration_low_ns = 24'000'000;
  phase.measured_iteration_high_ns = 27'000'000;
  phase.measured_peak_memory_bytes = {Bytes{200} << 20, Bytes{210} << 20};
  run.phases = {phase};
  return run;
}

TEST(RecoveriesText, SaysWhatALossCost) {
  RunSummary run;
  EXPECT_EQ(recoveries_text(run), "");
  run.recoveries = {{.step = 12,
                     .lost_steps = 2,
                     .world_size = 1,
                     .cause = "rank 1 was killed",
                     .source = "checkpoint step-10",
                     .detection_ns = 1'500'000'000,
                     .rendezvous_ns = 250'000'000,
                     .restoring_ns = 10'000'000,
                     .lost_work_ns = 50'000'000}};
  EXPECT_EQ(recoveries_text(run),
            "went on with step 12 on 1 rank from checkpoint step-10: rank 1 was killed\n"
            "  2 steps done again (50.0 ms), noticed in 1.50 s, reconnected in 250 ms, restored in 10.0 ms\n");
}

TEST(RecoveriesText, LeavesOutWhatWasNotNeeded) {
  RunSummary run;
  run.recoveries = {{.step = 7, .world_size = 2, .cause = "it cost accuracy", .source = "memory"}};
  EXPECT_THAT(recoveries_text(run), Not(HasSubstr("done again")));
  EXPECT_THAT(recoveries_text(run), Not(HasSubstr("noticed")));
  EXPECT_THAT(recoveries_text(run), HasSubstr("on 2 ranks from memory: it cost accuracy\n"));
}

TEST(RunText, NamesFiguresAndFolder) {
  RunSummary run = example_run();
  run.test_others = {{.name = "exact match", .value = 0.5}, {.name = "loss", .value = 0.25}};
  const std::string text = run_text(run, "runs/mine");
  EXPECT_THAT(text, HasSubstr("elastic: 3 epochs, 30 steps of mini-batch 64, freezing by plan, seed 0\n"));
  EXPECT_THAT(text, HasSubstr("throughput: 1234.6 samples/s over 1.5 s of training"));
  EXPECT_THAT(text, HasSubstr("accuracy: 90.0 % +- 3.0 (standard error, 100 test samples); exact match 50.0 %; "
                              "loss 0.250\n"));
  EXPECT_THAT(text, HasSubstr("200 / 210"));
  EXPECT_TRUE(text.ends_with("written to runs/mine\n"));
}

TEST(RunText, SaysWhereOneLabelIsAllThatIsPredicted) {
  RunSummary run = example_run();
  run.label_names = {"no", "yes"};
  run.test_labels = {1, 1, 0, 1};
  run.test_predictions = {1, 1, 1, 1};
  EXPECT_THAT(run_text(run, ""), HasSubstr("; ALL test samples are predicted as \"yes\"\n"));
  run.test_predictions = {1, 1, 0, 1};
  EXPECT_THAT(run_text(run, ""), Not(HasSubstr("ALL")));
  run.test_labels = run.test_predictions = {1, 1, 1, 1};
  EXPECT_THAT(run_text(run, ""), Not(HasSubstr("ALL"))) << "the data have one label alone";
}

TEST(RunText, SaysThatARunWasARehearsal) {
  RunSummary run = example_run();
  run.is_emulated = true;
  EXPECT_THAT(run_text(run, "x"), HasSubstr("elastic: rehearsal of 3 epochs, 30 steps of mini-batch 64, freezing by "
                                            "plan, seed 0\n"));
  run.net = NetSummary{.net = "resnet", .device_classes = {"cpu", "cpu / 2"}};  // without epochs, data and seed
  run.method = "mtrain";
  run.epochs = 0;
  run.num_test_samples = 0;
  run.phases.front().measured_peak_memory_bytes.clear();
  const std::string text = run_text(run, "x");
  EXPECT_THAT(text, HasSubstr("elastic: rehearsal of resnet by mtrain on cpu + cpu / 2, 30 steps of mini-batch 64, "
                              "freezing by plan\n"));
  EXPECT_THAT(text, HasSubstr("  0.0  -                                -\n"))
      << "neither memory nor a change of layout";
  EXPECT_THAT(comparison_text({.runs = {run}, .speedups = {}, .accuracies = {}, .what_ifs = {}}),
              Not(HasSubstr(" 0\n")));
}

TEST(PhasesText, SetsPredictionsAgainstMeasurements) {
  const std::string text = phases_text({example_run()});
  EXPECT_THAT(text, HasSubstr(" 26.0 ")) << "predicted";
  EXPECT_THAT(text, HasSubstr(" 25.0 ")) << "measured";
  EXPECT_THAT(text, HasSubstr(" +4.0 ")) << "error of 1 in 25";
  EXPECT_THAT(text, HasSubstr("24.0 - 27.0"));
}

TEST(ComparisonText, NamesSpeedupsAndWhatIfs) {
  Comparison comparison;
  comparison.runs = {example_run()};
  comparison.speedups = {{.run = "elastic", .baseline = "mine", .factor = 1.25, .low = 1.2, .high = 1.3}};
  comparison.accuracies = {{.run = "elastic", .baseline = "mine", .difference = 0.01, .low = -0.02, .high = 0.04}};
  comparison.what_ifs = {{.name = "x", .sentence = "It would."}};
  const std::string text = comparison_text(comparison);
  EXPECT_THAT(text, HasSubstr("elastic is 1.25 times as fast as mine (10-90 %: 1.20 to 1.30, this run's own noise)\n"));
  EXPECT_THAT(text, HasSubstr("accuracy of elastic minus mine: +1.0 points (95 % interval -2.0 to +4.0, same test "
                              "items)\n"));
  EXPECT_TRUE(text.ends_with("what if: It would.\n"));
}

TEST(ComparisonText, SaysBeforeTheSpeedupWhetherTheRunsCanBeCompared) {
  Comparison comparison;
  comparison.runs = {example_run(), example_run()};
  comparison.speedups = {{.run = "elastic", .baseline = "mine", .factor = 1.25, .low = 1.2, .high = 1.3}};
  EXPECT_THAT(comparison_text(comparison),
              HasSubstr("\nEqual data, seed, mini-batch and number of steps.\nelastic is 1.25 times as fast"));
  comparison.runs.back().net = NetSummary{.net = "resnet", .device_classes = {"cpu"}};
  comparison.runs.front().model = "minilm";
  EXPECT_THAT(comparison_text(comparison),
              HasSubstr("\nThe runs differ in model (minilm / resnet): compare with care.\nelastic is 1.25 times"));
}

TEST(ComparisonText, HasAllFiguresOfTheTests) {
  RunSummary language_model = example_run(), classifier = example_run();
  language_model.test_metric = "next-token accuracy";
  language_model.test_others = {{"loss", 3.671}, {"perplexity", 39.29}};
  Comparison comparison;
  comparison.runs = {language_model, language_model};
  EXPECT_THAT(comparison_text(comparison), HasSubstr("next-token accuracy [%]  s.e.   loss  perplexity  peak"));
  EXPECT_THAT(comparison_text(comparison), HasSubstr("90.0   3.0  3.671      39.290"));
  comparison.runs.back() = classifier;
  EXPECT_THAT(comparison_text(comparison), HasSubstr("  accuracy [%]  s.e.   loss  perplexity  peak"))
      << "different metrics have one column";
  EXPECT_THAT(comparison_text(comparison), HasSubstr("90.0   3.0      -           -"));
}

}  // namespace
}  // namespace frostpipe
