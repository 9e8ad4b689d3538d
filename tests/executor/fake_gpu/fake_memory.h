#pragma once
#include <c10/core/Allocator.h>

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "base/units.h"

namespace frostpipe::test {

/// The memory of fake GPUs: addresses that the host cannot access, so that a program that reads or writes a device's
/// tensor directly crashes, as with a real GPU. Kernels find the same bytes at another address. All of it is 0xff,
/// which is NaN in every floating-point type, before its first use and after its last.
struct FakeMemory {
  /// The allocator of the current fake GPU's memory.
  static c10::Allocator& allocator();
  /// The address at which kernels find the bytes of a device's address.
  static void* for_kernels(const void* device_address);
  /// The number of requested bytes.
  static Bytes live_bytes(int device);
  static Bytes peak_bytes(int device);
  static void reset_peak(int device);
  /// The limit of one device, until the next call; `out_of_memory` throws.
  using OutOfMemory = std::function<void(Bytes wanted, Bytes live)>;
  static void set_limit(int device, Bytes limit, OutOfMemory out_of_memory);
  /// From now on memory comes from this pool, to which it returns and which is used for nothing else; 0: from the
  /// remaining memory.
  static void use_pool(int pool);
  static void give_up_pool(int pool);
  /// The contents of all used memory, by offset.
  using Contents = std::map<std::size_t, std::vector<std::byte>>;
  static Contents contents();
  /// Restores the contents of all memory that was used then; memory allocated since then has none.
  static void undo(const Contents& contents);
};

/// Page-locked host memory.
struct FakePinnedMemory {
  static c10::Allocator& allocator();
  static bool has(const void* address);
  /// Freed page-locked memory is not reused before this call, since the device may still copy it.
  static void reuse();
};

/// The number of fake GPUs (FROSTPIPE_FAKE_GPUS, by default 1), and the current one of this thread.
int num_fake_gpus();
int current_fake_gpu();
void set_current_fake_gpu(int device);

}  // namespace frostpipe::test
