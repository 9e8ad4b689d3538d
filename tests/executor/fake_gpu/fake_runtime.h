#pragma once
#include <ATen/core/TensorBody.h>

#include <cstddef>

namespace frostpipe::test {

/// Work that a real GPU may not have done when a call returns. A fake GPU's kernels run at once, but copies are delayed
/// here, so that a host that relies on them too early always fails.
struct FakeStream {
  /// The host waits until the device has nothing left to do: delayed copies are done now. With
  /// FROSTPIPE_CUDA_REPORT_WAITS this is reported, in LibTorch's words.
  static void wait();
  /// The same without a report, for a thread that waits for an event beside the issuing thread; it is not refused while
  /// that thread captures.
  static void complete();
  /// A delayed copy from page-locked memory, which the host may not write until it has waited.
  static void will_read(const void* pinned, std::size_t bytes);
  /// A delayed copy of these bytes to page-locked memory, which does not have them until the host has waited.
  static void will_write(void* pinned, std::size_t bytes);
};

}  // namespace frostpipe::test
