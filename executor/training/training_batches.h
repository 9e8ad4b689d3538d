#pragma once
#include <map>
#include <span>
#include <vector>

#include "executor/execute.h"
#include "executor/loading/dataset.h"

namespace frostpipe {

/// Returns the number of mini-batches in an epoch; the last one may be short. With operator plans there are no short
/// mini-batches: the samples that are left over at the end of an epoch's random order are not used in that epoch.
int steps_per_epoch(const TrainOptions& options, const Dataset& dataset);

/// The samples of every step. They depend on the seed, the step and the number of nodes' data shards, and not on the
/// layout or on lost ranks.
class TrainingBatches {
 public:
  /// `options` and `dataset` must outlive it.
  TrainingBatches(const TrainOptions& options, const Dataset& dataset, int num_shards);

  /// Returns the mini-batch of a step. It is valid until one of at least two epochs later is requested.
  MiniBatch at(int step);
  /// Returns the samples of each node's part of the data.
  const std::vector<std::vector<int>>& shards() const { return shards_; }
  int num_shards() const { return static_cast<int>(shards_.size()); }

 private:
  std::span<const int> order_of(int epoch);

  const TrainOptions& options_;
  const Dataset& dataset_;
  int steps_per_epoch_;
  std::vector<std::vector<int>> shards_;
  std::map<int, std::vector<int>> orders_;  // orders of all samples, by epoch
};

}  // namespace frostpipe
