#include "executor/device/cuda/cuda_graphs.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <vector>

namespace frostpipe {
namespace {

class CudaGraphs final : public DeviceGraphs {
 public:
  explicit CudaGraphs(const c10::cuda::CUDAStream& stream) : stream_(stream) {}

  /// Thread-local mode lets other threads go on: backward passes run in a thread of LibTorch, and NCCL's watchdog in
  /// another.
  void capture(const std::function<void()>& work) override {
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    const c10::cuda::CUDAStreamGuard on_stream(stream_);
    graph->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      give_up(*graph);
      throw;
    }
    graph->capture_end();
    graphs_.push_back(std::move(graph));
  }

  void replay(std::size_t graph) override { graphs_.at(graph)->replay(); }

 private:
  /// If a call that is not permitted has invalidated the capture, LibTorch leaves its allocators in capture mode, in
  /// which they never free memory. This ends that mode.
  void give_up(at::cuda::CUDAGraph& graph) const {
    try {
      graph.capture_end();
      return;
    } catch (const c10::Error&) {  // the caller throws the error that has invalidated the capture
    }
    try {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(stream_.device_index(), pool_);
      c10::cuda::CUDACachingAllocator::releasePool(stream_.device_index(), pool_);
      at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(pool_);
      at::getHostAllocator(at::kCUDA)->release_pool(pool_);
    } catch (const c10::Error&) {  // the allocators were not in capture mode
    }
  }

  const c10::cuda::CUDAStream stream_;
  const at::cuda::MempoolId_t pool_ = at::cuda::graph_pool_handle();
  std::vector<std::unique_ptr<at::cuda::CUDAGraph>> graphs_;
};

}  // namespace

std::unique_ptr<DeviceGraphs> make_cuda_graphs(const c10::cuda::CUDAStream& stream) {
  return std::make_unique<CudaGraphs>(stream);
}

}  // namespace frostpipe
