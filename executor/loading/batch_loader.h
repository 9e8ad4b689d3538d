#pragma once
#include <future>
#include <vector>

#include "executor/loading/samples.h"
#include "plan/batch.h"

namespace frostpipe {

/// Loads a stage's samples in a thread while the previous mini-batch is computed.
class BatchLoader {
 public:
  /// `data` must outlive this. `type` is the model's dtype; `with_input` is for a stage with the embedding. With
  /// `in_place` (for GPUs), take() returns views of the same device memory as long as the samples' lengths and their
  /// order do not change.
  BatchLoader(const Samples& data, at::ScalarType type, at::Device device, bool with_input, bool in_place = false)
      : data_(data), type_(type), device_(device), with_input_(with_input), in_place_(in_place) {}
  ~BatchLoader();

  /// Makes the samples `share` of `batch` available to take(): waits for them, or loads them if the call before did not
  /// ask for them. Then starts to load the samples `next_share` of `next`, unless that is null.
  void begin_iteration(const MiniBatch& batch, SampleRange share, const MiniBatch* next, SampleRange next_share);
  /// Returns samples `range` of the mini-batch, which must lie in the share, on the stage's device.
  MicroBatch take(SampleRange range) const;

 private:
  /// A request to load `samples`. They are a copy, since `batch.samples` is a view of an order that may be gone when
  /// the thread reads it.
  struct Request {
    std::vector<int> samples;
    MiniBatch batch;  // its `samples` must not be read
    bool operator==(const Request& other) const;
  };
  static Request request_for(const MiniBatch& batch, SampleRange share);
  MicroBatch load(const Request& request) const;

  const Samples& data_;
  at::ScalarType type_;
  at::Device device_;
  bool with_input_;
  bool in_place_;
  MicroBatch loaded_, placed_;  // loaded_ on the device, if it is kept in place
  SampleRange share_{};
  Request requested_;
  std::future<MicroBatch> coming_;
};

}  // namespace frostpipe
