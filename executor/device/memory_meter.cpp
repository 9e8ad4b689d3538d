#include "executor/device/memory_meter.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/system_reason.h"

namespace frostpipe {
namespace {

// These are process-wide because LibTorch's allocator registry is.
std::atomic<Bytes> live{0};
std::atomic<Bytes> peak{0};
std::atomic<Bytes> limit{std::numeric_limits<Bytes>::max()};
std::atomic<const char*> current_action{"start"};
std::mutex owner_mutex;
std::string owner;
thread_local int uncounted_depth = 0;

/// Precedes the data of every allocation, so that data and context are one pointer, which oneDNN's raw allocations
/// need.
struct Block {
  at::DataPtr inner;
  Bytes counted;
};
constexpr std::size_t kHeader = 64;  // keeps LibTorch's alignment
static_assert(sizeof(Block) <= kHeader);

Block* block_before(void* data) { return reinterpret_cast<Block*>(static_cast<std::byte*>(data) - kHeader); }

void release(void* data) {
  if (!data) return;
  Block* const block = block_before(data);
  live -= block->counted;
  const at::DataPtr inner = std::move(block->inner);  // frees header and data at the end of its scope
  block->~Block();
}

/// Adds to the live bytes. If that exceeds the limit, throws and leaves them unchanged.
void count(Bytes bytes) {
  const Bytes now = live += bytes;
  if (now > limit) {
    live -= bytes;
    const std::lock_guard lock(owner_mutex);
    throw RuntimeFailure(fmt::format(
        "{}: out of memory in {}: {} more bytes on top of {} live ones exceed the limit of {} ({} of {}). Use a plan "
        "with more stages or smaller micro-batches, or raise memory_limit_bytes in the cluster file.",
        owner, current_action.load(), bytes, now - bytes, limit.load(), format_bytes(now), format_bytes(limit)));
  }
  for (Bytes seen = peak; now > seen && !peak.compare_exchange_weak(seen, now);) {
  }
}

class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* inner) : inner_(inner) {}

  at::DataPtr allocate(std::size_t size) override {
    if (size == 0) return {nullptr, nullptr, &release, at::Device(at::kCPU)};
    const Bytes counted = uncounted_depth > 0 ? 0 : static_cast<Bytes>(size);
    if (counted > 0) count(counted);
    at::DataPtr inner = allocate_or_throw(size + kHeader, counted);
    auto* const base = static_cast<std::byte*>(inner.get());
    new (base) Block{std::move(inner), counted};
    void* const data = base + kHeader;
    return {data, data, &release, at::Device(at::kCPU)};
  }
  at::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t size) const override { inner_->copy_data(to, from, size); }

 private:
  /// LibTorch's own error names a line of its source but not the action.
  at::DataPtr allocate_or_throw(std::size_t size, Bytes counted) {
    try {
      return inner_->allocate(size);
    } catch (const c10::Error&) {
      live -= counted;
      const std::lock_guard lock(owner_mutex);
      throw RuntimeFailure(fmt::format("{}out of memory in {}: {} bytes: {}", owner.empty() ? "" : owner + ": ",
                                       current_action.load(), size, system_reason(ENOMEM)));
    }
  }

  c10::Allocator* inner_;
};

}  // namespace

void MemoryMeter::install() {
  static CountingAllocator* const allocator = [] {
    auto* const made = new CountingAllocator(c10::GetCPUAllocator());  // never freed, since tensors may live until the
                                                                       // process ends
    c10::SetCPUAllocator(made, /*priority=*/1);
    return made;
  }();
  static_cast<void>(allocator);
}

void MemoryMeter::set_limit(std::optional<Bytes> bytes, std::string who) {
  const std::lock_guard lock(owner_mutex);
  owner = std::move(who);
  limit = bytes.value_or(std::numeric_limits<Bytes>::max());
}

void MemoryMeter::stop_counting(const c10::DataPtr& storage) {
  if (storage.get_deleter() != &release || !storage) return;
  live -= std::exchange(block_before(storage.get_context())->counted, 0);
}

void MemoryMeter::set_action(const char* action) { current_action = action; }
const char* MemoryMeter::action() { return current_action; }
Bytes MemoryMeter::live_bytes() { return live; }
Bytes MemoryMeter::peak_bytes() { return peak; }
void MemoryMeter::reset_peak() { peak = live.load(); }

UncountedMemory::UncountedMemory() { ++uncounted_depth; }
UncountedMemory::~UncountedMemory() { --uncounted_depth; }

}  // namespace frostpipe
