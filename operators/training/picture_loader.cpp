#include "operators/training/picture_loader.h"

#include <ATen/core/grad_mode.h>

#include "executor/device/memory_meter.h"

namespace frostpipe {

PictureLoader::PictureLoader(const Dataset& dataset, int batch, std::pair<int, int> needed, std::uint64_t seed)
    : dataset_(dataset), batch_(batch), needed_(needed), seed_(seed) {}

void PictureLoader::begin_epoch(int epoch, int first_batch) {
  epoch_ = epoch;
  next_ = first_batch;
  order_.clear();
  for (const int place : epoch_order(static_cast<int>(dataset_.split.train.size()), seed_, epoch))
    order_.push_back(dataset_.split.train[place]);
  start_loading();
}

MicroBatch PictureLoader::next() {
  MicroBatch loaded = coming_.get();
  if (++next_ < num_batches()) start_loading();
  return loaded;
}

void PictureLoader::start_loading() {
  const std::span<const int> samples = std::span(order_).subspan(
      static_cast<std::size_t>(next_) * batch_ + needed_.first, needed_.second - needed_.first);
  coming_ = std::async(std::launch::async, [this, samples] {
    const at::NoGradGuard no_grad;
    const UncountedMemory host;  // on a GPU it would be the host's, too
    return dataset_.samples->load({.samples = samples, .lengths = {}, .epoch = epoch_}, samples, at::kFloat, true);
  });
}

}  // namespace frostpipe
