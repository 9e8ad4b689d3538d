#include "cli/shared/run_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace frostpipe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RunSummary settings_example() {
  RunSummary run;
  run.model = "minilm";
  run.seed = 1;
  run.global_batch_size = 8;
  run.num_steps = 30;
  run.num_train_samples = 1000;
  run.num_test_samples = 2;
  run.label_names = {"a", "b"};
  run.test_items = {3, 9};
  return run;
}

/// Returns in what a run that `change` changed differs from one without the change.
template <class Change>
std::vector<std::string> differing_after(const Change& change) {
  std::vector<RunSummary> runs = {settings_example(), settings_example(), settings_example()};
  change(runs.back());
  return differing_settings(runs);
}

TEST(DifferingSettings, AreNoneForEqualRunsAndForOne) {
  EXPECT_THAT(differing_settings({settings_example(), settings_example()}), IsEmpty());
  EXPECT_EQ(settings_sentence({settings_example(), settings_example()}),
            "Equal data, seed, mini-batch and number of steps.");
  EXPECT_EQ(settings_sentence({settings_example()}), "");
}

TEST(DifferingSettings, AreNamedWithTheirValues) {
  EXPECT_THAT(differing_after([](RunSummary& run) { run.model = "bert"; }), ElementsAre("model (minilm / bert)"));
  EXPECT_THAT(differing_after([](RunSummary& run) { run.net = NetSummary{.net = "resnet", .device_classes = {}}; }),
              ElementsAre("model (minilm / resnet)"));
  EXPECT_THAT(differing_after([](RunSummary& run) { run.seed = 2; }), ElementsAre("seed (1 / 2)"));
  EXPECT_THAT(differing_after([](RunSummary& run) { run.global_batch_size = 4; }), ElementsAre("mini-batch (8 / 4)"));
  EXPECT_THAT(differing_after([](RunSummary& run) { run.num_steps = 40; }), ElementsAre("number of steps (30 / 40)"));
  EXPECT_THAT(differing_after([](RunSummary& run) { run.num_train_samples = 115; }),
              ElementsAre("data (1,000 / 115 training samples)"));
  EXPECT_THAT(differing_after([](RunSummary& run) {
                run.test_items = {4, 9};
              }),
              ElementsAre("data (other test samples)"));
  EXPECT_THAT(differing_after([](RunSummary& run) { run.label_names = {"a"}; }), ElementsAre("data (other labels)"));
}

TEST(DifferingSettings, HaveNoModelWhereItsNameIsUnknown) {
  EXPECT_THAT(differing_after([](RunSummary& run) { run.model.clear(); }), IsEmpty());
}

TEST(SettingsSentence, ListsThem) {
  RunSummary other = settings_example();
  other.model = "bert";
  other.seed = 2;
  other.num_steps = 40;
  EXPECT_EQ(settings_sentence({settings_example(), other}),
            "The runs differ in model (minilm / bert), seed (1 / 2) and number of steps (30 / 40): compare with care.");
}

TEST(DistinctTexts, AreEachOnce) {
  std::vector<RunSummary> runs = {settings_example(), settings_example(), settings_example()};
  runs[1].seed = 7;
  EXPECT_EQ(distinct_texts(runs, [](const RunSummary& run) { return std::to_string(run.seed); }), "1 / 7");
}

}  // namespace
}  // namespace frostpipe
