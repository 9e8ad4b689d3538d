// Oracle: the definition of a pass over the data.
#include "executor/training/training_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace frostpipe {
namespace {

constexpr int kNumTexts = 10;

/// Texts of 1 to 10 tokens, all for training.
Dataset ten_texts() {
  EncodedData data;
  for (int i = 0; i < kNumTexts; ++i) data.token_ids.emplace_back(i + 1, 0);
  data.labels.resize(kNumTexts);
  Dataset dataset;
  dataset.samples = std::make_unique<TokenSamples>(std::move(data));
  dataset.split.train.resize(kNumTexts);
  std::iota(dataset.split.train.begin(), dataset.split.train.end(), 0);
  return dataset;
}

TrainOptions in_fours() {
  TrainOptions options{.seed = 5};
  options.plan.global_batch_size = 4;
  return options;
}

TEST(TrainingBatches, EachEpochTrainsOnEverySampleOnce) {
  const Dataset dataset = ten_texts();
  const TrainOptions options = in_fours();
  TrainingBatches batches(options, dataset, 2);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> seen;
    for (int step = 3 * epoch; step < 3 * (epoch + 1); ++step) {
      const MiniBatch batch = batches.at(step);
      EXPECT_EQ(batch.epoch, epoch);
      EXPECT_EQ(batch.num_shards, 2);
      EXPECT_EQ(batch.samples.size(), step % 3 == 2 ? 2u : 4u);
      seen.insert(seen.end(), batch.samples.begin(), batch.samples.end());
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, dataset.split.train);
  }
}

TEST(TrainingBatches, AreAFunctionOfTheStepAlone) {
  const Dataset dataset = ten_texts();
  TrainOptions options = in_fours();
  options.dropout = 0.1;
  TrainingBatches from_the_start(options, dataset, 1), resumed(options, dataset, 1);
  for (int step = 0; step < 7; ++step) from_the_start.at(step);
  const MiniBatch expected = from_the_start.at(7), batch = resumed.at(7);
  EXPECT_TRUE(std::equal(batch.samples.begin(), batch.samples.end(), expected.samples.begin(), expected.samples.end()));
  EXPECT_EQ(batch.dropout_seed, expected.dropout_seed);
  EXPECT_NE(batch.dropout_seed, resumed.at(6).dropout_seed);
  EXPECT_NE(batch.dropout_seed, 0u) << "0 would drop nothing";
}

TEST(TrainingBatches, TheNextMiniBatchLeavesThePresentOneAsItIs) {
  const Dataset dataset = ten_texts();
  const TrainOptions options = in_fours();
  TrainingBatches batches(options, dataset, 1);
  const MiniBatch last = batches.at(2);  // of the epoch
  const std::vector<int> samples(last.samples.begin(), last.samples.end());
  const MiniBatch next = batches.at(3);
  EXPECT_THAT(last.samples, testing::ElementsAreArray(samples));
  EXPECT_EQ(next.epoch, 1);
}

}  // namespace
}  // namespace frostpipe
