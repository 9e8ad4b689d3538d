#include "profiles/join_profiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace frostpipe {
namespace {

NamedProfile profile_on(const std::string& device_type, Nanoseconds forward_ns) {
  Profile profile{.model = {.name = "two layers", .hidden_size = 4}};
  for (int layer = 0; layer < 2; ++layer) {
    profile.measurements.push_back(
        {.key = {.layer = layer, .device_type = device_type}, .cost = {.forward_ns = forward_ns + layer}});
    profile.updates.push_back({.layer = layer, .device_type = device_type, .update_ns = forward_ns});
  }
  return {.name = device_type + ".json", .profile = profile};
}

std::string refusal(const std::vector<NamedProfile>& profiles) {
  try {
    join_profiles(profiles);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(JoinProfiles, EachDeviceTypeKeepsItsCosts) {
  const Profile joined = join_profiles({profile_on("fast", 10), profile_on("slow", 70)});
  for (const auto& [type, forward_ns] : {std::pair("fast", 10), std::pair("slow", 70)}) {
    for (int layer = 0; layer < 2; ++layer) {
      EXPECT_EQ(cost_of(joined, {.layer = layer, .device_type = type}).forward_ns, forward_ns + layer);
      EXPECT_EQ(update_cost_of(joined, layer, type, DType::kFloat32, Optimizer::kAdamW), forward_ns);
    }
  }
  EXPECT_TRUE(std::ranges::is_sorted(joined.measurements, {}, &Measurement::key)) << "cost_of searches by bisection";
}

TEST(JoinProfiles, KeepTheOperationsThatAllAgreeOn) {
  std::vector<NamedProfile> profiles = {profile_on("fast", 10), profile_on("slow", 70), profile_on("slower", 90)};
  for (NamedProfile& one : profiles) one.profile.forward_flops = 1e9;
  EXPECT_EQ(join_profiles(profiles).forward_flops, 1e9);
  profiles[1].profile.forward_flops = 2e9;
  EXPECT_EQ(join_profiles(profiles).forward_flops, std::nullopt);
  profiles[1].profile.forward_flops.reset();
  EXPECT_EQ(join_profiles(profiles).forward_flops, std::nullopt);
}

TEST(JoinProfiles, OneIsItself) {
  const NamedProfile only = profile_on("fast", 10);
  EXPECT_EQ(join_profiles({only}), only.profile);
}

TEST(JoinProfiles, ProfilesThatDoNotFitAreNamed) {
  NamedProfile other = profile_on("slow", 70);
  EXPECT_EQ(refusal({profile_on("fast", 10), profile_on("fast", 11)}),
            "fast.json: measurements: device_type: must be one that the profiles before it have not measured, is fast");
  other.profile.model.name = "three layers";
  EXPECT_EQ(refusal({profile_on("fast", 10), other}),
            "slow.json: model: must be that of fast.json, two layers, is three layers");
  other = profile_on("slow", 70);
  for (Measurement& measurement : other.profile.measurements) measurement.key.dtype = DType::kBFloat16;
  EXPECT_EQ(refusal({profile_on("fast", 10), other}), "slow.json: is measured in other dtypes than fast.json");
}

}  // namespace
}  // namespace frostpipe
