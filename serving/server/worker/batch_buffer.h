#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/process/shared_memory.h"
#include "base/units.h"

namespace frostpipe {

/// The capacity of a batch's buffer.
struct BatchShape {
  int max_requests = 1;
  int max_tokens = 1;          // per request
  int pixels = 0;              // values of a picture per request; 0: requests are tokens
  int heads = 1;               // number of heads that answer a request
  Bytes activation_bytes = 0;  // per token and head
  int answer_size = 0;         // values per request and head
  bool operator==(const BatchShape&) const = default;
};

/// The memory of one batch, which is mapped by the server and the workers of its pipeline. The server writes tokens or
/// pixels; each partition reads its input from the activation and writes its output there; the last one writes the
/// answers.
class BatchBuffer {
 public:
  /// Throws RuntimeFailure if there is no memory.
  static BatchBuffer make(const BatchShape& shape);
  /// Maps the memory that another process made by make(), from its descriptor.
  static BatchBuffer open(Descriptor file, const BatchShape& shape);

  /// Returns the tokens of all requests, concatenated.
  std::span<std::int32_t> tokens();
  /// Returns the pictures, [requests, pixels].
  std::span<float> pixels();
  /// Returns a head's activation, [tokens of all requests, activation_bytes]. An activation common to all heads is that
  /// of head 0.
  std::span<std::byte> activation(int head = 0);
  /// Returns the answers, [requests, heads, answer_size].
  std::span<double> answers();
  int descriptor() const { return static_cast<int>(memory_.address().descriptor); }

 private:
  BatchBuffer(SharedMemory memory, const BatchShape& shape) : memory_(std::move(memory)), shape_(shape) {}
  SharedMemory memory_;
  BatchShape shape_;
};

}  // namespace frostpipe
