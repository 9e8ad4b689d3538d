#include "tests/executor/fake_gpu/fake_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace frostpipe::test {
namespace {

constexpr std::size_t kRegionBytes = std::size_t{1} << 36;
constexpr std::size_t kPiece = 512;
constexpr int kMaxGpus = 16;
constexpr int kPoison = 0xff;

thread_local int current_gpu = 0;

std::byte* reserve(int protection) {
  void* const region =
      mmap(nullptr, kRegionBytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, /*offset=*/0);
  if (region == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(region);
}

struct OfGpu {
  Bytes live = 0, peak = 0, limit = 0;
  FakeMemory::OutOfMemory out_of_memory;
};

struct Used {
  std::size_t bytes;  // in whole pieces
  Bytes asked;
  int gpu;
  int pool;
};

/// Free blocks: their sizes by their offsets.
using Free = std::map<std::size_t, std::size_t>;

/// Frees a block and merges it with its neighbours.
void add(Free& free, std::size_t begin, std::size_t bytes) {
  auto piece = free.emplace(begin, bytes).first;
  if (const auto next = std::next(piece); next != free.end() && piece->first + piece->second == next->first) {
    piece->second += next->second;
    free.erase(next);
  }
  if (piece == free.begin()) return;
  if (const auto before = std::prev(piece); before->first + before->second == piece->first) {
    before->second += piece->second;
    free.erase(piece);
  }
}

/// The first block that is large enough, if any.
std::optional<std::size_t> take(Free& free, std::size_t bytes) {
  auto found = free.begin();
  while (found != free.end() && found->second < bytes) ++found;
  if (found == free.end()) return std::nullopt;
  const auto [begin, size] = *found;
  free.erase(found);
  if (size > bytes) free.emplace(begin + bytes, size - bytes);
  return begin;
}

class Region {
 public:
  static Region& instance() {
    static Region* const region = new Region;  // tensors may outlive everything else
    return *region;
  }
  void* allocate(std::size_t bytes, int gpu) {
    const std::lock_guard lock(mutex_);
    OfGpu& own = gpus_[gpu];
    const std::size_t asked = bytes;
    bytes = (bytes + kPiece - 1) / kPiece * kPiece;
    if (own.out_of_memory && own.live + static_cast<Bytes>(asked) > own.limit)
      own.out_of_memory(static_cast<Bytes>(asked), own.live);
    std::optional<std::size_t> begin = take(free_[pool_], bytes);
    if (!begin) begin = take(free_[0], bytes);
    if (!begin) throw std::bad_alloc();
    used_.emplace(*begin, Used{bytes, static_cast<Bytes>(asked), gpu, pool_});
    own.live += static_cast<Bytes>(asked);
    own.peak = std::max(own.peak, own.live);
    std::memset(for_kernels_ + *begin, kPoison, bytes);
    return for_nobody_ + *begin;
  }
  void release(void* address) {
    const std::lock_guard lock(mutex_);
    const auto found = used_.find(static_cast<std::size_t>(static_cast<std::byte*>(address) - for_nobody_));
    const std::size_t begin = found->first;
    const auto [bytes, asked, gpu, pool] = found->second;
    used_.erase(found);
    gpus_[gpu].live -= asked;
    std::memset(for_kernels_ + begin, kPoison, bytes);
    add(free_[pool], begin, bytes);
  }
  void use_pool(int pool) {
    const std::lock_guard lock(mutex_);
    pool_ = pool;
  }
  void give_up_pool(int pool) {
    const std::lock_guard lock(mutex_);
    for (const auto& [begin, bytes] : free_[pool]) add(free_[0], begin, bytes);
    free_.erase(pool);
    for (auto& [begin, used] : used_)
      if (used.pool == pool) used.pool = 0;
  }
  FakeMemory::Contents contents() {
    const std::lock_guard lock(mutex_);
    FakeMemory::Contents contents;
    for (const auto& [begin, used] : used_)
      contents.emplace(begin, std::vector(for_kernels_ + begin, for_kernels_ + begin + used.bytes));
    return contents;
  }
  void undo(const FakeMemory::Contents& contents) {
    const std::lock_guard lock(mutex_);
    for (const auto& [begin, used] : used_)
      if (!contents.contains(begin)) std::memset(for_kernels_ + begin, kPoison, used.bytes);
    for (const auto& [begin, bytes] : contents) std::memcpy(for_kernels_ + begin, bytes.data(), bytes.size());
  }
  bool has(const void* address) const {
    const auto* const at = static_cast<const std::byte*>(address);
    return at >= for_nobody_ && at < for_nobody_ + kRegionBytes;
  }
  void* for_kernels(const void* address) const {
    return has(address) ? for_kernels_ + (static_cast<const std::byte*>(address) - for_nobody_) : nullptr;
  }
  OfGpu figures(int gpu) {
    const std::lock_guard lock(mutex_);
    return gpus_[gpu];
  }
  template <class Change>
  void change(int gpu, Change change) {
    const std::lock_guard lock(mutex_);
    change(gpus_[gpu]);
  }

 private:
  std::mutex mutex_;
  std::byte* const for_nobody_ = reserve(PROT_NONE);
  std::byte* const for_kernels_ = reserve(PROT_READ | PROT_WRITE);
  std::map<int, Free> free_{{0, {{0, kRegionBytes}}}};  // by pool
  int pool_ = 0;
  std::map<std::size_t, Used> used_;
  std::array<OfGpu, kMaxGpus> gpus_;
};

struct DeviceAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(current_gpu));
    if (bytes == 0) return {nullptr, nullptr, &free, device};
    void* const memory = Region::instance().allocate(bytes, current_gpu);
    return {memory, memory, &free, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(FakeMemory::for_kernels(to), FakeMemory::for_kernels(from), bytes);
  }
  static void free(void* memory) {
    if (memory) Region::instance().release(memory);
  }
};

