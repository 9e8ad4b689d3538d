#include "cli/shared/report_words.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

RunSummary run_named(const std::string& name, double samples_per_second) {
  RunSummary run;
  run.name = name;
  run.samples_per_second = samples_per_second;
  run.num_test_samples = 90;
  run.test_accuracy = 0.9;
  run.test_accuracy_standard_error = 0.031;
  return run;
}

/// The elastic run against two others, one of which is half as fast.
Comparison three_runs() {
  Comparison comparison;
  comparison.runs = {run_named("data_parallel", 50), run_named("static_pipeline", 80), run_named("elastic", 100)};
  comparison.speedups = {{.run = "elastic", .baseline = "data_parallel", .factor = 2},
                         {.run = "elastic", .baseline = "static_pipeline", .factor = 1.25}};
  return comparison;
}

TEST(RanksText, CountsRanksAndThreads) {
  EXPECT_EQ(ranks_text(1, 1), "1 rank");
  EXPECT_EQ(ranks_text(1, 8), "1 rank with 8 threads");
  EXPECT_EQ(ranks_text(4, 1), "4 ranks");
  EXPECT_EQ(ranks_text(4, 2), "4 ranks with 2 threads each");
}

TEST(ReportWords, CallRunsByWhatTheyAre) {
  EXPECT_EQ(run_in_words("one_process"), "one process on all cores");
  EXPECT_EQ(run_in_words("data_parallel"), "data parallelism alone");
  EXPECT_EQ(run_in_words("static_pipeline"), "the best static pipeline");
  EXPECT_EQ(run_in_words("elastic"), "the elastic run");
  EXPECT_EQ(run_in_words("mine"), "the run mine");
}

TEST(ReportWords, NameTheFastestOfSeveralOthers) {
  EXPECT_EQ(fastest_clause(three_runs(), "static_pipeline"), ", the fastest of the others");
  EXPECT_EQ(fastest_clause(three_runs(), "data_parallel"), "");
  Comparison two = three_runs();
  two.runs.erase(two.runs.begin());
  EXPECT_EQ(fastest_clause(two, "static_pipeline"), "") << "the only one";
}

TEST(Headline, SaysWhatTheLastRunBrought) {
  EXPECT_EQ(headline({}), "No runs.");
  Comparison alone;
  alone.runs = {run_named("elastic", 100)};
  EXPECT_EQ(headline(alone),
            "The elastic run trained 100.0 samples per second and reached 90.0 % accuracy (standard error 3.1).");
  alone.runs.front().num_test_samples = 0;
  EXPECT_EQ(headline(alone), "The elastic run trained 100.0 samples per second.");
  EXPECT_EQ(headline(three_runs()),
            "The elastic run trained 2.00× as fast as data parallelism alone and 1.25× as fast as the best static "
            "pipeline, the fastest of the others.");
}

TEST(Headline, GivesAccuracyWithItsInterval) {
  Comparison comparison = three_runs();
  comparison.runs.erase(comparison.runs.begin());
  comparison.speedups.erase(comparison.speedups.begin());
  comparison.accuracies = {
      {.run = "elastic", .baseline = "static_pipeline", .difference = -0.012, .low = -0.03, .high = 0.006}};
  EXPECT_EQ(headline(comparison),
            "The elastic run trained 1.25× as fast as the best static pipeline; its accuracy differs by −1.2 points "
            "from the best static pipeline (95 % interval −3.0 to +0.6).");
}

TEST(AccuracySentence, SaysWhatTheItemsCanShow) {
  // Half of the interval of 3.6 points; if no item differs, the rule of three gives 300 / 100 points.
  Comparison comparison = three_runs();
  comparison.runs.back().test_items.resize(100);
  comparison.accuracies = {{.run = "elastic", .baseline = "data_parallel", .difference = 0, .low = 0, .high = 0},
                           {.run = "elastic", .baseline = "mine", .difference = 0, .low = -0.03, .high = 0.006}};
  EXPECT_EQ(accuracy_sentence(comparison),
            "Accuracy 90.0 %, over the same 100 test items. At 95 % the smallest difference that they can show is 3.0 "
            "points from data parallelism alone and 1.8 points from the run mine: a smaller one may be there unseen.");
  EXPECT_EQ(accuracy_sentence(three_runs()), "");
}

TEST(ReportWords, CountInWords) {
  EXPECT_EQ(plural(1, "step"), "1 step");
  EXPECT_EQ(plural(1234, "step"), "1,234 steps");
  EXPECT_EQ(plural(0, "micro-batch"), "0 micro-batches");
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1'000), "1,000");
  EXPECT_EQ(grouped(-1'234'567), "-1,234,567");
}

TEST(ReportWords, SignNumbersWithATrueMinus) {
  EXPECT_EQ(signed_number(1.24), "+1.2");
  EXPECT_EQ(signed_number(-1.24), "−1.2");
  EXPECT_EQ(signed_number(-0.04), "0.0") << "nothing to sign";
  EXPECT_EQ(prediction_error_percent(112'300, 100'000), "+12.3 %");
  EXPECT_EQ(prediction_error_percent(87'700, 100'000), "−12.3 %");
  EXPECT_EQ(prediction_error_percent(0, 100), "");
  EXPECT_EQ(prediction_error_percent(100, 0), "");
}

TEST(ReportWords, AddUpARun) {
  RunSummary run;
  run.phases.resize(2);
  run.phases[0].transformation_ns = 5;
  run.phases[1].transformation_ns = 7;
  run.phases[0].measured_peak_memory_bytes = {1, 9};
  run.phases[1].measured_peak_memory_bytes = {8, 2};
  EXPECT_EQ(total_transformation_ns(run), 12);
  EXPECT_EQ(peak_memory_bytes(run), 9);
  EXPECT_EQ(peak_memory_bytes(RunSummary()), 0);
}

}  // namespace
}  // namespace frostpipe
