// Oracle: figures counted by hand.
#include "cli/shared/model_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// 4 stages, then 2 stages and 2 replicas with 2 blocks frozen; 64 samples of 32 tokens, 10 GFLOP each forward. The
/// first phase takes 100 ms: 64 x 30 GFLOP in 0.1 s are 4.8 TFLOP/s on each of 4 devices.
struct Example {
  Profile profile = examples::flat_profile(examples::chain_model(4), 8, 32);
  TrainingPlan plan = examples::two_phase_plan();
  Cluster cluster = examples::cluster_of(4);
  Example() {
    profile.workload = plan.workload;
    profile.forward_flops = 10e9;
    plan.phases[0].predicted.iteration_ns = 100'000'000;
  }
  std::string text() const { return model_text(plan, profile, cluster); }
  nlohmann::ordered_json json() const {
    nlohmann::ordered_json json = {{"phases", {{{"kept", 1}}, {{"kept", 2}}}}};
    add_model_figures(json, plan, profile, cluster);
    return json;
  }
};

TEST(MicroBatchesText, HasTheSamplesOfEach) {
  Phase phase = examples::two_stages();  // 2 micro-batches
  phase.layout.data_parallel_size = 3;
  EXPECT_EQ(micro_batches_text(phase, 60), "2 x 10");
  EXPECT_EQ(micro_batches_text(phase, 64), "2 x 10 or 11");
  EXPECT_EQ(micro_batches_text(phase, 4), "2 x 0 or 1");
}

/// The model has 1000 + 4 x 1200 + 30 parameters; 30 GFLOP for 32 tokens are 938 MFLOP for one.
TEST(ModelText, HasTheModelsOperationsAndTheirRate) {
  Example example;
  EXPECT_EQ(example.text(),
            "model: 5,830 parameters; forward and backward take 30.0 GFLOP per sample of 32 tokens\n"
            "first phase: 8 micro-batches of 8 samples; 4.80 TFLOP/s per device\n");
  example.profile.model.vocab_size = 100;
  EXPECT_THAT(example.text(), HasSubstr("take 938 MFLOP per token, 30.0 GFLOP per sample of 32 tokens\n"));
  for (Device& device : example.cluster.devices) device.type = "V100";  // 15.7 TFLOP/s
  EXPECT_THAT(example.text(), HasSubstr("4.80 TFLOP/s per device, 30.6 % of the peak of V100 in float32 (MFU)\n"));
  example.cluster.devices[1].type = "A100";  // 19.5 TFLOP/s: 4 x 4.8 of 3 x 15.7 + 19.5
  EXPECT_THAT(example.text(), HasSubstr("28.8 % of the peak of the devices in float32 (MFU)\n"));
}

TEST(ModelText, LeavesOutWhatIsUnknown) {
  Example example;
  example.profile.forward_flops.reset();
  EXPECT_EQ(example.text(), "model: 5,830 parameters\nfirst phase: 8 micro-batches of 8 samples\n");
  example.profile.model.layers.clear();
  example.plan.phases[0].num_micro_batches = 1;
  example.plan.global_batch_size = 1;
  EXPECT_EQ(example.text(), "first phase: 1 micro-batch of 1 sample\n");
  example.plan.phases.erase(example.plan.phases.begin());
  EXPECT_EQ(example.text(), "first phase: 4 micro-batches of 0 or 1 samples per replica\n");
}

TEST(ModelText, NamesLargeNumbersOfParameters) {
  Example example;
  for (const auto& [count, text] : {std::pair(999'999LL, "999,999 parameters"),
                                    {1'000'000, "1 million parameters"},
                                    {334'094'000, "334 million parameters"},
                                    {8'030'261'248, "8.03 billion parameters"},
                                    {405'853'388'800, "406 billion parameters"},
                                    {1'000'000'000'000, "1 trillion parameters"}}) {
    example.profile.model.layers.assign(1, {.name = "all", .parameter_count = count});
    EXPECT_THAT(example.text(), StartsWith(std::string("model: ") + text + ";"));
  }
}

TEST(ModelFigures, AreAddedToTheJson) {
  Example example;
  for (Device& device : example.cluster.devices) device.type = "V100";
  const nlohmann::ordered_json json = example.json();
  EXPECT_EQ(json.at("parameter_count"), 5830);
  EXPECT_EQ(json.at("flops_per_sample"), 30e9);
  EXPECT_EQ(json.at("flops_per_token"), 30e9 / 32);
  const auto& first = json.at("phases")[0];
  EXPECT_EQ(first.at("kept"), 1);
  EXPECT_EQ(first.at("micro_batch_size"), 8);
  EXPECT_DOUBLE_EQ(first.at("flops_per_second_per_device"), 4.8e12);
  EXPECT_DOUBLE_EQ(first.at("mfu"), 4.8 / 15.7);
  const auto& frozen = json.at("phases")[1];
  EXPECT_EQ(frozen.at("micro_batch_size"), 8) << "64 / (2 x 4)";
  EXPECT_FALSE(frozen.contains("flops_per_second_per_device"));
  EXPECT_FALSE(frozen.contains("mfu"));
}

TEST(ModelFigures, LeaveOutWhatIsUnknown) {
  Example example;
  EXPECT_FALSE(example.json().at("phases")[0].contains("mfu")) << "the peak of a cpu";
  example.profile.forward_flops.reset();
  const nlohmann::ordered_json json = example.json();
  EXPECT_FALSE(json.contains("flops_per_sample"));
  EXPECT_FALSE(json.contains("flops_per_token"));
  EXPECT_FALSE(json.at("phases")[0].contains("flops_per_second_per_device"));
  EXPECT_EQ(json.at("parameter_count"), 5830);
}

}  // namespace
}  // namespace frostpipe