/// The offsets of blocks, and their sizes.
struct PinnedPieces {
  std::mutex mutex;
  std::map<const std::byte*, std::size_t> sizes;
  std::vector<void*> let_go;
  static PinnedPieces& instance() {
    static auto* const pieces = new PinnedPieces;
    return *pieces;
  }
};

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    void* const memory = std::aligned_alloc(kPiece, (bytes / kPiece + 1) * kPiece);
    if (!memory) throw std::bad_alloc();
    PinnedPieces& pieces = PinnedPieces::instance();
    const std::lock_guard lock(pieces.mutex);
    pieces.sizes.emplace(static_cast<const std::byte*>(memory), bytes);
    return {memory, memory, &free, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
  static void free(void* memory) {
    PinnedPieces& pieces = PinnedPieces::instance();
    const std::lock_guard lock(pieces.mutex);
    pieces.sizes.erase(static_cast<const std::byte*>(memory));
    pieces.let_go.push_back(memory);
  }
};

}  // namespace

c10::Allocator& FakeMemory::allocator() {
  static auto* const allocator = new DeviceAllocator;
  return *allocator;
}
void* FakeMemory::for_kernels(const void* device_address) { return Region::instance().for_kernels(device_address); }
Bytes FakeMemory::live_bytes(int device) { return Region::instance().figures(device).live; }
Bytes FakeMemory::peak_bytes(int device) { return Region::instance().figures(device).peak; }
void FakeMemory::reset_peak(int device) {
  Region::instance().change(device, [](OfGpu& own) { own.peak = own.live; });
}
void FakeMemory::set_limit(int device, Bytes limit, OutOfMemory out_of_memory) {
  Region::instance().change(device, [&](OfGpu& own) {
    own.limit = limit;
    own.out_of_memory = std::move(out_of_memory);
  });
}

void FakeMemory::use_pool(int pool) { Region::instance().use_pool(pool); }
void FakeMemory::give_up_pool(int pool) { Region::instance().give_up_pool(pool); }
FakeMemory::Contents FakeMemory::contents() { return Region::instance().contents(); }
void FakeMemory::undo(const Contents& contents) { Region::instance().undo(contents); }

c10::Allocator& FakePinnedMemory::allocator() {
  static auto* const allocator = new PinnedAllocator;
  return *allocator;
}
bool FakePinnedMemory::has(const void* address) {
  PinnedPieces& pieces = PinnedPieces::instance();
  const std::lock_guard lock(pieces.mutex);
  const auto after = pieces.sizes.upper_bound(static_cast<const std::byte*>(address));
  if (after == pieces.sizes.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return static_cast<const std::byte*>(address) < begin + size;
}

void FakePinnedMemory::reuse() {
  PinnedPieces& pieces = PinnedPieces::instance();
  const std::lock_guard lock(pieces.mutex);
  for (void* const memory : pieces.let_go) std::free(memory);
  pieces.let_go.clear();
}

int num_fake_gpus() {
  static const int num = [] {
    const char* const text = std::getenv("FROSTPIPE_FAKE_GPUS");
    return text ? std::atoi(text) : 1;
  }();
  return num;
}
int current_fake_gpu() { return current_gpu; }
void set_current_fake_gpu(int device) { current_gpu = device; }

}  // namespace frostpipe::test
