#pragma once
#include <optional>
#include <string>

#include "base/units.h"

namespace c10 {
class DataPtr;
}

namespace frostpipe {

/// Counts the live bytes of this process's tensor storage on the CPU, by an allocator that wraps LibTorch's. A limit
/// thus means the same as on a GPU: it holds for live tensors, not for the resident size of the process.
class MemoryMeter {
 public:
  /// Installs the counting allocator (once per process). Later tensors are counted; earlier ones are not.
  static void install();
  /// Sets the limit. Allocations that would exceed it throw RuntimeFailure with `who`, the current action and the
  /// number of bytes. No value means no limit.
  static void set_limit(std::optional<Bytes> limit, std::string who);
  /// Sets the text that errors give for what the rank is doing. `action` must stay valid until the next call.
  static void set_action(const char* action);
  static const char* action();
  static Bytes live_bytes();
  static Bytes peak_bytes();
  /// Excludes a storage from the count from now on, as if it had been allocated under an UncountedMemory. Has no effect
  /// on storage from another allocator.
  static void stop_counting(const c10::DataPtr& storage);
  /// Sets the peak to the live bytes.
  static void reset_peak();
};

/// While one lives, allocations of this thread are neither counted nor limited. It is for host memory that would not be
/// on the device: offloaded moments, files, evaluation results.
class UncountedMemory {
 public:
  UncountedMemory();
  ~UncountedMemory();
  UncountedMemory(const UncountedMemory&) = delete;
  UncountedMemory& operator=(const UncountedMemory&) = delete;
};

}  // namespace frostpipe
