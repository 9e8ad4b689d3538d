#include "executor/job/activation_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "executor/job/hash.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

constexpr Bytes kAlignment = 64;

Bytes aligned(Bytes bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

/// What the creator could reserve: the others lay their slots out by it.
struct ActivationStore::Header {
  Bytes memory_bytes;
  Bytes disk_bytes;
};

/// `version` is odd while someone writes. A reader takes what it copied only if the version stood still and the checksum is right.
struct ActivationStore::Entry {
  std::atomic<std::uint64_t> version;
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> checksum;
};

/// An open file.
class ActivationStore::File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() { close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int descriptor() const { return descriptor_; }
  /// 0, or why not.
  int reserve(Bytes bytes) const { return bytes > 0 ? posix_fallocate(descriptor_, 0, bytes) : 0; }
  bool read_at(Bytes offset, std::span<std::byte> to) const {
    while (!to.empty()) {
      const ssize_t got = pread(descriptor_, to.data(), to.size(), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      to = to.subspan(static_cast<std::size_t>(got));
      offset += got;
    }
    return true;
  }
  bool write_at(Bytes offset, std::span<const std::byte> from) const {
    while (!from.empty()) {
      const ssize_t put = pwrite(descriptor_, from.data(), from.size(), offset);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return false;
      from = from.subspan(static_cast<std::size_t>(put));
      offset += put;
    }
    return true;
  }

 private:
  int descriptor_;
};

std::unique_ptr<ActivationStore> ActivationStore::create(const ActivationStoreOptions& options, const std::string& name) {
  return std::unique_ptr<ActivationStore>(new ActivationStore(options, {"/dev/shm/" + name, (options.disk_folder / name).string()}, /*creates=*/true));
}

std::unique_ptr<ActivationStore> ActivationStore::open(const ActivationStoreOptions& options, const Files& files) {
  return std::unique_ptr<ActivationStore>(new ActivationStore(options, files, /*creates=*/false));
}

ActivationStore::ActivationStore(const ActivationStoreOptions& options, Files files, bool creates) {
  if (options.disk_bytes > 0 && !std::filesystem::is_directory(options.disk_folder)) {
    throw InvalidInput("cache folder", "must be an existing folder; make it, or give another", options.disk_folder.string());
  }
  const int flags = O_RDWR | O_CLOEXEC | (creates ? O_CREAT | O_EXCL : 0);
  const int shared = ::open(files.shared.c_str(), flags, 0600);
  if (shared < 0) throw RuntimeFailure(fmt::format("activation cache: {}: {}", files.shared, std::strerror(errno)));
  if (creates) ::unlink(files.shared.c_str());
  shared_ = std::make_unique<File>(shared);
  memory_begin_ = aligned(sizeof(Header)) + aligned(static_cast<Bytes>(options.entry_bytes.size() * sizeof(Entry)));

  Header sizes{options.memory_bytes, options.disk_bytes};
  const auto reserve = [&](const File& file, const char* tier, Bytes offset, Bytes wanted) {
    Bytes bytes = wanted;
    int error = file.reserve(offset + bytes);
    const int first_error = error;
    while (error != 0 && bytes > 0) {
      bytes /= 2;
      error = file.reserve(offset + bytes);
    }
    if (error != 0) bytes = -1;
    if (first_error != 0) {
      note_ += fmt::format("{}{}: {} of {} could be reserved: {}", note_.empty() ? "" : "; ", tier, format_bytes(std::max<Bytes>(0, bytes)), format_bytes(wanted), std::strerror(first_error));
    }
    return bytes;
  };
  if (creates) {
    lay_out(options.entry_bytes, options.memory_bytes, options.disk_bytes);  // no more than the entries need
    Bytes memory_needed = 0, disk_needed = 0;
    for (int sample = 0; sample < slots_in_memory_ + slots_on_disk_; ++sample) (in_memory(sample) ? memory_needed : disk_needed) += aligned(sizes_[sample]);
    sizes.memory_bytes = reserve(*shared_, "/dev/shm", memory_begin_, memory_needed);
    if (sizes.memory_bytes < 0) throw RuntimeFailure("activation cache: no room in /dev/shm even for its table: " + note_);
    if (disk_needed > 0) {
      const int disk = ::open(files.disk.c_str(), flags, 0600);
      const int error = errno;
      if (disk >= 0) {
        ::unlink(files.disk.c_str());
        disk_ = std::make_unique<File>(disk);
        disk_needed = reserve(*disk_, files.disk.c_str(), 0, disk_needed);
      } else {
        note_ += fmt::format("{}{}: {}", note_.empty() ? "" : "; ", files.disk, std::strerror(error));
        disk_needed = 0;
      }
    }
    sizes.disk_bytes = std::max<Bytes>(0, disk_needed);
  } else if (!shared_->read_at(0, std::as_writable_bytes(std::span(&sizes, 1)))) {
    throw RuntimeFailure(fmt::format("activation cache: {} cannot be read", files.shared));
  }
  lay_out(options.entry_bytes, sizes.memory_bytes, sizes.disk_bytes);
  if (!creates && slots_on_disk_ > 0) {
    const int disk = ::open(files.disk.c_str(), flags, 0600);
    if (disk < 0) throw RuntimeFailure(fmt::format("activation cache: {}: {}", files.disk, std::strerror(errno)));
    disk_ = std::make_unique<File>(disk);
  }
  mapped_bytes_ = memory_begin_ + sizes.memory_bytes;
  void* const mapped = mmap(nullptr, static_cast<std::size_t>(mapped_bytes_), PROT_READ | PROT_WRITE, MAP_SHARED, shared_->descriptor(), 0);
  if (mapped == MAP_FAILED) throw RuntimeFailure(fmt::format("activation cache: mapping {}: {}", files.shared, std::strerror(errno)));
  mapped_ = static_cast<std::byte*>(mapped);
  if (creates) std::memcpy(mapped_, &sizes, sizeof sizes);  // reserved pages are zero: every entry is missing
}

ActivationStore::~ActivationStore() {
  if (mapped_) munmap(mapped_, static_cast<std::size_t>(mapped_bytes_));
}

ActivationStore::Files ActivationStore::files() const {
  const auto of_this_process = [](const std::unique_ptr<File>& file) { return file ? fmt::format("/proc/{}/fd/{}", getpid(), file->descriptor()) : ""; };
  return {of_this_process(shared_), of_this_process(disk_)};
}

void ActivationStore::lay_out(const std::vector<Bytes>& entry_bytes, Bytes memory_bytes, Bytes disk_bytes) {
  sizes_.clear();
  offsets_.clear();
  slots_in_memory_ = slots_on_disk_ = 0;
  Bytes used = 0;
  for (const Bytes bytes : entry_bytes) {
    const bool fits_in_memory = slots_on_disk_ == 0 && used + aligned(bytes) <= memory_bytes;
    if (!fits_in_memory && slots_on_disk_ == 0) used = 0;  // from here on in the other file
    if (!fits_in_memory && used + aligned(bytes) > disk_bytes) return;
    ++(fits_in_memory ? slots_in_memory_ : slots_on_disk_);
    sizes_.push_back(bytes);
    offsets_.push_back(used);
    used += aligned(bytes);
  }
}

ActivationStore::Entry& ActivationStore::entry_of(int sample) const {
  return reinterpret_cast<Entry*>(mapped_ + aligned(sizeof(Header)))[sample];
}

bool ActivationStore::holds(int sample, std::uint64_t key) const {
  if (!has_slot(sample)) return false;
  const Entry& entry = entry_of(sample);
  return entry.version.load(std::memory_order_acquire) % 2 == 0 && entry.key.load(std::memory_order_relaxed) == key;
}

std::uint64_t ActivationStore::read(int sample, std::span<const std::uint64_t> keys, std::span<std::byte> to) const {
  if (!has_slot(sample)) return 0;
  FROSTPIPE_CHECK(static_cast<Bytes>(to.size()) == sizes_[sample], "an entry is read as a whole");
  Entry& entry = entry_of(sample);
  const std::uint64_t version = entry.version.load(std::memory_order_acquire);
  std::uint64_t key = entry.key.load(std::memory_order_relaxed), checksum = entry.checksum.load(std::memory_order_relaxed);
  if (version % 2 != 0 || std::find(keys.begin(), keys.end(), key) == keys.end()) return 0;
  if (in_memory(sample)) {
    std::memcpy(to.data(), mapped_ + memory_begin_ + offsets_[sample], to.size());
  } else if (!disk_->read_at(offsets_[sample], to)) {
    return 0;
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  if (entry.version.load(std::memory_order_relaxed) != version) return 0;
  if (hash_bytes(to) == checksum) return key;
  entry.key.compare_exchange_strong(key, 0, std::memory_order_relaxed);  // damaged: to be written again
  return 0;
}

bool ActivationStore::write(int sample, std::uint64_t key, std::span<const std::byte> from) {
  FROSTPIPE_CHECK(key != 0, "0 says that there is no entry");
  if (!has_slot(sample)) return false;
  FROSTPIPE_CHECK(static_cast<Bytes>(from.size()) == sizes_[sample], "an entry is written as a whole");
  Entry& entry = entry_of(sample);
  const std::uint64_t version = entry.version.load(std::memory_order_relaxed) | 1;  // also where a writer died in the middle
  entry.version.store(version, std::memory_order_relaxed);
  entry.key.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  bool written = true;
  if (in_memory(sample)) {
    std::memcpy(mapped_ + memory_begin_ + offsets_[sample], from.data(), from.size());
  } else {
    written = disk_->write_at(offsets_[sample], from);
  }
  entry.checksum.store(hash_bytes(from), std::memory_order_relaxed);
  entry.key.store(written ? key : 0, std::memory_order_relaxed);
  entry.version.store(version + 1, std::memory_order_release);
  return written;
}

}  // namespace frostpipe
