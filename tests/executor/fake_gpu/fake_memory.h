#pragma once
#include <c10/core/Allocator.h>

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "base/units.h"

namespace frostpipe::test {

/// The memory of fake GPUs: addresses that the host may not touch, so that a program that reads or writes a device's
/// tensor as its own dies of it, as with a real one. Kernels find the same bytes at another address. All of it is 0xff,
/// which is NaN in every type of floating point, before its first use and after its last.
struct FakeMemory {
  /// Hands out memory of the current fake GPU.
  static c10::Allocator& allocator();
  /// Where kernels find what is at a device's address.
  static void* for_kernels(const void* device_address);
  /// Bytes that were asked for.
  static Bytes live_bytes(int device);
  static Bytes peak_bytes(int device);
  static void reset_peak(int device);
  /// Of one device, until the next call; `out_of_memory` throws.
  using OutOfMemory = std::function<void(Bytes wanted, Bytes live)>;
  static void set_limit(int device, Bytes limit, OutOfMemory out_of_memory);
  /// From now on memory comes from this pool, to which it returns, and which nobody else gets; 0: from what is left.
  static void use_pool(int pool);
  static void give_up_pool(int pool);
  /// Of all that is used, by where it begins.
  using Contents = std::map<std::size_t, std::vector<std::byte>>;
  static Contents contents();
  /// All that was used then has its contents of then; what has been handed out since has none.
  static void undo(const Contents& contents);
};

/// Page-locked host memory.
struct FakePinnedMemory {
  static c10::Allocator& allocator();
  static bool has(const void* address);
  /// What has been let go of is not handed out again before this: the device may still copy it.
  static void reuse();
};

/// How many there are (FROSTPIPE_FAKE_GPUS, by default 1), and the current one of this thread.
int num_fake_gpus();
int current_fake_gpu();
void set_current_fake_gpu(int device);

}  // namespace frostpipe::test
