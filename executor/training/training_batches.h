#pragma once
#include <map>
#include <span>
#include <vector>

#include "executor/execute.h"
#include "executor/loading/dataset.h"

namespace frostpipe {

/// Mini-batches of an epoch, of which the last may be a short one. An operator plan has whole ones alone: what is left
/// of an epoch's random order is not trained on in that epoch.
int steps_per_epoch(const TrainOptions& options, const Dataset& dataset);

/// Determines the samples of every step: a function of seed, step and the number of data shards of nodes, which does
/// not change with the layout or when ranks are lost.
class TrainingBatches {
 public:
  /// `options` and `dataset` must outlive it.
  TrainingBatches(const TrainOptions& options, const Dataset& dataset, int num_shards);

  /// Valid until the batch of an epoch at least two later is requested.
  MiniBatch at(int step);
  /// The samples of each node's part of the data.
  const std::vector<std::vector<int>>& shards() const { return shards_; }
  int num_shards() const { return static_cast<int>(shards_.size()); }

 private:
  std::span<const int> order_of(int epoch);

  const TrainOptions& options_;
  const Dataset& dataset_;
  int steps_per_epoch_;
  std::vector<std::vector<int>> shards_;
  std::map<int, std::vector<int>> orders_;  // of all samples, by epoch
};

}  // namespace frostpipe
