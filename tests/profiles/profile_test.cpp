#include "profiles/profile.h"

#include <limits>
#include <random>

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::chain_model;
using examples::key_of;
using examples::message_of;
using examples::with;
using testing::EndsWith;
using testing::HasSubstr;

/// Layer 1 on the grid {2, 4, 8} x {16, 32} with forward_ns = 10 size x tokens + 3, which is linear in each, so
/// bilinear interpolation is exact.
Nanoseconds plane(int size, int tokens) { return 10LL * size * tokens + 3; }

Profile grid_profile() {
  Profile profile;
  profile.model = chain_model(1);
  for (const int size : {2, 4, 8})
    for (const int tokens : {16, 32})
      profile.measurements.push_back(
          {.key = key_of(1, size, tokens),
           .cost = {.forward_ns = plane(size, tokens), .saved_activation_bytes = size * tokens}});
  return profile;
}

TEST(CostOf, IsTheMeasurementItselfWhereThereIsOne) {
  EXPECT_EQ(cost_of(grid_profile(), key_of(1, 4, 32)).forward_ns, plane(4, 32));
}

TEST(CostOf, AnEmptyMicroBatchCostsNothing) {
  EXPECT_EQ(cost_of(grid_profile(), key_of(1, 0, 32)), LayerCost{});
  EXPECT_EQ(cost_of(grid_profile(), key_of(99, 0, 999)), LayerCost{});
}

TEST(CostOf, IsBilinearBetweenFourNeighbours) {
  const Profile profile = grid_profile();
  for (const int size : {2, 3, 4, 5, 6, 7, 8})
    for (const int tokens : {16, 20, 24, 32}) {
      EXPECT_EQ(cost_of(profile, key_of(1, size, tokens)).forward_ns, plane(size, tokens)) << size << " x " << tokens;
      EXPECT_EQ(cost_of(profile, key_of(1, size, tokens)).saved_activation_bytes, size * tokens);
    }
}

TEST(CostOf, GoesOnLinearlyToHalfTheSmallestAndTwiceTheLargest) {
  const Profile profile = grid_profile();
  for (const int size : {1, 16})
    for (const int tokens : {8, 64})
      EXPECT_EQ(cost_of(profile, key_of(1, size, tokens)).forward_ns, plane(size, tokens));
}

TEST(CostOf, IsNeverNegative) {
  Profile profile;
  profile.model = chain_model(1);
  // 100 ns at 10, 2100 ns at 20: the line meets zero at 9.5, and 5 would cost -900.
  for (const int size : {10, 20})
    profile.measurements.push_back({.key = key_of(1, size, 16), .cost = {.forward_ns = 100 + (size - 10) * 200}});
  EXPECT_EQ(cost_of(profile, key_of(1, 15, 16)).forward_ns, 1100);
  EXPECT_EQ(cost_of(profile, key_of(1, 5, 16)).forward_ns, 0);
}

TEST(CostOf, FartherOutIsAnErrorThatNamesKeyAndRange) {
  const auto error_of = [](const MeasurementKey& key) { return message_of([&] { cost_of(grid_profile(), key); }); };
  const auto too_large = error_of(key_of(1, 17, 16));
  EXPECT_THAT(too_large, HasSubstr("layer 1 on cpu in float32"));
  EXPECT_THAT(too_large, HasSubstr("micro-batch size must be"));
  EXPECT_THAT(too_large, HasSubstr("(2..8), is 17"));
  EXPECT_THAT(error_of(key_of(1, 2, 7)), HasSubstr("(16..32), is 7"));
  EXPECT_THAT(error_of(key_of(1, 2, 65)), HasSubstr("(16..32), is 65"));
  EXPECT_THAT(error_of(key_of(0, 2, 16)), HasSubstr("layer 0 on cpu in float32"));
  auto other = key_of(1, 2, 16);
  other.device_type = "H200";
  EXPECT_THAT(error_of(other), HasSubstr("on H200 in float32, context 0, tensor-parallel size 1: was not measured (the "
                                         "profile is of cpu; make one of H200 too)"));
  other = key_of(1, 2, 16);
  other.tensor_parallel_size = 2;
  EXPECT_THAT(error_of(other), HasSubstr("was not measured (profile --tensor-parallel 1,2)"));
  other = key_of(1, 2, 16);
  other.layer = 7;
  EXPECT_THAT(error_of(other), EndsWith("was not measured"));
}

