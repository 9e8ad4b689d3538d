#include "executor/data/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"

namespace frostpipe {
namespace {

using Strings = std::vector<std::string>;
using Ints = std::vector<int>;

struct Labelled {
  Ints labels;
  Strings label_names;
};

Split split_of(const Labelled& data, double fraction, std::uint64_t seed) {
  return hold_out(data.labels, static_cast<int>(data.label_names.size()), fraction, seed);
}

/// sizes[l] samples of label l, one label after the other.
Labelled with_labels(const std::vector<int>& sizes) {
  Labelled data;
  for (std::size_t label = 0; label < sizes.size(); ++label) {
    data.label_names.push_back(std::to_string(label));
    data.labels.insert(data.labels.end(), static_cast<std::size_t>(sizes[label]), static_cast<int>(label));
  }
  return data;
}

/// The number of samples with each label.
Ints counts(const Labelled& data, const Ints& samples) {
  Ints result(data.label_names.size());
  for (const int sample : samples) ++result[static_cast<std::size_t>(data.labels[static_cast<std::size_t>(sample)])];
  return result;
}

void expect_partition(const Labelled& data, const Split& split) {
  EXPECT_TRUE(std::is_sorted(split.train.begin(), split.train.end()));
  EXPECT_TRUE(std::is_sorted(split.test.begin(), split.test.end()));
  Ints all = split.train;
  all.insert(all.end(), split.test.begin(), split.test.end());
  std::sort(all.begin(), all.end());
  Ints expected(data.labels.size());
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST(LabelsOfOneSample, AreNamed) {
  EXPECT_EQ(labels_of_one_sample({2, 0, 2, 3}, {"a", "b", "c", "d"}), (Strings{"a", "d"}));
  EXPECT_EQ(labels_of_one_sample({0, 0}, {"a"}), Strings{});
}

TEST(HoldOut, TakesOfEachLabelInProportion) {
  const Labelled data = with_labels({100, 50, 30, 20});
  const Split split = split_of(data, 0.1, 7);
  expect_partition(data, split);
  EXPECT_EQ(counts(data, split.test), (Ints{10, 5, 3, 2}));
}

TEST(HoldOut, LargestRemaindersGetTheRest) {
  // The quotas 2.5, 1.25, 1.25 of round(5.0) = 5 are rounded down to 2, 1, 1; the first label has the largest
  // remainder.
  const Labelled data = with_labels({10, 5, 5});
  EXPECT_EQ(counts(data, split_of(data, 0.25, 1).test), (Ints{3, 1, 1}));
  // Ten labels of four samples at a tenth: 0.4 each, 4 in all, which are taken from the first labels.
  const Labelled many = with_labels(Ints(10, 4));
  EXPECT_EQ(counts(many, split_of(many, 0.1, 1).test), (Ints{1, 1, 1, 1, 0, 0, 0, 0, 0, 0}));
}

TEST(HoldOut, LeavesEveryLabelASampleForTraining) {
  const Labelled data = with_labels({1, 2, 97});
  const Split split = split_of(data, 0.99, 3);
  expect_partition(data, split);
  EXPECT_EQ(counts(data, split.train), (Ints{1, 1, 1}));
  EXPECT_EQ(counts(with_labels({3, 3}), split_of(with_labels({3, 3}), std::nextafter(1.0, 0.0), 3).train),
            (Ints{1, 1}));
}

TEST(HoldOut, AnyFractionAboveZeroTakesAtLeastOne) {
  const Labelled data = with_labels({3, 3});
  EXPECT_EQ(split_of(data, 0.0, 1).test, Ints{});
  EXPECT_EQ(split_of(data, 1e-9, 1).test.size(), 1u);
  EXPECT_THROW(split_of(with_labels({1, 1}), 0.5, 1), InvalidInput);
  EXPECT_EQ(split_of(with_labels({1, 1}), 0.0, 1).train, (Ints{0, 1}));
  for (const double fraction : {-0.1, 1.0, 2.0, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(split_of(data, fraction, 1), InvalidInput) << fraction;
}

TEST(HoldOut, DependsOnTheSeedAlone) {
  const Labelled data = with_labels({50, 50});
  EXPECT_EQ(split_of(data, 0.2, 5), split_of(data, 0.2, 5));
  EXPECT_NE(split_of(data, 0.2, 5), split_of(data, 0.2, 6));
}

// Worked out by a second program in another language (mt19937_64, splitmix64 and Fisher-Yates written out).
TEST(HoldOut, IsTheSameOnEveryPlatform) {
  Labelled alternating = with_labels({10, 10});
  for (std::size_t i = 0; i < 20; ++i) alternating.labels[i] = static_cast<int>(i % 2);
  EXPECT_EQ(split_of(alternating, 0.2, 42).test, (Ints{4, 9, 13, 18}));
}

TEST(HoldOut, ChoosesEverySampleAboutEquallyOften) {
  const Labelled data = with_labels({10, 20});
  Ints chosen(30);
  for (std::uint64_t seed = 0; seed < 2000; ++seed)
    for (const int sample : split_of(data, 0.3, seed).test) ++chosen[static_cast<std::size_t>(sample)];
  // Expected 600; standard deviation sqrt(2000 * 0.3 * 0.7) = 20.5.
  EXPECT_GT(*std::min_element(chosen.begin(), chosen.end()), 600 - 5 * 21);
  EXPECT_LT(*std::max_element(chosen.begin(), chosen.end()), 600 + 5 * 21);
}

TEST(EpochOrder, IsTheSameOnEveryPlatform) {
  // As above, from a second program.
  EXPECT_EQ(epoch_order(10, 0, 0), (Ints{6, 1, 2, 4, 7, 5, 3, 0, 9, 8}));
  EXPECT_EQ(epoch_order(10, 0, 1), (Ints{7, 4, 3, 6, 9, 5, 2, 8, 0, 1}));
  EXPECT_EQ(epoch_order(10, 1, 0), (Ints{5, 0, 8, 7, 3, 1, 9, 6, 4, 2}));
  EXPECT_EQ(epoch_order(10, std::numeric_limits<std::uint64_t>::max(), 7), (Ints{5, 4, 1, 6, 9, 0, 8, 3, 2, 7}));
}

TEST(EpochOrder, IsAPermutation) {
  for (const int num_samples : {0, 1, 2, 3, 1000}) {
    Ints order = epoch_order(num_samples, 11, 4);
    std::sort(order.begin(), order.end());
    Ints expected(static_cast<std::size_t>(num_samples));
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(order, expected);
  }
}

TEST(EpochOrder, DiffersBetweenEpochsAndSeeds) {
  std::vector<Ints> orders;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (int epoch = 0; epoch < 10; ++epoch) orders.push_back(epoch_order(50, seed, epoch));
  std::sort(orders.begin(), orders.end());
  EXPECT_EQ(std::unique(orders.begin(), orders.end()), orders.end());
}

TEST(EpochOrder, EveryPermutationOfThreeIsAboutEquallyLikely) {
  std::vector<int> seen(27);
  for (int epoch = 0; epoch < 6000; ++epoch) {
    const Ints order = epoch_order(3, 2024, epoch);
    ++seen[static_cast<std::size_t>(9 * order[0] + 3 * order[1] + order[2])];
  }
  // Expected 1000 of each; standard deviation sqrt(6000 / 6 * 5 / 6) = 28.9.
  for (const int count : seen) EXPECT_TRUE(count == 0 || (count > 1000 - 150 && count < 1000 + 150)) << count;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 0), 27 - 6);
}

}  // namespace
}  // namespace frostpipe
