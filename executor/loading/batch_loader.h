#pragma once
#include <future>
#include <vector>

#include "executor/loading/samples.h"
#include "plan/batch.h"

namespace frostpipe {

/// A stage's samples, loaded by a thread while the mini-batch before is computed.
class BatchLoader {
 public:
  /// `in_place`: as long as the samples' lengths stay the same, in their order, what take() returns are the same
  /// tensors. That is on a GPU.
  BatchLoader(const Samples& data, at::ScalarType type, at::Device device, bool with_input, bool in_place = false)
      : data_(data), type_(type), device_(device), with_input_(with_input), in_place_(in_place) {}
  ~BatchLoader();

  /// Takes `share` of `batch`, and starts to load `next_share` of the mini-batch after it, if there is one.
  void begin_iteration(const MiniBatch& batch, SampleRange share, const MiniBatch* next, SampleRange next_share);
  /// Samples `range` of the mini-batch, which lie in the share, on the stage's device.
  MicroBatch take(SampleRange range) const;

 private:
  /// A share by value: the order that a mini-batch is a view of may be gone when the thread looks.
  struct Request {
    std::vector<int> samples;
    MiniBatch batch;  // its samples are not looked at
    bool operator==(const Request& other) const;
  };
  static Request request_for(const MiniBatch& batch, SampleRange share);
  MicroBatch load(const Request& request) const;

  const Samples& data_;
  at::ScalarType type_;
  at::Device device_;
  bool with_input_;
  bool in_place_;
  MicroBatch loaded_, placed_;  // the same on the device, where it is kept in place
  SampleRange share_{};
  Request requested_;
  std::future<MicroBatch> coming_;
};

}  // namespace frostpipe
