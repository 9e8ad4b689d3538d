#include "plan/comparison.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::message_of;
using examples::with;
using testing::HasSubstr;

RunSummary run_of(std::string name, double samples_per_second, const std::vector<Nanoseconds>& iterations_ns) {
  RunSummary run;
  run.name = std::move(name);
  run.samples_per_second = samples_per_second;
  run.phases.resize(1);
  for (const Nanoseconds iteration_ns : iterations_ns)
    run.steps.push_back({.step = static_cast<int>(run.steps.size()), .samples = 10, .iteration_ns = iteration_ns});
  return run;
}

TEST(Compare, TheLastRunWithEachOfTheOthers) {
  const auto comparison =
      compare({run_of("data_parallel", 50, {}), run_of("static_pipeline", 40, {}), run_of("elastic", 100, {})});
  ASSERT_EQ(comparison.speedups.size(), 2u);
  EXPECT_EQ(comparison.speedups[0], (Speedup{"elastic", "data_parallel", 2, 2, 2}));
  EXPECT_EQ(comparison.speedups[1], (Speedup{"elastic", "static_pipeline", 2.5, 2.5, 2.5}));
}

TEST(Compare, EqualStepsHaveNoNoise) {
  const auto speedup = compare({run_of("a", 50, {200, 200, 200}), run_of("b", 100, {100, 100, 100})}).speedups.at(0);
  EXPECT_DOUBLE_EQ(speedup.factor, 2);
  EXPECT_DOUBLE_EQ(speedup.low, 2);
  EXPECT_DOUBLE_EQ(speedup.high, 2);
}

TEST(Compare, BoundsHoldTheFactorAndAreTheSameEveryTime) {
  std::vector<Nanoseconds> slow, fast;
  for (int i = 0; i < 100; ++i) {
    slow.push_back(2000 + 100 * (i % 7));
    fast.push_back(1000 + 100 * (i % 5));
  }
  const auto first = compare({run_of("a", 1, slow), run_of("b", 2300. / 1200, fast)}).speedups.at(0);
  EXPECT_LT(first.low, first.factor);
  EXPECT_LT(first.factor, first.high);
  EXPECT_NEAR(first.low, first.factor, 0.1);
  EXPECT_NEAR(first.high, first.factor, 0.1);
  EXPECT_EQ(compare({run_of("a", 1, slow), run_of("b", 2300. / 1200, fast)}).speedups.at(0), first);
}

TEST(Compare, PhasesThatDifferAreNotNoise) {
  // The run has 50 steps of 1000 ns, then 50 of 100 ns: drawn within phases every resample equals the run.
  RunSummary elastic = run_of("elastic", 1, {});
  for (int i = 0; i < 100; ++i)
    elastic.steps.push_back({.step = i, .samples = 10, .iteration_ns = i < 50 ? 1000 : 100});
  elastic.phases.resize(2);
  elastic.phases[1].from_step = 50;
  const auto speedup = compare({run_of("a", 1, {550, 550}), elastic}).speedups.at(0);
  EXPECT_DOUBLE_EQ(speedup.low, 1);
  EXPECT_DOUBLE_EQ(speedup.high, 1);
}

TEST(Compare, ReconfigurationsCountAsTime) {
  RunSummary elastic = run_of("elastic", 1, {100, 100});
  elastic.phases[0].transformation_ns = 200;
  const auto speedup = compare({run_of("a", 1, {100, 100}), elastic}).speedups.at(0);
  EXPECT_DOUBLE_EQ(speedup.low, 0.5);  // 20 samples in 400 ns against 20 in 200 ns
}

/// Predictions for 100 items of label 1, of which `correct` are right, from index `first_correct`.
RunSummary predicting(std::string name, int correct, int first_correct = 0) {
  RunSummary run = run_of(std::move(name), 1, {});
  for (int i = 0; i < 100; ++i) {
    run.test_items.push_back(1000 + i);
    run.test_labels.push_back(1);
    run.test_predictions.push_back(i >= first_correct && i < first_correct + correct ? 1 : 0);
  }
  return run;
}

TEST(Compare, AccuraciesArePaired) {
  // 90 are right, of which the baseline has 85: d is 1 on 5 items and 0 on 95, with mean 0.05 and variance 0.05 -
  // 0.0025.
  const auto accuracy = compare({predicting("a", 85), predicting("b", 90)}).accuracies.at(0);
  EXPECT_EQ(accuracy.run, "b");
  EXPECT_EQ(accuracy.baseline, "a");
  EXPECT_NEAR(accuracy.difference, 0.05, 1e-12);
  const double half_width = 1.96 * std::sqrt(0.0475 / 100);
  EXPECT_NEAR(accuracy.low, 0.05 - half_width, 1e-12);
  EXPECT_NEAR(accuracy.high, 0.05 + half_width, 1e-12);
  // Equal accuracy on different items is less certain than on the same items.
  EXPECT_EQ(compare({predicting("a", 90), predicting("b", 90)}).accuracies.at(0).high, 0);
  EXPECT_GT(compare({predicting("a", 90), predicting("b", 90, 10)}).accuracies.at(0).high, 0.05);
}

