// Oracle: samples whose input is their number, and which record when they are loaded.
#include "executor/loading/batch_loader.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace frostpipe {
namespace {

using Ints = std::vector<int>;

class NumberedSamples final : public Samples {
 public:
  int size() const override { return 10; }
  int tokens(int) const override { return 1; }
  std::uint64_t key(int sample) const override { return static_cast<std::uint64_t>(sample); }
  std::vector<std::int64_t> distinct_tokens(std::span<const int>) const override { return {}; }
  std::uint64_t fingerprint() const override { return 0; }
  MicroBatch load(const MiniBatch&, std::span<const int> samples, at::ScalarType, bool) const override {
    const std::lock_guard lock(mutex_);
    loads_.emplace_back(samples.begin(), samples.end());
    MicroBatch batch;
    batch.lengths.assign(samples.size(), 1);
    batch.input = at::tensor(at::ArrayRef<int>(samples.data(), samples.size()), at::kInt);
    return batch;
  }
  std::vector<Ints> loads() const {
    const std::lock_guard lock(mutex_);
    return loads_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<Ints> loads_;
};

class BatchLoaderTest : public testing::Test {
 protected:
  Ints taken(SampleRange range) const {
    const at::Tensor input = loader_.take(range).input;
    return {input.data_ptr<int>(), input.data_ptr<int>() + input.numel()};
  }
  NumberedSamples samples_;
  BatchLoader loader_{samples_, at::kFloat, at::kCPU, /*with_input=*/true};
  const Ints first_numbers_{4, 2, 9, 7}, next_numbers_{1, 3, 5, 6};
  MiniBatch first_{.samples = first_numbers_, .lengths = {1, 1, 1, 1}, .epoch = 0},
      next_{.samples = next_numbers_, .lengths = {1, 1, 1, 1}, .epoch = 0};
};

TEST_F(BatchLoaderTest, HandsItsShareOutByRangesOfTheMiniBatch) {
  loader_.begin_iteration(first_, {1, 4}, nullptr, {});
  EXPECT_EQ(taken({1, 2}), (Ints{2}));
  EXPECT_EQ(taken({2, 4}), (Ints{9, 7}));
  EXPECT_EQ(samples_.loads(), (std::vector<Ints>{{2, 9, 7}})) << "the share alone, once";
}

TEST_F(BatchLoaderTest, SamplesThatWereReadAheadAreNotLoadedAgain) {
  loader_.begin_iteration(first_, {0, 2}, &next_, {2, 4});
  loader_.begin_iteration(next_, {2, 4}, nullptr, {});
  EXPECT_EQ(taken({2, 4}), (Ints{5, 6}));
  EXPECT_EQ(samples_.loads(), (std::vector<Ints>{{4, 2}, {5, 6}}));
}

TEST_F(BatchLoaderTest, AnotherShareThanForeseenIsLoaded) {
  loader_.begin_iteration(first_, {0, 2}, &next_, {0, 2});
  loader_.begin_iteration(next_, {1, 3}, nullptr, {});
  EXPECT_EQ(taken({1, 3}), (Ints{3, 5}));
}

TEST_F(BatchLoaderTest, TheSameSamplesOfAnotherEpochOrStepAreLoaded) {
  loader_.begin_iteration(first_, {0, 1}, &next_, {0, 1});
  next_.epoch = 1;
  loader_.begin_iteration(next_, {0, 1}, nullptr, {});
  EXPECT_EQ(samples_.loads(), (std::vector<Ints>{{4}, {1}, {1}}));
  loader_.begin_iteration(first_, {0, 1}, &next_, {0, 1});
  next_.dropout_seed = 1;
  loader_.begin_iteration(next_, {0, 1}, nullptr, {});
  EXPECT_EQ(samples_.loads(), (std::vector<Ints>{{4}, {1}, {1}, {4}, {1}, {1}}));
}

}  // namespace
}  // namespace frostpipe
