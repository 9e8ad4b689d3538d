// Oracle: operations and rates counted by hand; peaks from datasheets.
#include "simulator/model_flops.h"

#include <gtest/gtest.h>

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

/// Two stages and two replicas on ranks 0 to 3 of 5. 64 samples of 32 tokens, 1 TFLOP each forward, in 100 ms.
struct Example {
  Profile profile = examples::flat_profile(examples::chain_model(1), 8, 32);
  Cluster cluster = examples::cluster_of(5);
  TrainingPlan plan;
  Example() {
    profile.workload = Workload{.tokens = 31.75};
    profile.forward_flops = 1e12;
    for (Device& device : cluster.devices) device.type = "H100";
    plan.world_size = 5;
    plan.global_batch_size = 64;
    plan.dtype = DType::kBFloat16;
    Phase phase = examples::two_stages();
    phase.layout.data_parallel_size = 2;
    phase.num_micro_batches = 4;
    phase.tokens = 32;
    phase.predicted.iteration_ns = 100'000'000;
    plan.phases = {phase};
  }
  std::optional<DeviceFlops> flops() const { return device_flops(plan.phases[0], plan, profile, cluster); }
};

TEST(ModelFlops, CountTheBackwardTwice) {
  const Example example;
  const std::optional<TrainingFlops> flops = training_flops(example.profile);
  ASSERT_TRUE(flops);
  EXPECT_EQ(flops->per_sample, 3e12);
  EXPECT_EQ(flops->tokens, 32) << "31.75 rounded";
  EXPECT_EQ(flops->per_token, 3e12 / 32);
}

TEST(ModelFlops, AreUnknownWithoutTheForwardOrItsTokens) {
  Example example;
  example.profile.workload.reset();
  EXPECT_FALSE(training_flops(example.profile));
  EXPECT_FALSE(example.flops());
  example = Example();
  example.profile.forward_flops.reset();
  EXPECT_FALSE(training_flops(example.profile));
  EXPECT_FALSE(example.flops());
}

/// 64 x 3 TFLOP in 0.1 s on 4 devices: 480 TFLOP/s each, of 989 in bfloat16 and 67 in float32 on an H100 and 312 in
/// bfloat16 on an A100.
TEST(ModelFlops, AreAPartOfThePeaksOfTheDevicesThatAreUsed) {
  Example example;
  example.cluster.devices[4].type = "cpu";  // idle
  ASSERT_TRUE(example.flops());
  EXPECT_DOUBLE_EQ(example.flops()->per_second, 480e12);
  EXPECT_DOUBLE_EQ(example.flops()->utilisation.value(), 480.0 / 989);
  example.plan.dtype = DType::kFloat32;
  EXPECT_DOUBLE_EQ(example.flops()->utilisation.value(), 480.0 / 67);
  example.plan.dtype = DType::kBFloat16;
  example.cluster.devices[2].type = example.cluster.devices[3].type = "a100";
  EXPECT_DOUBLE_EQ(example.flops()->utilisation.value(), 480.0 / ((989 + 312) / 2.0));
}

TEST(ModelFlops, HaveNoPeakWhereOneIsUnknown) {
  Example example;
  for (const char* type : {"cpu", "mine", "V100"}) {  // V100 lacks bfloat16
    example.cluster.devices[3].type = type;
    ASSERT_TRUE(example.flops());
    EXPECT_DOUBLE_EQ(example.flops()->per_second, 480e12);
    EXPECT_FALSE(example.flops()->utilisation) << type;
  }
}

TEST(ModelFlops, AreOfTheWholeModelAndOfTheWorkloadsSamples) {
  Example example;
  example.plan.phases[0].first_trainable_layer = 1;
  EXPECT_FALSE(example.flops()) << "something is frozen";
  example = Example();
  example.plan.phases[0].tokens = 16;
  EXPECT_FALSE(example.flops()) << "plan --tokens 16";
}

TEST(ParameterCount, CountsTiedParametersOnce) {
  Model model = examples::chain_model(2);
  EXPECT_EQ(parameter_count(model), 1000 + 2 * (400 + 800) + 30);
  model.tied_parameter_count = 20;
  EXPECT_EQ(parameter_count(model), 1000 + 2 * (400 + 800) + 10);
}

/// 64 samples over 2 replicas of 4 micro-batches, and 65.
TEST(MicroBatchSize, IsTheMean) {
  const Example example;
  EXPECT_EQ(micro_batch_size(example.plan.phases[0], 64), 8);
  EXPECT_EQ(micro_batch_size(example.plan.phases[0], 65), 8.125);
}

}  // namespace
}  // namespace frostpipe
