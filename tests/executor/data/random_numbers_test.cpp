#include "executor/data/random_numbers.h"

#include <gtest/gtest.h>

#include <array>

namespace frostpipe {
namespace {

// Oracle: the first numbers of the published generator (java.util.SplittableRandom) with seed 1234567; each adds
// 0x9E3779B97F4A7C15 to its state.
TEST(RandomNumbers, AreThoseOfSplitmix64) {
  constexpr std::array<std::uint64_t, 5> kExpected{6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                                   4593380528125082431u, 16408922859458223821u};
  std::uint64_t state = 1234567;
  for (const std::uint64_t expected : kExpected) {
    EXPECT_EQ(mixed(state), expected);
    state += 0x9E3779B97F4A7C15;
  }
}

}  // namespace
}  // namespace frostpipe
