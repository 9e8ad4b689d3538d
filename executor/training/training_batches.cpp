#include "executor/training/training_batches.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/hash.h"
#include "executor/data/data_shards.h"
#include "plan/run_length.h"

namespace frostpipe {

int steps_per_epoch(const TrainOptions& options, const Dataset& dataset) {
  const TrainingPlan& plan = options.plan;
  const int samples = static_cast<int>(dataset.split.train.size());
  const bool takes_whole_ones = !plan.phases.empty() && !plan.phases.front().operator_plan.empty();
  return takes_whole_ones ? samples / plan.global_batch_size : steps_per_epoch(samples, plan.global_batch_size);
}

TrainingBatches::TrainingBatches(const TrainOptions& options, const Dataset& dataset, int num_shards)
    : options_(options),
      dataset_(dataset),
      steps_per_epoch_(steps_per_epoch(options, dataset)),
      shards_(data_shards(dataset.split.train, num_shards)) {}

std::span<const int> TrainingBatches::order_of(int epoch) {
  while (!orders_.empty() && orders_.begin()->first < epoch - 1) orders_.erase(orders_.begin());
  const auto [found, is_new] = orders_.try_emplace(epoch);
  if (is_new)
    found->second = training_order(shards_, options_.plan.global_batch_size, options_.group_by_length, options_.seed,
                                   epoch, [this](int sample) { return dataset_.samples->tokens(sample); });
  return found->second;
}

MiniBatch TrainingBatches::at(int step) {
  const int epoch = step / steps_per_epoch_;
  MiniBatch batch =
      mini_batch(*dataset_.samples, order_of(epoch), options_.plan.global_batch_size, step % steps_per_epoch_);
  batch.num_shards = num_shards();
  batch.epoch = epoch;
  const std::array<std::uint64_t, 2> parts{options_.seed, static_cast<std::uint64_t>(step)};
  if (options_.dropout > 0)
    batch.dropout_seed = std::max<std::uint64_t>(1, hash_bytes(std::as_bytes(std::span(parts))));
  return batch;
}

}  // namespace frostpipe
