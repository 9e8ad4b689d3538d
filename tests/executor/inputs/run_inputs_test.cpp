// Oracle: folders that differ only in the test's changes.
#include "executor/inputs/run_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class RunInputsTest : public test::ScratchFolderTest {
 protected:
  /// A host's options, with files in its own folder.
  TrainOptions on(const std::string& host) const {
    TrainOptions options{.plan_source = "plan.json"};
    options.data = file(host + "/my.tsv", "text\tlabel\nred\t1\n");
    file(host + "/model/config.json", "{}");
    options.model = file(host + "/model/model.safetensors", "weights").parent_path();
    return options;
  }
  std::string text_of(const std::string& host, const TrainOptions& options, const RunSettings& settings = {}) const {
    RunInputs inputs = run_inputs(options, settings);
    inputs.host = host;
    return to_text(inputs);
  }
  /// The error message if host b, that of the third rank, has these options.
  std::string said_of(const TrainOptions& options, const RunSettings& settings = {}) const {
    const std::string a = text_of("a", on("a"));
    try {
      require_equal_inputs({a, a, text_of("b", options, settings)});
      return "";
    } catch (const InvalidInput& error) {
      return error.what();
    }
  }
};

TEST_F(RunInputsTest, EqualFilesMayLieElsewhere) {
  EXPECT_EQ(said_of(on("b")), "");
  file("b/model/notes.md", "not read");
  EXPECT_EQ(said_of(on("b")), "");
}

TEST_F(RunInputsTest, AFileThatDiffersIsNamedWithItsHost) {
  const TrainOptions other = on("b");
  file("b/my.tsv", "text\tlabel\nred\t2\n");
  EXPECT_THAT(said_of(other), AllOf(StartsWith("host b: " + other.data.string() + ": must be the same as on host a ("),
                                    HasSubstr("), is ")));
}

TEST_F(RunInputsTest, WeightsAndConfigurationCount) {
  TrainOptions other = on("b");
  const auto weights = file("b/model/model.safetensors", "Weights");
  EXPECT_THAT(said_of(other), StartsWith("host b: " + weights.string() + ": must be the same as on host a ("));
  other = on("b");
  const auto config = file("b/model/config.json", "{ }");
  EXPECT_THAT(said_of(other), StartsWith("host b: " + config.string()));
}

TEST_F(RunInputsTest, AFileThatOneHostLacksIsNamed) {
  file("a/model/vocab.txt", "[PAD]");
  EXPECT_THAT(said_of(on("b")),
              AllOf(StartsWith("host b: " + (folder_ / "a/model/vocab.txt").string()), HasSubstr("is none")));
}

TEST_F(RunInputsTest, FoldersOfPicturesAreComparedByNamesAndSizes) {
  TrainOptions one = on("a"), other = on("b");
  one.data = file("a/pictures/cat/1.png", "12").parent_path().parent_path();
  other.data = file("b/pictures/cat/1.png", "21").parent_path().parent_path();
  const auto are_equal = [&] { return run_inputs(one, {}).values == run_inputs(other, {}).values; };
  EXPECT_TRUE(are_equal());
  file("b/pictures/.DS_Store", "not a picture");
  file("b/pictures/.cache/1.png", "not read");
  EXPECT_TRUE(are_equal());
  file("b/pictures/cat/1.png", "123");
  EXPECT_FALSE(are_equal());
  file("b/pictures/cat/1.png", "12");
  file("b/pictures/dog/1.png", "12");
  EXPECT_FALSE(are_equal());
}

TEST_F(RunInputsTest, AFolderThatCannotBeReadIsNamed) {
  TrainOptions options = on("a");
  options.model = folder_ / "none";
  EXPECT_EQ(message_of([&] { run_inputs(options, {}); }), "none: No such file or directory");
}

TEST_F(RunInputsTest, SettingsCount) {
  EXPECT_EQ(said_of(on("b"), {.seed = 4}), "host b: seed: must be the same as on host a (0), is 4");
}

