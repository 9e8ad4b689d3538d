#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "executor/data/data_shards.h"
#include "executor/training/training_task.h"

namespace frostpipe {
namespace {

/// Texts with these numbers of tokens, all for training. The task has only data.
class Texts final : public TrainingTask {
 public:
  explicit Texts(const std::vector<int>& lengths) {
    EncodedData data;
    for (const int length : lengths) data.token_ids.emplace_back(length, 0);
    data.labels.resize(lengths.size());
    dataset_.samples = std::make_unique<TokenSamples>(std::move(data));
    dataset_.split.train.resize(lengths.size());
    std::iota(dataset_.split.train.begin(), dataset_.split.train.end(), 0);
  }
  const Model& model() const override { return model_; }
  const Dataset& dataset() const override { return dataset_; }
  std::int64_t hidden_size() const override { return 0; }
  std::int64_t tied_values() const override { return 0; }
  std::vector<std::string> starts_at_random() const override { return {}; }
  std::unique_ptr<StageFactory> make_factory(ComputeDevice&, const at::TensorOptions&, ActivationCache*,
                                             int) const override {
    return nullptr;
  }
  void fill(int, LayerState&) const override {}
  void save(bool, const std::map<int, LayerState>&, const std::vector<std::vector<LayerPart>>&, Communicator&,
            const std::filesystem::path&) const override {}

 private:
  Model model_;
  Dataset dataset_;
};

constexpr int kGlobalBatch = 4;

/// The largest micro-batches of a run with one epoch in one micro-batch and one in two, in mini-batches of 4.
std::vector<std::int64_t> largest(const std::vector<int>& lengths, int group_by_length, std::uint64_t seed = 1) {
  const int steps = static_cast<int>(lengths.size()) / kGlobalBatch;
  TrainOptions options{.seed = seed, .group_by_length = group_by_length};
  options.plan.global_batch_size = kGlobalBatch;
  options.plan.num_steps = 2 * steps;
  options.plan.phases.resize(2);
  options.plan.phases[1].from_step = steps;
  options.plan.phases[1].num_micro_batches = 2;
  const InputsFound inputs{.training_task = std::make_shared<Texts>(lengths),
                           .num_training_samples = static_cast<int>(lengths.size())};
  return largest_micro_batches(options, inputs);
}

TEST(LargestMicroBatches, OfGroupedMiniBatchesAreThoseOfTheLongestSamples) {
  // Grouped over an epoch, the last four are one mini-batch: 9 + 10 + 11 + 12, and 9 + 10 | 11 + 12.
  EXPECT_EQ(largest({12, 1, 10, 2, 9, 3, 11, 4}, 2), (std::vector<std::int64_t>{42, 23}));
}

TEST(LargestMicroBatches, AreThoseOfTheOrderThatIsTrained) {
  const std::vector<int> lengths{12, 1, 10, 2, 9, 3, 11, 4};
  std::vector<int> all(lengths.size());
  std::iota(all.begin(), all.end(), 0);
  for (std::uint64_t seed = 1; seed < 5; ++seed) {
    // Two mini-batches: the larger sum of four neighbours.
    const std::vector<int> order = sharded_epoch_order(data_shards(all, 1), kGlobalBatch, seed, 0);
    int first = 0, second = 0;
    for (int i = 0; i < kGlobalBatch; ++i) {
      first += lengths[order[i]];
      second += lengths[order[kGlobalBatch + i]];
    }
    EXPECT_EQ(largest(lengths, 0, seed)[0], std::max(first, second)) << seed;
  }
}

}  // namespace
}  // namespace frostpipe
