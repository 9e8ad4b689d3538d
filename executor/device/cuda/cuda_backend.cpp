// The CUDA device, in a module of its own: the tool loads it for `--device cuda` and needs no CUDA library otherwise.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <vector>

#include "base/error.h"
#include "base/steady_clock.h"
#include "executor/device/cuda/cuda_graphs.h"
#include "executor/device/device.h"

namespace frostpipe {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

static_assert(NCCL_VERSION_CODE / 100 == 228,
              "nccl.h is not NCCL 2.28's, with which LibTorch 2.11 was built: ProcessGroupNCCL::Options holds its "
              "ncclConfig_t, and other versions have another one");

std::string in_gib(std::size_t bytes) {
  const std::string tenths = std::to_string((bytes * 10 + (1 << 29)) >> 30);
  return (tenths.size() > 1 ? tenths.substr(0, tenths.size() - 1) : "0") + "." + tenths.back() + " GiB";
}

/// Returns the bytes that tensors have requested. Blocks taken from the cache may be up to 1 MiB larger.
c10::CachingAllocator::Stat requested(c10::DeviceIndex device) {
  using c10::CachingAllocator::StatType;
  return allocator::getDeviceStats(device).requested_bytes[static_cast<std::size_t>(StatType::AGGREGATE)];
}

/// Returns the bytes of the workspaces that LibTorch allocates for cuBLAS, once per thread that computes, and never
/// frees. Each workspace is rounded up to a multiple of `piece` bytes.
Bytes bytes_for_cublas(std::size_t piece = 1) {
  const auto all = [piece](at::cuda::WorkspaceMapWithMutex& of_handles, std::size_t size) {
    const std::shared_lock lock(of_handles.mutex);
    return of_handles.map.size() * ((size + piece - 1) / piece * piece);
  };
  return static_cast<Bytes>(
      all(at::cuda::cublas_handle_stream_to_workspace(), at::cuda::getChosenWorkspaceSize()) +
      all(at::cuda::cublaslt_handle_stream_to_workspace(), at::cuda::getCUDABlasLtWorkspaceSize()));
}

/// NCCL's messages are kernels that wait on the device for the other rank, and work issued after one must be able to
/// pass it. Therefore no kernel may be loaded lazily (loading waits for the whole device), and streams may not share a
/// hardware queue (there are 8 by default). The driver reads both variables when it starts; values set by the user
/// stay. Loading all kernels takes some hundred megabytes of GPU memory.
void allow_concurrent_streams() {
  setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
}

/// Frostpipe finds lost ranks itself and ends the groups. LibTorch's watchdog would end the process on the same loss,
/// after blocking the group for a minute.
void disable_nccl_watchdog() {
  for (const char* const variable : {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_DUMP_ON_TIMEOUT",
                                     "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "TORCH_NCCL_ENABLE_MONITORING"})
    setenv(variable, "0", /*overwrite=*/0);
}

/// Shuts down in order, together with its peers, so that messages in progress arrive. While an exception unwinds, the
/// peers may be gone, so it does not wait then.
class NcclGroup final : public c10d::ProcessGroupNCCL {
 public:
  using ProcessGroupNCCL::ProcessGroupNCCL;
  ~NcclGroup() override {
    if (std::uncaught_exceptions() > 0) return;
    try {
      shutdown();
    } catch (const std::exception& error) {
      TORCH_WARN("ending a NCCL group: ", error.what());
    }
  }
};

/// Returns the rank to name in errors. It is process-wide because LibTorch's allocator is.
std::string& owner() {
  static std::string who = "this rank";
  return who;
}

/// Makes allocations that fail throw an error that names rank and action, which LibTorch's own error does not. Acts
/// once per process.
void explain_out_of_memory(const char* (*action)()) {
  static std::once_flag once;
  std::call_once(once, [action] {
    allocator::attachOutOfMemoryObserver([action](std::int64_t device, std::size_t wanted, std::size_t limit,
                                                  std::size_t free) {
      const Bytes live = requested(static_cast<c10::DeviceIndex>(device)).current;
      throw RuntimeFailure(owner() + ": out of memory in " + action() + ": " + std::to_string(wanted) +
                           " more bytes do not fit on top of " + std::to_string(live) + " live ones; the limit is " +
                           std::to_string(limit) + " (" + in_gib(limit) + "), the device has " + in_gib(free) +
                           " free. Use a plan with more stages or smaller micro-batches, or raise memory_limit_bytes "
                           "in the cluster file.");
    });
  });
}

/// Sets what must be set before the driver starts, and returns the number of the GPU that the rank uses. Throws
/// RuntimeFailure if there is none.
int choose_gpu(int local_rank, int replaced, bool is_alone) {
  if (!is_alone) allow_concurrent_streams();
  disable_nccl_watchdog();
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    int driver = 0;  // stays 0 if no driver is installed; CUDA's own reason ("insufficient") misleads then
    cudaDriverGetVersion(&driver);
    const std::string reason =
        error == cudaSuccess || driver == 0 ? "" : std::string(" (") + cudaGetErrorString(error) + ")";
    throw RuntimeFailure("device cuda: no CUDA device was found on this machine" + reason + "; use --device cpu");
  }
  return gpu_number(local_rank, replaced, count);
}

class CudaDevice final : public ComputeDevice {
 public:
  CudaDevice(int gpu, bool is_alone, const char* (*action)()) : index_(static_cast<c10::DeviceIndex>(gpu)) {
    at::set_num_threads(1);
    at::globalContext().lazyInitDevice(at::kCUDA);  // initializes LibTorch's allocator for the calls below
    c10::cuda::set_device(index_);
    if (std::getenv("FROSTPIPE_CUDA_REPORT_WAITS"))
      c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_WARN);
    explain_out_of_memory(action);
    is_alone_ = is_alone;
    expect_one_length(false);
    allocate_for_cublas();
  }

  std::string type() const override { return "cuda"; }
  std::string description() const override {
    const cudaDeviceProp& device = *at::cuda::getDeviceProperties(index_);
    return std::string(device.name) + ", " + in_gib(device.totalGlobalMem) + ", " +
           std::to_string(device.multiProcessorCount) + " SMs";
  }
  void set_num_threads(int) override {}
  at::Device torch_device() const override { return {at::kCUDA, index_}; }
  /// Returns the PCI bus id. The instances of a GPU that is split (MIG) have the same one, and NCCL refuses them, too.
  std::string identity() const override {
    std::array<char, 64> id{};
    const cudaError_t error = cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), index_);
    if (error != cudaSuccess)
      throw RuntimeFailure(std::string("device cuda: its PCI bus id: ") + cudaGetErrorString(error));
    return id.data();
  }

  /// NCCL connects each pair of ranks, and all of them for collectives, at first use, which blocks both ends. Each
  /// connection has a stream of its own, so that a stage's sends need not wait for its early receives.
  c10::intrusive_ptr<c10d::Backend> make_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                               const std::string&) override {
    const auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = std::chrono::minutes(30);  // lost ranks are found by heartbeat, not by this timeout
    auto group = c10::make_intrusive<NcclGroup>(store, rank, size, options);
    group->setBoundDeviceId(torch_device());
    return group;
  }

  /// Synchronizes the compute stream only: the whole device would include receives that were posted early.
  void synchronize() override { at::cuda::getCurrentCUDAStream(index_).synchronize(); }

  void first_mark() override {
    marks_.clear();
    first_mark_ns_ = steady_now_ns();
    mark();
  }
  void mark() override { marks_.emplace_back(cudaEventDefault).record(at::cuda::getCurrentCUDAStream(index_)); }
  std::vector<Nanoseconds> marked_ns() override {
    marks_.back().synchronize();
    std::vector<Nanoseconds> times;
    for (const at::cuda::CUDAEvent& mark : marks_)
      times.push_back(first_mark_ns_ + std::llround(1e6 * marks_.front().elapsed_time(mark)));
    return times;
  }

  /// The limit holds for the bytes that LibTorch's allocator holds, live or cached, in blocks of 2 MiB and more,
  /// without those of cuBLAS.
  void set_memory_limit(std::optional<Bytes> limit, const std::string& who) override {
    owner() = who;
    limit_ = limit;
    apply_limit();
  }
  Bytes live_bytes() override { return requested(index_).current - bytes_for_cublas(); }
  Bytes peak_bytes() override { return requested(index_).peak - bytes_for_cublas(); }
  void reset_peak() override { allocator::resetPeakStats(index_); }
  /// LibTorch prefers cuDNN's attention in bfloat16 on Hopper. cuDNN builds a plan per thread and length, and loads it,
  /// which waits for the whole device. While another rank waits for a message of this one, that may last for ever.
  void expect_one_length(bool has_one_length) final { at::globalContext().setSDPUseCuDNN(has_one_length && is_alone_); }
  std::unique_ptr<DeviceGraphs> make_graphs() override {
    if (!graph_stream_) {
      graph_stream_ = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index_);
      const c10::cuda::CUDAStreamGuard on_stream(*graph_stream_);
      allocator::setMemoryFraction(1.0, index_);  // no limit here, since it does not count cuBLAS's workspaces
      allocate_for_cublas();
      apply_limit();
    }
    return make_cuda_graphs(*graph_stream_);
  }
  void release_kept_memory() override {
    allocator::emptyCache();
    at::getHostAllocator(at::kCUDA)->empty_cache();  // page-locked buffers for messages of other sizes
  }

 private:
  /// Allocates the cuBLAS workspaces of the current stream, for this thread and for that of backward passes. If they
  /// were allocated at their first use in a run, they would fragment memory that tensors have freed, and would be
  /// missing in an earlier peak.
  void allocate_for_cublas() const {
    const at::TensorOptions options = at::TensorOptions().dtype(at::kFloat).device(torch_device());
    const at::Tensor x = at::ones({16, 16}, options).requires_grad_(true);
    at::linear(x, at::ones({16, 16}, options), at::ones({16}, options)).sum().backward();
    at::cuda::getCurrentCUDAStream(index_).synchronize();
  }

  void apply_limit() const {
    constexpr std::size_t kPiece = 2 << 20;
    const auto total = static_cast<double>(at::cuda::getDeviceProperties(index_)->totalGlobalMem);
    const double held = limit_ ? static_cast<double>(*limit_ + bytes_for_cublas(kPiece)) : total;
    allocator::setMemoryFraction(std::min(1.0, held / total), index_);
  }

  c10::DeviceIndex index_;
  bool is_alone_ = false;
  std::optional<Bytes> limit_;
  std::vector<at::cuda::CUDAEvent> marks_;
  Nanoseconds first_mark_ns_ = 0;
  std::optional<c10::cuda::CUDAStream> graph_stream_;
};

}  // namespace
}  // namespace frostpipe

/// Makes the device. This is the only entry point of the module; see load_cuda_device() in executor/device/device.cpp.
/// The other parameters are those of make_device() there. `action` returns what the rank is doing, for errors.
extern "C" frostpipe::ComputeDevice* frostpipe_make_cuda_device(int local_rank, int replaced, bool is_alone,
                                                                const char* (*action)()) {
  const int gpu = frostpipe::choose_gpu(local_rank, replaced, is_alone);
  try {
    return new frostpipe::CudaDevice(gpu, is_alone, action);
  } catch (const c10::Error& error) {  // the device exists but cannot be used: busy, broken, exclusive
    const std::string text = error.what_without_backtrace();
    throw frostpipe::RuntimeFailure("device cuda: device " + std::to_string(gpu) + ": " +
                                    text.substr(0, text.find('\n')));
  }
}