/// The same data may give different samples; the option is reported, since it explains the difference.
TEST_F(RunInputsTest, OptionsCount) {
  const auto said_with = [&](const std::function<void(TrainOptions&)>& change) {
    TrainOptions other = on("b");
    change(other);
    return said_of(other, {.data_fingerprint = "others"});
  };
  const auto names = [](const std::string& option) { return StartsWith("host b: " + option + ": must be the same"); };
  EXPECT_THAT(said_with([](TrainOptions& other) { other.held_out = 0.1; }), names("--held-out"));
  EXPECT_THAT(said_with([](TrainOptions& other) { other.samples.max_tokens = 64; }), names("--max-tokens"));
  EXPECT_THAT(said_with([](TrainOptions& other) { other.samples.window_overlap = 8; }), names("--window-overlap"));
  EXPECT_THAT(said_with([](TrainOptions& other) { other.samples.text_column = "body"; }), names("--text-column"));
  EXPECT_THAT(said_with([](TrainOptions& other) { other.samples.label_column = "kind"; }), names("--label-column"));
  EXPECT_THAT(said_with([](TrainOptions& other) { other.samples.loss_on_all = true; }), names("--loss-on"));
  EXPECT_THAT(said_with([](TrainOptions& other) { other.samples.crop_padding = 4; }), names("--crop-padding"));
  EXPECT_THAT(said_with([](TrainOptions& other) { other.samples.flip = true; }), names("--flip"));
  EXPECT_THAT(said_with([](TrainOptions& other) { other.accuracy_tolerance = 0.5; }), names("--accuracy-guard"));
  EXPECT_THAT(said_with([](TrainOptions& other) { other.freeze.fixed_layers = {3, 5}; }), names("--freeze"));
  EXPECT_THAT(said_with([](TrainOptions& other) { other.freeze.options.alpha = 0.25; }), names("--freeze"));
  EXPECT_THAT(said_with([](TrainOptions& other) { other.checkpoints.every_steps = 7; }), names("--checkpoint-every"));
  EXPECT_THAT(said_with([](TrainOptions& other) { other.resume = "auto"; }), names("--resume"));
  EXPECT_THAT(said_with([](TrainOptions&) {}), names("the samples"));
}

TEST_F(RunInputsTest, ThePlanCounts) {
  TrainOptions other = on("b");
  other.plan.world_size = 2;
  EXPECT_THAT(said_of(other), StartsWith("host b: plan.json: must be the same as on host a ("));
}

TEST_F(RunInputsTest, TheProfileOfARehearsalCounts) {
  TrainOptions one = on("a");
  one.emulation = Emulation{};
  TrainOptions other = one;
  EXPECT_EQ(run_inputs(one, {}).values, run_inputs(other, {}).values);
  other.emulation->profile.machine = "another";
  EXPECT_NE(run_inputs(one, {}).values.at("--profile"), run_inputs(other, {}).values.at("--profile"));
}

TEST_F(RunInputsTest, OptionsOfMeasuringCountToo) {
  const auto measured_on = [&](const std::string& host) {
    return MeasureOptions{.model = on(host).model, .data = on(host).data, .test_data = {}, .micro_batch_sizes = {1, 2}};
  };
  const MeasureOptions one = measured_on("a");
  const MeasureOptions other = measured_on("b");
  const RunInputs inputs = run_inputs(other);
  EXPECT_EQ(run_inputs(one).values, inputs.values);
  const auto differs_in = [&](const std::function<void(MeasureOptions&)>& change) {
    MeasureOptions changed = other;
    change(changed);
    const auto difference = first_difference(run_inputs(one).values, run_inputs(changed).values);
    return difference ? difference->name : "nothing";
  };
  EXPECT_EQ(differs_in([](MeasureOptions& on_b) { on_b.global_batch_size = 7; }), "--global-batch");
  EXPECT_EQ(differs_in([](MeasureOptions& on_b) { on_b.seed = 7; }), "--seed");
  EXPECT_EQ(differs_in([](MeasureOptions& on_b) { on_b.held_out = 0.7; }), "--held-out");
  EXPECT_EQ(differs_in([](MeasureOptions& on_b) { on_b.samples.max_tokens = 7; }), "--max-tokens");
  EXPECT_EQ(differs_in([](MeasureOptions& on_b) { on_b.quick = true; }), "--quick");
  EXPECT_EQ(differs_in([](MeasureOptions& on_b) { on_b.links = false; }), "--cluster");
  EXPECT_EQ(differs_in([](MeasureOptions& on_b) { on_b.threads_per_rank = 7; }), "--threads-per-rank");
  EXPECT_EQ(differs_in([](MeasureOptions& on_b) { on_b.micro_batch_sizes = {1}; }), "--micro-batch-sizes");
  EXPECT_EQ(differs_in([](MeasureOptions& on_b) { on_b.tokens = {7}; }), "--tokens");
  EXPECT_EQ(differs_in([](MeasureOptions& on_b) { on_b.tensor_parallel_sizes = {1, 2}; }), "--tensor-parallel");
  EXPECT_EQ(differs_in([](MeasureOptions& on_b) { on_b.sequence_parallel = true; }), "--sequence-parallel");
  EXPECT_EQ(differs_in([](MeasureOptions& on_b) { on_b.dtype = DType::kBFloat16; }), "--dtype");
  EXPECT_EQ(differs_in([](MeasureOptions& on_b) { on_b.frozen_dtype = DType::kBFloat16; }), "--frozen-dtype");
  EXPECT_EQ(differs_in([](MeasureOptions& on_b) { on_b.device = "cuda"; }), "--device");
  EXPECT_EQ(inputs.paths.at("--data"), other.data->string());
  EXPECT_TRUE(inputs.values.contains("--model, config.json"));
}

}  // namespace
}  // namespace frostpipe
