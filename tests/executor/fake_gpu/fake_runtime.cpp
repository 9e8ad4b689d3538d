#include "tests/executor/fake_gpu/fake_runtime.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/executor/fake_gpu/fake_graphs.h"
#include "tests/executor/fake_gpu/fake_memory.h"

namespace frostpipe::test {
namespace {

struct CopiesUnderway {
  struct Read {
    const void* from;
    std::vector<std::byte> was;
  };
  struct Write {
    void* to;
    std::vector<std::byte> what;
  };
  std::mutex mutex;
  std::vector<Read> reads;
  std::vector<Write> writes;
  static CopiesUnderway& instance() {
    static auto* const underway = new CopiesUnderway;
    return *underway;
  }
};

std::vector<std::byte> bytes_at(const void* from, std::size_t count) {
  const auto* const begin = static_cast<const std::byte*>(from);
  return {begin, begin + count};
}

/// The hooks that LibTorch calls for a device, in place of libtorch_cuda's.
struct CUDAHooks final : at::CUDAHooksInterface {  // NOLINT: LibTorch looks for this name
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  int getNumGPUs() const override { return num_fake_gpus(); }
  bool hasPrimaryContext(at::DeviceIndex) const override { return true; }
  at::DeviceIndex deviceCount() const override { return static_cast<at::DeviceIndex>(num_fake_gpus()); }
  at::DeviceIndex current_device() const override { return static_cast<at::DeviceIndex>(current_fake_gpu()); }
  at::DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(at::DeviceIndex device) const override { set_current_fake_gpu(device); }
  bool isPinnedPtr(const void* data) const override { return FakePinnedMemory::has(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &FakePinnedMemory::allocator(); }
  at::Allocator* getCUDADeviceAllocator() const override { return &FakeMemory::allocator(); }
  void deviceSynchronize(at::DeviceIndex) const override { FakeStream::wait(); }
};
using at::CUDAHooksArgs;
using at::CUDAHooksRegistry;
using at::RegistererCUDAHooksRegistry;
REGISTER_CUDA_HOOKS(CUDAHooks)

/// One stream per device, on which all work is done when it is issued.
struct FakeGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
  c10::Device getDevice() const override { return {type(), static_cast<c10::DeviceIndex>(current_fake_gpu())}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { set_current_fake_gpu(device.index()); }
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return getStream(stream.device()); }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(num_fake_gpus()); }
  void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {
    static int any = 0;
    *event = &any;
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { FakeStream::wait(); }
  void synchronizeEvent(void*) const override { FakeStream::complete(); }
  void synchronizeDevice(c10::DeviceIndex) const override { FakeStream::wait(); }
};
C10_REGISTER_GUARD_IMPL(CUDA, FakeGuard)

struct RegisterAllocator {
  RegisterAllocator() { c10::SetAllocator(c10::DeviceType::CUDA, &FakeMemory::allocator(), /*priority=*/1); }
} const register_allocator;

}  // namespace

void FakeStream::wait() {
  TORCH_CHECK(!FakeCapture::is_open(), "operation not permitted when stream is capturing");
  if (std::getenv("FROSTPIPE_CUDA_REPORT_WAITS")) TORCH_WARN("called a synchronizing CUDA operation");
  complete();
}

void FakeStream::complete() {
  CopiesUnderway& underway = CopiesUnderway::instance();
  const std::lock_guard lock(underway.mutex);
  for (const CopiesUnderway::Write& write : underway.writes)
    std::memcpy(write.to, write.what.data(), write.what.size());
  underway.writes.clear();
  const std::vector<CopiesUnderway::Read> reads = std::exchange(underway.reads, {});
  for (const CopiesUnderway::Read& read : reads)
    if (std::memcmp(read.from, read.was.data(), read.was.size()) != 0)
      throw std::logic_error("page-locked memory was written while it was being copied to the device");
  FakePinnedMemory::reuse();
}

void FakeStream::will_read(const void* pinned, std::size_t bytes) {
  TORCH_CHECK(!FakeCapture::is_open(), "a replay would read what the host keeps for another copy by then");
  CopiesUnderway& underway = CopiesUnderway::instance();
  const std::lock_guard lock(underway.mutex);
  underway.reads.push_back({pinned, bytes_at(pinned, bytes)});
}

void FakeStream::will_write(void* pinned, std::size_t bytes) {
  TORCH_CHECK(!FakeCapture::is_open(), "a replay would write what the host keeps for another copy by then");
  CopiesUnderway& underway = CopiesUnderway::instance();
  const std::lock_guard lock(underway.mutex);
  underway.writes.push_back({pinned, bytes_at(pinned, bytes)});
  std::memset(pinned, 0xff, bytes);
}

}  // namespace frostpipe::test
