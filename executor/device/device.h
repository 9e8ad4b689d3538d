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

/// CUDA graphs: work that the host captures once, and that the device then replays as a whole, on the same tensors.
/// They share a memory pool, which lives as long as they do: what captured work frees, later captures use. So graphs
/// are replayed in the order in which they were captured.
class DeviceGraphs {
 public:
  virtual ~DeviceGraphs() = default;
  /// Captures what `work` issues, which the device does not do. It may not wait for the device, nor copy between the
  /// host and it, and should have run once before: what LibTorch makes at the first use of a kernel is not captured.
  virtual void capture(const std::function<void()>& work) = 0;
  /// Launches the graph with this number, from 0, on the current stream; returns at once.
  virtual void replay(std::size_t graph) = 0;
};

/// A rank's device: where tensors live, how its process groups are made and its memory is counted.
class ComputeDevice {
 public:
  virtual ~ComputeDevice() = default;
  /// "cpu", "cpu x 2", "cuda": MeasurementKey::device_type.
  virtual std::string type() const = 0;
  /// Processor and threads, for people.
  virtual std::string description() const = 0;
  virtual at::Device torch_device() const = 0;
  /// Compute threads from now on, and with them the type. Only on CPUs.
  virtual void set_num_threads(int threads) = 0;
  /// Another rank computes on it too, which NCCL does not serve: then all ranks use host staging.
  virtual bool is_shared() const = 0;
  /// A process group over `size` ranks, called by all of them with a store that only they share. Gloo's sockets are
  /// bound to this rank's `address`; NCCL looks for its interfaces itself.
  virtual c10::intrusive_ptr<c10d::Backend> make_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                                       const std::string& address) = 0;
  /// Returns when everything issued so far has been computed.
  virtual void synchronize() = 0;
  /// The time there: the host's steady clock but on an emulated device.
  virtual Nanoseconds now_ns() { return steady_now_ns(); }
  /// That of an emulated device, else null.
  virtual VirtualClock* virtual_clock() { return nullptr; }
  /// Forgets all marks and makes the first; the device must be idle.
  virtual void first_mark() = 0;
  /// Notes when everything issued so far has been computed, without waiting for that.
  virtual void mark() = 0;
  /// The times of all marks in their order, as now_ns() has them. Returns when the last has come.
  virtual std::vector<Nanoseconds> marked_ns() = 0;
  /// Limit on live tensor bytes; `who` stands in the error. None = no limit.
  virtual void set_memory_limit(std::optional<Bytes> limit, const std::string& who) = 0;
  /// What tensors have asked for: neither what an allocator adds, nor what libraries keep for themselves.
  virtual Bytes live_bytes() = 0;
  virtual Bytes peak_bytes() = 0;
  virtual void reset_peak() = 0;
  /// Samples are all of one length from now on, or not, as it is until this is said. Kernels that LibTorch makes anew
  /// for each length, which takes tenths of a second, pay for one length alone.
  virtual void expect_one_length(bool /*has_one_length*/) {}
  /// Null on the CPU, which captures nothing.
  virtual std::unique_ptr<DeviceGraphs> make_graphs() { return nullptr; }
  /// Gives back memory that was kept for tensors to come.
  virtual void release_kept_memory() = 0;
};

/// `type` is "cpu" or "cuda". `threads`: that a rank on the CPU computes with (device_type.h). `is_alone`: no other
/// rank will send this one anything. Throws RuntimeFailure when there is no such device here: CUDA lives in
/// libfrostpipe_cuda.so beside the tool, which is loaded only when asked for. The first one of a process before its
/// first backward: LibTorch looks for devices once.
std::unique_ptr<ComputeDevice> make_device(const std::string& type, int local_rank, int threads = 1,
                                           bool is_alone = false);

/// This processor has instructions for products in bfloat16 (AVX-512 BF16, AMX, or Arm's).
bool multiplies_in_bfloat16();

/// What is to be said of a run in these types on a device of `type`: nothing, or that its bfloat16 may be slow.
std::vector<std::string> notes_on_bfloat16(const std::string& type, DType dtype, std::optional<DType> frozen_dtype);

/// The CPU as a stand-in: tensors are 1 / shrink of what they stand for, and so is its memory limit; it reports whole
/// bytes. Its time is a virtual clock's.
std::unique_ptr<ComputeDevice> make_emulated_device(int shrink);

}  // namespace frostpipe
