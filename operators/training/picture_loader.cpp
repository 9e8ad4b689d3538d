#include "operators/training/picture_loader.h"

#include <ATen/core/grad_mode.h>

#include "executor/device/memory_meter.h"

namespace frostpipe {

MicroBatch PictureLoader::take(const MiniBatch& batch, const MiniBatch* next) {
  if (coming_of_ != batch.samples.data()) coming_ = load(batch);
  MicroBatch pictures = coming_.get();
  coming_of_ = next ? next->samples.data() : nullptr;
  if (next) coming_ = load(*next);
  return pictures;
}

std::future<MicroBatch> PictureLoader::load(const MiniBatch& batch) const {
  const std::span<const int> own = batch.samples.subspan(needed_.first, needed_.second - needed_.first);
  return std::async(std::launch::async, [this, own, epoch = batch.epoch] {
    const at::NoGradGuard no_grad;
    const UncountedMemory host;  // on a GPU it would be the host's, too
    return samples_.load({.samples = own, .lengths = {}, .epoch = epoch}, own, at::kFloat, true);
  });
}

}  // namespace frostpipe
