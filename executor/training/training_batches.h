#pragma once
#include <map>
#include <span>
#include <vector>

#include "executor/execute.h"
#include "executor/loading/dataset.h"

namespace frostpipe {

/// Which samples every step trains on: a function of seed, step and the number of nodes' shards of the data, so that it
/// stays when the layout changes or ranks are lost.
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
