#pragma once
#include <future>
#include <utility>

#include "executor/loading/dataset.h"

namespace frostpipe {

/// A device's pictures of each mini-batch of an epoch, loaded by a thread while the one before is computed. What is
/// left of an epoch after its whole mini-batches is not trained on.
class PictureLoader {
 public:
  /// `needed`: samples of a mini-batch, from the first to the last. The dataset outlives this object.
  PictureLoader(const Dataset& dataset, int batch, std::pair<int, int> needed, std::uint64_t seed);

  void begin_epoch(int epoch, int first_batch = 0);
  /// The next mini-batch: pictures [n, channels, size, size] and labels [n].
  MicroBatch next();

 private:
  int num_batches() const { return static_cast<int>(dataset_.split.train.size()) / batch_; }
  void start_loading();

  const Dataset& dataset_;
  int batch_;
  std::pair<int, int> needed_;
  std::uint64_t seed_;
  int epoch_ = 0, next_ = 0;
  std::vector<int> order_;  // numbers of samples
  std::future<MicroBatch> coming_;
};

}  // namespace frostpipe