TEST(CostOf, OneGridLineAnswersOnlyForItself) {
  Profile profile = grid_profile();
  std::erase_if(profile.measurements, [](const Measurement& m) { return m.key.tokens != 16; });
  EXPECT_EQ(cost_of(profile, key_of(1, 3, 16)).forward_ns, plane(3, 16));
  EXPECT_THAT(message_of([&] { cost_of(profile, key_of(1, 4, 17)); }), HasSubstr("number of tokens must be"));
}

TEST(CostOf, DoesNotMixContextsOrTensorParallelSizes) {
  Profile profile = grid_profile();
  for (auto measurement : grid_profile().measurements) {
    measurement.key.context_tokens = 64;
    measurement.cost.forward_ns *= 1000;
    profile.measurements.push_back(measurement);
  }
  const auto text = to_json(profile);
  const Profile sorted = profile_from_json(text, "p.json");  // reading sorts them
  auto key = key_of(1, 3, 24);
  EXPECT_EQ(cost_of(sorted, key).forward_ns, plane(3, 24));
  key.context_tokens = 64;
  EXPECT_EQ(cost_of(sorted, key).forward_ns, plane(3, 24) * 1000);
}

/// By hand: 1000 ns plus 100 per sample. Sizes are measured from 4, so 2 samples are still on the line, and 1 costs
/// half of 2.
TEST(ExpectedFrozenForward, IsOnTheMeasuredLineAndInProportionBelowIt) {
  Profile profile;
  profile.model = chain_model(1);
  for (const int size : {4, 8, 16})
    profile.measurements.push_back({.key = key_of(1, size, 8), .cost = {.frozen_forward_ns = 1000 + 100 * size}});
  const auto of = [&](double samples) { return expected_frozen_forward_ns(profile, key_of(1, 16, 8), samples); };
  EXPECT_EQ(of(16), 2600);
  EXPECT_EQ(of(8), 1800);
  EXPECT_EQ(of(6.25), 1625);
  EXPECT_EQ(of(2), 1200);
  EXPECT_EQ(of(1), 600);
  EXPECT_EQ(of(0), 0);
  profile.measurements.resize(1);
  EXPECT_EQ(expected_frozen_forward_ns(profile, key_of(1, 4, 8), 1), 350);  // no line, so in proportion
}

TEST(UpdateCostOf, IsMeasuredOrAnError) {
  const Profile profile = examples::flat_profile(chain_model(1), 4, 16);
  EXPECT_EQ(update_cost_of(profile, 2, "cpu", DType::kFloat32, Optimizer::kAdamW), 50);
  EXPECT_EQ(message_of([&] { update_cost_of(profile, 2, "cpu", DType::kFloat32, Optimizer::kSgd); }),
            "profile of example: update of layer 2 on cpu in float32 by sgd: was not measured");
}

TEST(Profile, KnowsASplitBackwardWhereAllItsNeighboursDo) {
  Profile profile;
  for (const int size : {2, 4, 8})
    profile.measurements.push_back(
        {.key = key_of(1, size, 16),
         .cost = {.weight_gradient_ns = 100,
                  .split_backward = SplitBackward{.input_ns = 10 * size, .weight_ns = 30, .kept_bytes = 100 * size}}});
  const LayerCost cost = cost_of(profile, key_of(1, 3, 16));
  EXPECT_EQ(cost.split_backward, (SplitBackward{.input_ns = 30, .weight_ns = 30, .kept_bytes = 300}));
  EXPECT_EQ(split_backward_of(cost, /*with_input_gradient=*/true).input_ns, 30);
  EXPECT_EQ(split_backward_of(cost, /*with_input_gradient=*/false).input_ns, 70);  // the rest of 100
  profile.measurements[2].cost.split_backward.reset();
  EXPECT_TRUE(cost_of(profile, key_of(1, 3, 16)).split_backward);
  EXPECT_FALSE(cost_of(profile, key_of(1, 6, 16)).split_backward);
  EXPECT_EQ(message_of([&] { split_backward_of(cost_of(profile, key_of(1, 8, 16)), true); }),
            "profile: split_backward: must be measured for a schedule that splits it; profile again, is missing");
}

}  // namespace
}  // namespace frostpipe
