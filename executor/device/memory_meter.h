#pragma once
#include <optional>
#include <string>

#include "base/units.h"

namespace c10 {
class DataPtr;
}

namespace frostpipe {

/// Live bytes of tensor storage of this process on the CPU, counted by an allocator that wraps LibTorch's. "Does not
/// fit" means the same here as on a GPU: the limit is on live tensors, not on the process' resident size.
class MemoryMeter {
 public:
  /// Installs the counting allocator (once per process). Later tensors are counted; earlier ones are not.
  static void install();
  /// Allocations that would exceed the limit throw RuntimeFailure naming `who`, the current action and the bytes. None
  /// = no limit.
  static void set_limit(std::optional<Bytes> limit, std::string who);
  /// Text for errors: what the rank is doing. Must outlive the action.
  static void set_action(const char* action);
  static const char* action();
  static Bytes live_bytes();
  static Bytes peak_bytes();
  /// From now on it is host memory that is not the device's, as what is allocated beside an UncountedMemory. What the
  /// counting allocator has not made stays as it is.
  static void stop_counting(const c10::DataPtr& storage);
  /// The peak starts again from what is live now.
  static void reset_peak();
};

/// While one lives, this thread's allocations are host memory that is not the device's: offloaded moments, files,
/// evaluation results. They are neither counted nor limited.
class UncountedMemory {
 public:
  UncountedMemory();
  ~UncountedMemory();
  UncountedMemory(const UncountedMemory&) = delete;
  UncountedMemory& operator=(const UncountedMemory&) = delete;
};

}  // namespace frostpipe
