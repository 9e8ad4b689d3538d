#include "serving/serving_profile.h"

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::chain_model;
using examples::flat_profile;
using examples::message_of;
using testing::ElementsAre;

/// Layers of a chain of one block measured at 1 to 3 samples of 1 token: 100, 110, 120 ns x (1 + layer).
Profile measured(const std::string& type) {
  Profile profile = flat_profile(chain_model(1), 1, 1);
  profile.measurements.clear();
  for (int layer = 0; layer < 4; ++layer)
    for (int size = 1; size <= 3; ++size)
      profile.measurements.push_back({.key = {.layer = layer, .device_type = type, .micro_batch_size = size},
                                      .cost = {.forward_ns = 5000,
                                               .frozen_forward_ns = (90 + 10 * size) * (1 + layer),
                                               .output_activation_bytes = 1000 * (layer + 1) * size,
                                               .workspace_bytes = 7}});
  return profile;
}

TEST(ServingProfile, HasTheForwardsOfEveryTypeAndShare) {
  const auto profile = serving_profile_of({measured("L4"), measured("1/2 L4")}, DType::kFloat32, 1, 3);
  ASSERT_EQ(profile.times.size(), 2u);
  EXPECT_THAT(measured_shares(profile, "L4"), ElementsAre(1, 2));
  EXPECT_THAT(find_times(profile, "L4", 2)->forward_ns[3], ElementsAre(400, 440, 480));
  EXPECT_THAT(profile.cut_bytes, ElementsAre(1000, 2000, 3000));
  EXPECT_THAT(profile.weight_bytes, ElementsAre(4000, 1600, 3200, 120));  // float32
  EXPECT_EQ(find_times(profile, "P4", 1), nullptr);
}

TEST(ServingProfile, TakesTheTrainingForwardWhereFrozenLayersComputedInAnotherType) {
  Profile profile = measured("L4");
  profile.frozen_dtype = DType::kBFloat16;
  EXPECT_EQ(serving_profile_of({profile}, DType::kFloat32, 1, 1).times[0].forward_ns[0][0], 5000);
}

// Sums of two layers for batches of 1 to 4: 90, 100, 95, 70 ns; the last is shorter by 30 of 100.
TEST(ServingProfile, NamesTheLargestFallOfTheModelsTimeIfItIsMoreThanATenth) {
  ServingProfile profile{.model_name = "net", .block_ends = {1, 2}, .cut_bytes = {1}};
  profile.times = {{.device_type = "L4", .share = 2, .forward_ns = {{50, 60, 55, 60}, {40, 40, 40, 10}}}};
  EXPECT_EQ(
      find_falling_time(profile),
      (FallingTime{.device_type = "L4", .share = 2, .smaller = 2, .larger = 4, .smaller_ns = 100, .larger_ns = 70}));
  profile.times[0].forward_ns[1][3] = 30;
  EXPECT_EQ(find_falling_time(profile), std::nullopt) << "90 of 100 is a tenth";
}

TEST(ServingProfile, HasNoTimeThatFallsAsTheBatchGrows) {
  ServingProfile profile{.model_name = "net", .block_ends = {1, 2}, .cut_bytes = {1}};
  profile.times = {{.device_type = "L4", .forward_ns = {{50, 60, 55, 60}, {40, 41, 40, 10}}}};
  EXPECT_THAT(without_falling_times(profile).times[0].forward_ns,
              ElementsAre(ElementsAre(50, 55, 55, 60), ElementsAre(10, 10, 10, 10)));
}

TEST(ServingProfile, JoinsNeighbouringBlocks) {
  const auto joined = join_blocks(serving_profile_of({measured("L4")}, DType::kFloat32, 1, 2), {1, 4});
  EXPECT_THAT(joined.block_ends, ElementsAre(1, 4));
  EXPECT_THAT(joined.cut_bytes, ElementsAre(1000));
  EXPECT_THAT(joined.weight_bytes, ElementsAre(4000, 1600 + 3200 + 120));
  EXPECT_THAT(joined.times[0].forward_ns[1], ElementsAre(900, 990));       // 100 x (2 + 3 + 4), 110 x 9
  EXPECT_THAT(joined.times[0].working_bytes[1], ElementsAre(4007, 8007));  // of the head
}

// Layers of 100, 200, 300 and 400 ns, of which the first two are shared: they give 2000 bytes per request.
TEST(ServingProfile, OfSeveralHeadsHasTheLayersBehindTheSharedOnesOncePerHead) {
  const auto heads = with_heads(serving_profile_of({measured("L4")}, DType::kFloat32, 1, 2), 2, 3);
  EXPECT_THAT(heads.times[0].forward_ns, ElementsAre(ElementsAre(100, 110), ElementsAre(200, 220),
                                                     ElementsAre(900, 990), ElementsAre(1200, 1320)));
  EXPECT_THAT(heads.weight_bytes, ElementsAre(4000, 1600, 3 * 3200, 3 * 120));
  EXPECT_THAT(heads.cut_bytes, ElementsAre(1000, 2000, 3 * 3000));
  EXPECT_THAT(heads.times[0].working_bytes,
              ElementsAre(ElementsAre(1007, 2007), ElementsAre(2007, 4007), ElementsAre(3007 + 2000, 6007 + 4000),
                          ElementsAre(4007 + 2000, 8007 + 4000)));
}

// 150 layers with the longest time that a file can have; the sum over 64 heads would exceed 64 bits.
TEST(ServingProfile, OfSeveralHeadsHasNoLayerThatIsLongerThanAFileCanSay) {
  constexpr Nanoseconds kLongest = 1'000'000'000'000'000;
  ServingProfile layers{.weight_bytes = std::vector<Bytes>(150, 1), .cut_bytes = std::vector<Bytes>(149, 1)};
  for (int layer = 1; layer <= 150; ++layer) layers.block_ends.push_back(layer);
  layers.times = {{.device_type = "L4", .forward_ns = std::vector<std::vector<Nanoseconds>>(150, {kLongest})}};
  const auto joined = join_blocks(with_heads(layers, 1, 64), {150});
  EXPECT_THAT(joined.times[0].forward_ns, ElementsAre(ElementsAre(150 * kLongest)));
}

TEST(ServingProfile, RefusesTwoProfilesOfOneDeviceType) {
  EXPECT_THAT(message_of([] {
                serving_profile_of({measured("L4"), measured("L4")}, DType::kFloat32, 1, 1);
              }),
              testing::HasSubstr("must be of different device types, is \"L4\" twice"));
}

TEST(ServingProfile, RefusesProfilesOfDifferentModels) {
  Profile other = flat_profile(chain_model(2), 1, 1);
  EXPECT_THAT(message_of([&] {
                serving_profile_of({measured("L4"), other}, DType::kFloat32, 1, 1);
              }),
              testing::HasSubstr("the profiles are of different models"));
}

}  // namespace
}  // namespace frostpipe
