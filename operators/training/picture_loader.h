#pragma once
#include <future>
#include <utility>

#include "executor/loading/samples.h"

namespace frostpipe {

/// A device's pictures of each mini-batch, loaded by a thread while the one before is computed.
class PictureLoader {
 public:
  /// `needed`: the device's samples of a mini-batch, from the first to the last. `samples` outlives it.
  PictureLoader(const Samples& samples, std::pair<int, int> needed) : samples_(samples), needed_(needed) {}

  /// Pictures [n, channels, size, size] and labels [n] of `batch`. Those of `next`, unless it is null, begin to come;
  /// its list of samples outlives that.
  MicroBatch take(const MiniBatch& batch, const MiniBatch* next);

 private:
  std::future<MicroBatch> load(const MiniBatch& batch) const;

  const Samples& samples_;
  std::pair<int, int> needed_;
  const int* coming_of_ = nullptr;  // the first of their list
  std::future<MicroBatch> coming_;
};

}  // namespace frostpipe
