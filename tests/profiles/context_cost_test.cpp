// Costs of token slices by length and context. Oracle: the closed form t = a0 + a1 l + a2 c + a3 l c.
#include "profiles/profile.h"
#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::chain_model;
using examples::key_of;
using examples::message_of;
using testing::HasSubstr;

/// Layer 1 in slices of 2, 4 and 8 tokens after 0 and 4 others: t = a0 + a1 l + a2 c + a3 l c, which is linear in each.
Profile sliced_profile() {
  Profile profile;
  profile.model = chain_model(1);
  for (const int size : {1, 4})
    for (const int length : {2, 4, 8})
      for (const int context : {0, 4}) {
        if (context + length > 8) continue;
        MeasurementKey key = key_of(1, size, length);
        key.context_tokens = context;
        profile.measurements.push_back(
            {.key = key, .cost = {.forward_ns = size * (1000 + 300 * length + 70 * context + 11 * length * context)}});
      }
  return profile;
}

TEST(CostOf, IsLinearBetweenContextsAndBeyondThem) {
  const Profile profile = sliced_profile();
  for (const int size : {1, 3, 8})
    for (const auto& [length, context] : {std::pair{2, 4}, {4, 4}, {8, 0}, {3, 2}, {5, 1}, {5, 3}, {1, 7}, {2, 6}}) {
      MeasurementKey key = key_of(1, size, length);
      key.context_tokens = context;
      EXPECT_EQ(cost_of(profile, key).forward_ns, size * (1000 + 300 * length + 70 * context + 11 * length * context))
          << size << " x " << length << " after " << context;
    }
  MeasurementKey too_far = key_of(1, 1, 2);
  too_far.context_tokens = 9;
  EXPECT_THAT(message_of([&] { cost_of(profile, too_far); }), HasSubstr("(0..4), is 9"));
}

TEST(CostOfSlice, IsTheCostAfterItsContextAndNeverOfLessThanHalfTheShortest) {
  Profile profile = sliced_profile();
  const auto of = [&](int length, int context) {
    MeasurementKey key = key_of(1, 4, length);
    key.context_tokens = context;
    return cost_of_slice(profile, key);
  };
  EXPECT_EQ(of(3, 2)->forward_ns, 4 * (1000 + 900 + 140 + 66));
  std::erase_if(profile.measurements, [](const Measurement& one) { return one.key.tokens == 2; });
  EXPECT_EQ(of(1, 0)->forward_ns, 4 * (1000 + 600));  // costs as much as a slice of 2 tokens
  std::erase_if(profile.measurements, [](const Measurement& one) { return one.key.context_tokens > 0; });
  EXPECT_EQ(of(4, 0), std::nullopt);
}

}  // namespace
}  // namespace frostpipe
