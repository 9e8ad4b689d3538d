#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/process/shared_memory.h"
#include "base/units.h"

namespace frostpipe {

/// What a batch on its way through a pipeline needs room for.
struct BatchShape {
  int most_requests = 1;
  int most_tokens = 1;         // of a request
  int pixels = 0;              // of a request: values of a picture; 0: requests are tokens
  int heads = 1;               // that answer a request
  Bytes activation_bytes = 0;  // of a token, for one head
  int answer_size = 0;         // values of a request, from one head
  bool operator==(const BatchShape&) const = default;
};

/// The memory of one batch, which the server and the workers of its pipeline map: the server writes tokens or pixels,
/// each partition takes its input from the activation and leaves its output there, the last one writes the answers.
class BatchBuffer {
 public:
  /// Throws RuntimeFailure where the system has no room.
  static BatchBuffer make(const BatchShape& shape);
  /// Maps what make() has made in another process, found by its descriptor.
  static BatchBuffer open(Descriptor file, const BatchShape& shape);

  /// [requests' tokens, one request after the other]
  std::span<std::int32_t> tokens();
  /// [requests, pixels]
  std::span<float> pixels();
  /// [requests' tokens, activation_bytes]; what is of all heads alike is that of head 0
  std::span<std::byte> activation(int head = 0);
  /// [requests, heads, answer_size]
  std::span<double> answers();
  int descriptor() const { return static_cast<int>(memory_.address().descriptor); }

 private:
  BatchBuffer(SharedMemory memory, const BatchShape& shape) : memory_(std::move(memory)), shape_(shape) {}
  SharedMemory memory_;
  BatchShape shape_;
};

}  // namespace frostpipe