TEST(Compare, RunsOnOtherItemsHaveNoPairedAccuracy) {
  RunSummary other = predicting("b", 90);
  other.test_items[3] = 7;
  EXPECT_TRUE(compare({predicting("a", 85), other}).accuracies.empty());
  EXPECT_TRUE(compare({run_of("a", 1, {}), run_of("b", 1, {})}).accuracies.empty());
}

TEST(Compare, OneRunOrNoneHasNothingToCompare) {
  EXPECT_TRUE(compare({}).speedups.empty());
  EXPECT_TRUE(compare({run_of("a", 1, {1})}).speedups.empty());
}

TEST(FastestOther, IsTheOneToBeatWhereverItStands) {
  EXPECT_EQ(fastest_other(compare({run_of("a", 50, {}), run_of("b", 60, {}), run_of("last", 100, {})})), "b");
  EXPECT_EQ(fastest_other(compare({run_of("a", 50, {}), run_of("b", 40, {}), run_of("last", 10, {})})), "a");
  EXPECT_EQ(fastest_other(compare({run_of("a", 50, {}), run_of("last", 100, {})})), std::nullopt);
  EXPECT_EQ(fastest_other(compare({})), std::nullopt);
}

TEST(Compare, EqualNamesAreNumbered) {
  const auto comparison = compare({run_of("elastic", 1, {}), run_of("elastic", 1, {}), run_of("elastic_2", 1, {})});
  EXPECT_EQ(comparison.runs[0].name, "elastic");
  EXPECT_EQ(comparison.runs[1].name, "elastic_2");
  EXPECT_EQ(comparison.runs[2].name, "elastic_2_2");
}

Comparison example() {
  auto comparison =
      compare({predicting("static_pipeline", 85), predicting("data_parallel", 88), predicting("elastic", 90)});
  comparison.what_ifs.push_back({"slow link", 200, 100, "A link of 1 GB/s would double the iteration."});
  return comparison;
}

TEST(Comparison, SurvivesItsFileInOrder) {
  EXPECT_EQ(comparison_from_json(to_json(example()), "s.json"), example());
  EXPECT_EQ(comparison_from_json(to_json(Comparison{}), "s.json"), Comparison{});
}

TEST(Comparison, FileHasRunsByName) {
  const auto json = nlohmann::json::parse(to_json(example()));
  EXPECT_EQ(json.at("format"), "frostpipe.summary");
  EXPECT_EQ(json.at("version"), 2);
  EXPECT_EQ(json.at("order"), (std::vector<std::string>{"static_pipeline", "data_parallel", "elastic"}));
  for (const char* key :
       {"samples_per_second", "wall_seconds", "test_accuracy", "test_accuracy_standard_error", "phases"})
    EXPECT_TRUE(json.at("runs").at("elastic").contains(key)) << key;
  for (const char* key : {"from_step", "num_steps", "frozen_blocks", "stages", "replicas", "num_micro_batches",
                          "predicted_iteration_ns", "measured_iteration_ns", "transformation_ns"})
    EXPECT_TRUE(json.at("runs").at("elastic").at("phases").at(0).contains(key)) << key;
}

TEST(Comparison, FilesOfVersion1AreRead) {
  Comparison comparison = example();
  comparison.runs[2].phases[0].frozen_blocks = 3;
  comparison.runs[2].decisions = {{.step = 7, .frozen_blocks = 2, .explanation = "because"}};
  const std::string text = with(to_json(comparison), "\"version\": 2", "\"version\": 1");
  const std::string before = std::regex_replace(text, std::regex("\"frozen_blocks\""), "\"frozen_layers\"");
  EXPECT_EQ(comparison_from_json(before, "s.json"), comparison);
}

TEST(Comparison, OrderAndRunsMustAgree) {
  const auto good = to_json(example());
  const auto error_of = [](const std::string& text) {
    return message_of([&] { comparison_from_json(text, "s.json"); });
  };
  const std::string order = "\"order\": [\"static_pipeline\", \"data_parallel\", \"elastic\"]";
  EXPECT_EQ(error_of(with(good, order, "\"order\": [\"static_pipeline\", \"elastic\", \"elastic\"]")),
            "s.json: order[2]: must name one of the runs, each once, is \"elastic\"");
  EXPECT_EQ(error_of(with(good, order, "\"order\": [\"static_pipeline\", \"elastic\"]")),
            "s.json: order: must name every run, is without \"data_parallel\"");
  EXPECT_EQ(error_of(with(good, "\"name\": \"elastic\"", "\"name\": \"rigid\"")),
            "s.json: runs.elastic.name: must be the key that it stands under, is \"rigid\"");
}

}  // namespace
}  // namespace frostpipe
