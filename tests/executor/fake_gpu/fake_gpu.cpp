// Replaces libfrostpipe_cuda.so by a device "cuda" for machines without a GPU; LibTorch's own checks of dtype and
// device see CUDA tensors. Programs that have this library beside them compute on it.
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "base/error.h"
#include "base/steady_clock.h"
#include "executor/device/device.h"
#include "tests/executor/fake_gpu/fake_graphs.h"
#include "tests/executor/fake_gpu/fake_memory.h"
#include "tests/executor/fake_gpu/fake_nccl.h"
#include "tests/executor/fake_gpu/fake_runtime.h"

namespace frostpipe::test {
namespace {

class FakeGpu final : public ComputeDevice {
 public:
  FakeGpu(int local_rank, int replaced, const char* (*action)())
      : index_(gpu_number(local_rank, replaced, num_fake_gpus())), action_(action) {
    at::set_num_threads(1);
    at::globalContext().lazyInitDevice(at::kCUDA);
    set_current_fake_gpu(index_);
  }
  std::string type() const override { return "cuda"; }
  std::string description() const override { return "a fake GPU, which computes on the CPU"; }
  at::Device torch_device() const override { return {at::kCUDA, static_cast<at::DeviceIndex>(index_)}; }
  void set_num_threads(int) override {}
  std::string identity() const override { return std::to_string(index_); }
  c10::intrusive_ptr<c10d::Backend> make_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                               const std::string&) override {
    return make_fake_nccl_group(store, rank, size);
  }
  void synchronize() override { FakeStream::wait(); }
  void first_mark() override {
    marks_.clear();
    mark();
  }
  void mark() override { marks_.push_back(steady_now_ns()); }
  std::vector<Nanoseconds> marked_ns() override { return marks_; }
  void set_memory_limit(std::optional<Bytes> limit, const std::string& who) override {
    const auto out_of_memory = [this, who, limit](Bytes wanted, Bytes live) {
      throw RuntimeFailure(who + ": out of memory in " + action_() + ": " + std::to_string(wanted) +
                           " more bytes do not fit on top of " + std::to_string(live) + " live ones; the limit is " +
                           std::to_string(limit.value_or(0)) + "; memory_limit_bytes");
    };
    FakeMemory::set_limit(index_, limit.value_or(std::numeric_limits<Bytes>::max()), out_of_memory);
  }
  Bytes live_bytes() override { return FakeMemory::live_bytes(index_); }
  Bytes peak_bytes() override { return FakeMemory::peak_bytes(index_); }
  void reset_peak() override { FakeMemory::reset_peak(index_); }
  std::unique_ptr<DeviceGraphs> make_graphs() override { return make_fake_graphs(); }
  void release_kept_memory() override {}

 private:
  int index_;
  const char* (*action_)();
  std::vector<Nanoseconds> marks_;
};

}  // namespace
}  // namespace frostpipe::test

extern "C" {

frostpipe::ComputeDevice* frostpipe_make_cuda_device(int local_rank, int replaced, bool, const char* (*action)()) {
  return new frostpipe::test::FakeGpu(local_rank, replaced, action);
}

/// The facts that `doctor` asks from CUDA.
int cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int ncclGetVersion(int* version) {
  *version = 22800;
  return 0;
}
int cudaGetDeviceCount(int* count) {
  *count = frostpipe::test::num_fake_gpus();
  return 0;
}
const char* cudaGetErrorString(int) { return "no error"; }
}
