#pragma once
#include <map>
#include <span>
#include <vector>

#include "executor/execute.h"
#include "executor/loading/dataset.h"

namespace frostpipe {

/// Returns the number of mini-batches in an epoch, of which the last one may be short. Operator plans have no short
/// mini-batches: samples that are left over in an epoch's random order are not trained on in that epoch.
int steps_per_epoch(const TrainOptions& options, const Dataset& dataset);

/// Determines the samples of every step: a function of seed, step and the number of data shards of nodes, which does
/// not change with the layout or when ranks are lost.
class TrainingBatches {
 public:
  /// `options` and `dataset` must outlive it.
  TrainingBatches(const TrainOptions& options, const Dataset& dataset, int num_shards);

  /// Returns the mini-batch of a step. It is valid until a batch is requested that is at least two epochs later.
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
  std::map<int, std::vector<int>> orders_;  // of all samples, by epoch
};

}  // namespace frostpipe
