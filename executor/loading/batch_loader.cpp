#include "executor/loading/batch_loader.h"

#include "executor/device/memory_meter.h"

namespace frostpipe {

BatchLoader::~BatchLoader() {
  if (coming_.valid()) coming_.wait();
}

bool BatchLoader::Request::operator==(const Request& other) const {
  return samples == other.samples && batch.epoch == other.batch.epoch && batch.dropout_seed == other.batch.dropout_seed;
}

BatchLoader::Request BatchLoader::request_for(const MiniBatch& batch, SampleRange share) {
  const std::span<const int> samples = samples_of(batch, share);
  return {{samples.begin(), samples.end()}, batch};
}

MicroBatch BatchLoader::load(const Request& request) const {
  const UncountedMemory of_the_host;
  return data_.load(request.batch, request.samples, type_, with_input_);
}

void BatchLoader::begin_iteration(const MiniBatch& batch, SampleRange share, const MiniBatch* next,
                                  SampleRange next_share) {
  Request request = request_for(batch, share);
  const bool is_coming = coming_.valid() && request == requested_;
  if (coming_.valid() && !is_coming) coming_.wait();
  loaded_ = is_coming ? coming_.get() : load(request);
  share_ = share;
  if (in_place_ && placed_.lengths == loaded_.lengths) {
    placed_.take_values(loaded_);
  } else if (in_place_) {
    placed_ = loaded_.to(device_);
  }
  if (!next) return;
  requested_ = request_for(*next, next_share);
  coming_ = std::async(std::launch::async, [this, wanted = requested_] { return load(wanted); });
}

MicroBatch BatchLoader::take(SampleRange range) const {
  const auto part_of = [&](const MicroBatch& share) {
    return share.narrow(range.begin - share_.begin, range.end - range.begin);
  };
  return in_place_ ? part_of(placed_).with_begins(device_) : part_of(loaded_).to(device_);
}

}  // namespace frostpipe
