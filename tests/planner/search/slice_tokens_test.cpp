// Oracles: all 2^11 cuts of 12 tokens, and optima derived by hand for four invented cost functions.
#include "planner/search/slice_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "base/error.h"
#include "tests/support/batch_slices.h"

namespace frostpipe {
namespace {

constexpr int kTokens = 12;

Nanoseconds total_of(const std::vector<int>& lengths, int stages, int sequences, const SliceTime& time) {
  Nanoseconds sum = 0, longest = 0;
  int context = 0;
  for (const int length : lengths) {
    sum += time(length, context);
    longest = std::max(longest, time(length, context));
    context += length;
  }
  return sequences * sum + (stages - 1) * longest;
}

Nanoseconds brute_force(int stages, int sequences, const SliceTime& time) {
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
  for (int cuts = 0; cuts < 1 << (kTokens - 1); ++cuts) {
    std::vector<int> lengths{1};
    for (int i = 0; i + 1 < kTokens; ++i) {
      if (cuts >> i & 1)
        lengths.push_back(1);
      else
        ++lengths.back();
    }
    best = std::min(best, total_of(lengths, stages, sequences, time));
  }
  return best;
}

// Times are in hundredths.
Nanoseconds triangle(int length, int context) { return 100 * (length * context + length * (length + 1) / 2); }
Nanoseconds triangle_and_length(int length, int context) { return triangle(length, context) + 200 * length; }
Nanoseconds with_start(int length, int context) { return 400 + 100 * length + 25 * length * context; }
Nanoseconds with_floor(int length, int context) {
  return std::max(600, 200 + 100 * length) + 10 * context + 5 * length * context;
}

TEST(SliceTokens, FindsTheDerivedOptima) {
  const auto time = [](int stages, const SliceTime& cost) { return slice_tokens(kTokens, 1, stages, 1, cost).time_ns; };
  EXPECT_EQ(time(3, triangle), 10200);
  EXPECT_EQ(time(3, triangle_and_length), 13000);
  EXPECT_EQ(time(8, triangle_and_length), 20000);
  EXPECT_EQ(time(3, with_start), 4800);
  EXPECT_EQ(time(8, with_start), 11425);
  EXPECT_EQ(time(3, with_floor), 3735);
  EXPECT_EQ(time(8, with_floor), 7980);
  EXPECT_EQ(slice_tokens(kTokens, 1, 8, 1, with_start).lengths, (std::vector<int>{6, 2, 2, 1, 1}));
  EXPECT_EQ(total_of({4, 4, 4}, 3, 1, triangle), 16200);
}

TEST(SliceTokens, EqualsBruteForceOnRandomCosts) {
  std::mt19937 random(1);
  for (int run = 0; run < 60; ++run) {
    std::vector<Nanoseconds> table((kTokens + 1) * kTokens);
    for (auto& cost : table) cost = 1 + random() % 500;
    const SliceTime time = [&](int length, int context) { return table[length * kTokens + context]; };
    const int stages = 1 + static_cast<int>(random() % 20), sequences = 1 + static_cast<int>(random() % 4);
    const TokenSlices found = slice_tokens(kTokens, 1, stages, sequences, time);
    EXPECT_EQ(found.time_ns, brute_force(stages, sequences, time));
    EXPECT_EQ(found.time_ns, total_of(found.lengths, stages, sequences, time));
    EXPECT_EQ(std::accumulate(found.lengths.begin(), found.lengths.end(), 0), kTokens);
  }
}

TEST(SliceTokens, ToleranceBoundsTheLoss) {
  for (const int stages : {3, 8, 40}) {
    const Nanoseconds exact = slice_tokens(kTokens, 1, stages, 1, with_floor).time_ns,
                      near = slice_tokens(kTokens, 1, stages, 1, with_floor, 50).time_ns;
    EXPECT_GE(near, exact);
    EXPECT_LE(near, exact + (kTokens + stages) * 50);
  }
}

TEST(SliceTokens, RefusesWhatDoesNotDivide) {
  EXPECT_THROW(slice_tokens(12, 5, 2, 1, triangle), InvalidInput);
  EXPECT_THROW(slice_tokens(12, 1, 0, 1, triangle), InvalidInput);
}

// Bounds that are close together must not hide the longest slice: one slice of 12 takes 1200; one of 11 takes 1199 and
// leaves a token that takes 600.
TEST(SliceTokens, AToleranceCostsAtMostItselfForEveryFurtherStage) {
  const SliceTime nearly_flat = [](int length, int) {
    return Nanoseconds{length == 12 ? 1200 : length == 11 ? 1199 : 600 + 50 * length};
  };
  EXPECT_EQ(slice_tokens(kTokens, 1, 2, 50, nearly_flat, 10).lengths, (std::vector<int>{12}));
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Nanoseconds> table(static_cast<std::size_t>(kTokens + 1) * kTokens);
    for (Nanoseconds& one : table) one = 1 + random() % 100;
    const SliceTime time = [&](int length, int context) { return table[length * kTokens + context]; };
    const int stages = 1 + static_cast<int>(random() % 6), sequences = 1 + static_cast<int>(random() % 4),
              tolerance = 1 + static_cast<int>(random() % 40);
    EXPECT_LE(slice_tokens(kTokens, 1, stages, sequences, time, tolerance).time_ns,
              brute_force(stages, sequences, time) + (stages - 1) * tolerance);
  }
}

TEST(SliceBatchAndTokens, IsTheBestOfAllWaysToCut) {
  // Oracle: recursion over every composition of the batch and, for each batch slice, of the tokens.
  std::mt19937 random(51);
  for (int round = 0; round < 40; ++round) {
    const int sequences = 1 + static_cast<int>(random() % 4), tokens = 2 + static_cast<int>(random() % 4),
              stages = 1 + static_cast<int>(random() % 6);
    const int together = 1 + static_cast<int>(random() % sequences);
    const Nanoseconds start = random() % 30, per_token = 1 + random() % 10, context_share = random() % 3;
    const auto time = [&](int b, int length, int context) {
      return start + std::max<Nanoseconds>(8, b * length * (per_token + context_share * context));
    };
    Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
    const auto cut = [&](auto&& self, int sequences_left, int b, int done, Nanoseconds sum,
                         Nanoseconds longest) -> void {
      if (b == 0) {
        if (sequences_left == 0) best = std::min(best, sum + (stages - 1) * longest);
        for (int next = 1; next <= std::min(together, sequences_left); ++next)
          self(self, sequences_left - next, next, 0, sum, longest);
        return;
      }
      for (int length = 1; done + length <= tokens; ++length) {
        const Nanoseconds one = time(b, length, done);
        self(self, sequences_left, done + length == tokens ? 0 : b, done + length == tokens ? 0 : done + length,
             sum + one, std::max(longest, one));
      }
    };
    cut(cut, sequences, 0, 0, 0, 0);
    const test::BatchSlices made = test::slice_batch_and_tokens(
        {.sequences = sequences, .most_together = together, .tokens = tokens, .stages = stages}, time);
    EXPECT_EQ(made.time_ns, best) << round;
    EXPECT_EQ(std::accumulate(made.sequences.begin(), made.sequences.end(), 0), sequences);
  }
}

TEST(SliceBatchAndTokens, OfOneSequenceIsSliceTokens) {
  const auto time = [](int length, int context) { return Nanoseconds{40} + 3 * length + length * context / 8; };
  const test::BatchSlices joint = test::slice_batch_and_tokens(
      {.tokens = 64, .step = 8, .stages = 6}, [&](int, int length, int context) { return time(length, context); });
  const TokenSlices alone = slice_tokens(64, 8, 6, 1, time);
  EXPECT_EQ(joint.time_ns, alone.time_ns);
}

}  // namespace
}  // namespace frostpipe
