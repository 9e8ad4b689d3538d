#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "executor/device/virtual_clock.h"
#include "profiles/dtype.h"

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace frostpipe {

/// CUDA graphs: the host captures work once, and the device then replays it as a whole, on the same tensors. All graphs
/// share a memory pool, which lives as long as they do. Memory that one capture frees is reused by later captures, so
/// graphs must be replayed in the order in which they were captured.
class DeviceGraphs {
 public:
  virtual ~DeviceGraphs() = default;
  /// Captures the work that `work` issues, without running it on the device. `work` must not wait for the device nor
  /// copy between host and device, and should have run once before, since LibTorch's setup at the first use of a kernel
  /// cannot be captured.
  virtual void capture(const std::function<void()>& work) = 0;
  /// Launches a graph, numbered from 0 in the order of captures, on the current stream; returns at once.
  virtual void replay(std::size_t graph) = 0;
};

/// A rank's device. It determines where tensors live, how process groups are made and how memory is counted.
class ComputeDevice {
 public:
  virtual ~ComputeDevice() = default;
  /// Returns the device type of MeasurementKey: "cpu", "cpu x 2", "cuda".
  virtual std::string type() const = 0;
  /// Returns a text for reports: the processor's name and the threads, or the GPU's name, memory and SMs.
  virtual std::string description() const = 0;
  virtual at::Device torch_device() const = 0;
  /// Sets the number of compute threads, and with it type(). Only for CPUs.
  virtual void set_num_threads(int threads) = 0;
  /// Returns a text that no other device of the host has; "" if it does not matter whether ranks share the device. NCCL
  /// does not support ranks that do: then all ranks use host staging.
  virtual std::string identity() const { return {}; }
  /// Makes a process group of `size` ranks. Must be called by all of them, with a store that only they use. Gloo binds
  /// its sockets to this rank's `address`; NCCL chooses its interfaces itself.
  virtual c10::intrusive_ptr<c10d::Backend> make_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                                       const std::string& address) = 0;
  /// Waits until everything issued so far has been computed.
  virtual void synchronize() = 0;
  /// Returns the current time by the host's steady clock, or by the virtual clock of an emulated device.
  virtual Nanoseconds now_ns() { return steady_now_ns(); }
  /// Returns the clock of an emulated device; null for other devices.
  virtual VirtualClock* virtual_clock() { return nullptr; }
  /// Forgets all marks and records the first one. The device must be idle.
  virtual void first_mark() = 0;
  /// Records the time at which everything issued so far has been computed, without waiting for it.
  virtual void mark() = 0;
  /// Returns the times of all marks, in order, on the clock of now_ns(). Waits for the last one.
  virtual std::vector<Nanoseconds> marked_ns() = 0;
  /// Sets the limit on the bytes of live tensors; on CUDA, memory that LibTorch's allocator caches counts too. Errors
  /// mention `who`. No value means no limit.
  virtual void set_memory_limit(std::optional<Bytes> limit, const std::string& who) = 0;
  /// Return the current and the largest number of bytes that tensors have requested, without the overhead of the
  /// allocator or the memory of libraries. reset_peak() sets the largest to the current number.
  virtual Bytes live_bytes() = 0;
  virtual Bytes peak_bytes() = 0;
  virtual void reset_peak() = 0;
  /// Says whether all samples have one length. Default: false. Some LibTorch kernels are compiled for each length,
  /// which takes tenths of a second and pays off only with one length.
  virtual void expect_one_length(bool /*has_one_length*/) {}
  /// Returns null on the CPU, which has no graphs.
  virtual std::unique_ptr<DeviceGraphs> make_graphs() { return nullptr; }
  /// Returns cached memory to the system.
  virtual void release_kept_memory() = 0;
};

/// Returns the number of the GPU that a process uses if the host has `count`: `local_rank` if it is below `count`, else
/// `replaced` modulo `count`.
inline int gpu_number(int local_rank, int replaced, int count) {
  return local_rank < count ? local_rank : replaced % count;
}

/// Makes a device. `type` is "cpu" or "cuda". `threads` is the number of compute threads of a rank on the CPU
/// (device_type.h). `is_alone` says that no other rank sends messages to this one. `replaced` is the local rank of the
/// lost process that this one, a spare, replaces; by default `local_rank`. Both select the GPU (gpu_number). Throws
/// InvalidInput for another type, and RuntimeFailure if the host has no such device. CUDA support is in
/// libfrostpipe_cuda.so beside the tool, which is loaded only for "cuda". The first device of a process must be made
/// before its first backward pass, because LibTorch looks for devices only once.
std::unique_ptr<ComputeDevice> make_device(const std::string& type, int local_rank, int threads = 1,
                                           bool is_alone = false, std::optional<int> replaced = std::nullopt);

/// True if this processor has matrix instructions for bfloat16 (AVX-512 BF16, AMX, or Arm's).
bool multiplies_in_bfloat16();

/// Returns warnings for a run with these types on a device of `type`: none, or that its bfloat16 may be slow.
std::vector<std::string> notes_on_bfloat16(const std::string& type, DType dtype, std::optional<DType> frozen_dtype);

/// Makes a CPU device that stands in for another one. Tensors have 1 / shrink of the bytes that they stand for, and so
/// has the memory limit; reported bytes are unshrunk. Time is that of a virtual clock.
std::unique_ptr<ComputeDevice> make_emulated_device(int shrink);

}  // namespace frostpipe
