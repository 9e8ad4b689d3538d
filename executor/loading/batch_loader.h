#pragma once
#include <future>
#include <vector>

#include "executor/loading/samples.h"
#include "plan/batch.h"

namespace frostpipe {

/// A stage's samples, loaded by a thread while the mini-batch before is computed.
class BatchLoader {
 public:
  BatchLoader(const Samples& data, at::ScalarType type, at::Device device, bool with_input)
      : data_(data), type_(type), device_(device), with_input_(with_input) {}
  ~BatchLoader();

  /// Takes `share` of `batch`, and starts to load `next_share` of the mini-batch after it, if there is one.
  void begin_iteration(const MiniBatch& batch, SampleRange share, const MiniBatch* next, SampleRange next_share);
  /// Samples `range` of the mini-batch, which lie in the share, on the stage's device.
  MicroBatch take(SampleRange range) const {
    return loaded_.narrow(range.begin - share_.begin, range.end - range.begin).to(device_);
  }

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
  MicroBatch loaded_;
  SampleRange share_{};
  Request requested_;
  std::future<MicroBatch> coming_;
};

}  // namespace frostpipe
