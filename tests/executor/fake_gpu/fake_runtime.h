#pragma once
#include <ATen/core/TensorBody.h>

#include <cstddef>

namespace frostpipe::test {

/// What a real GPU has not done yet when a call returns. Kernels of a fake one run at once, so this is where it is
/// unkind instead: what the host may not rely on goes wrong.
struct FakeStream {
  /// The host waits until the device has nothing left to do: copies that it did not wait for are done now. With
  /// FROSTPIPE_CUDA_REPORT_WAITS it is told of, in LibTorch's words.
  static void wait();
  /// The same, without a word, of a thread that waits for an event, beside the one that issues: not refused while that
  /// captures.
  static void complete();
  /// To be copied from page-locked memory, which the host may not write until it has waited.
  static void will_read(const void* pinned, std::size_t bytes);
  /// These bytes are to be copied to where they are: page-locked memory, in which they are not until the host has
  /// waited.
  static void will_write(void* pinned, std::size_t bytes);
};

}  // namespace frostpipe::test
