#include "executor/device/device.h"

#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/cpu/Utils.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "base/error.h"
#include "executor/device/cuda_module.h"
#include "executor/device/gloo_group.h"
#include "executor/device/memory_meter.h"
#include "executor/installation/machine.h"
#include "profiles/device_type.h"

namespace frostpipe {
namespace {

/// Keeps freed memory in the process. Tensors of the same sizes come and go in every step; memory returned to the
/// system would come back page by page and zeroed, which takes a fifth of a step where tensors have tens of megabytes
/// (docs/measurements/models_and_data.md).
void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, 64 << 20);
}

class CpuDevice : public ComputeDevice {
 public:
  explicit CpuDevice(int threads) {
    CpuDevice::set_num_threads(threads);
    MemoryMeter::install();
    keep_freed_memory();
  }
  std::string type() const override { return device_type_with_threads("cpu", threads_); }
  std::string description() const override {
    return processor_name() +
           (threads_ == 1 ? ", one thread per rank" : fmt::format(", {} threads per rank", threads_));
  }
  at::Device torch_device() const override { return at::kCPU; }
  void set_num_threads(int threads) override {
    threads_ = threads;
    at::set_num_threads(threads);
  }
  c10::intrusive_ptr<c10d::Backend> make_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                               const std::string& address) override {
    return make_gloo_group(store, rank, size, address);
  }
  void synchronize() override {}
  void mark() override { marks_.push_back(now_ns()); }
  void first_mark() override {
    marks_.clear();
    mark();
  }
  std::vector<Nanoseconds> marked_ns() override { return marks_; }
  void set_memory_limit(std::optional<Bytes> limit, const std::string& who) override {
    MemoryMeter::set_limit(limit, who);
  }
  Bytes live_bytes() override { return MemoryMeter::live_bytes(); }
  Bytes peak_bytes() override { return MemoryMeter::peak_bytes(); }
  void reset_peak() override { MemoryMeter::reset_peak(); }
  void release_kept_memory() override { malloc_trim(0); }

 private:
  int threads_ = 1;
  std::vector<Nanoseconds> marks_;
};

class EmulatedDevice final : public CpuDevice {
 public:
  explicit EmulatedDevice(int shrink) : CpuDevice(1), shrink_(shrink) {}
  std::string type() const override { return "emulated"; }
  std::string description() const override { return fmt::format("emulated, tensors 1/{}", shrink_); }
  Nanoseconds now_ns() override { return clock_.now(); }
  VirtualClock* virtual_clock() override { return &clock_; }
  void set_memory_limit(std::optional<Bytes> limit, const std::string& who) override {
    if (limit) *limit /= shrink_;
    CpuDevice::set_memory_limit(limit, shrink_ > 1 ? fmt::format("{} (bytes / {})", who, shrink_) : who);
  }
  Bytes live_bytes() override { return CpuDevice::live_bytes() * shrink_; }
  Bytes peak_bytes() override { return CpuDevice::peak_bytes() * shrink_; }

 private:
  int shrink_;
  VirtualClock clock_;
};

std::unique_ptr<ComputeDevice> load_cuda_device(int local_rank, int replaced, bool is_alone) {
  void* const module = load_cuda_module();
  using Factory = ComputeDevice* (*)(int, int, bool, const char* (*)());
  const auto factory = reinterpret_cast<Factory>(dlsym(module, "frostpipe_make_cuda_device"));
  if (!factory) throw RuntimeFailure(std::string("device cuda: ") + dlerror());
  return std::unique_ptr<ComputeDevice>(factory(local_rank, replaced, is_alone, MemoryMeter::action));
}

}  // namespace

std::unique_ptr<ComputeDevice> make_device(const std::string& type, int local_rank, int threads, bool is_alone,
                                           std::optional<int> replaced) {
  if (type == "cpu") return std::make_unique<CpuDevice>(threads);
  if (type == "cuda") return load_cuda_device(local_rank, replaced.value_or(local_rank), is_alone);
  throw InvalidInput("device", "must be cpu or cuda", type);
}

bool multiplies_in_bfloat16() {
  const auto capabilities = at::cpu::get_cpu_capabilities();
  return std::ranges::any_of(std::array{"avx512_bf16", "amx_bf16", "bf16"}, [&](const char* instructions) {
    const auto found = capabilities.find(instructions);
    return found != capabilities.end() && found->second.toBool();
  });
}

std::vector<std::string> notes_on_bfloat16(const std::string& type, DType dtype, std::optional<DType> frozen_dtype) {
  if (type != "cpu" || (dtype != DType::kBFloat16 && frozen_dtype != DType::kBFloat16) || multiplies_in_bfloat16())
    return {};
  return {
      fmt::format("{} has no instructions for bfloat16 (AVX-512 BF16, AMX): layers that compute in bfloat16 may be "
                  "slower than in float32; the profile tells by how much",
                  processor_name())};
}

std::unique_ptr<ComputeDevice> make_emulated_device(int shrink) { return std::make_unique<EmulatedDevice>(shrink); }

}  // namespace frostpipe
