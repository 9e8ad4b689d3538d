#include "executor/cache/store/activation_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/system_reason.h"

namespace frostpipe {
namespace {

constexpr Bytes kAlignment = 64;

Bytes aligned(Bytes bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

/// The sizes that the creator could reserve, from which the other processes compute the positions of the slots.
struct ActivationStore::Header {
  Bytes memory_bytes;
  Bytes disk_bytes;
};

/// `version` is odd while a process writes. A reader accepts its copy only if the version has not changed and the
/// checksum is right.
struct ActivationStore::Entry {
  std::atomic<std::uint64_t> version;
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> checksum;
};

Bytes ActivationStore::table_bytes(const ActivationStoreOptions& options) {
  return aligned(sizeof(Header)) + aligned(static_cast<Bytes>(options.entry_bytes.size() * sizeof(Entry)));
}

/// An open file.
class ActivationStore::File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}

  int descriptor() const { return descriptor_.number(); }
  /// Reserves space. Returns 0, or an errno value; then the file has no space.
  int reserve(Bytes bytes) const {
    int error = 0;
    do {
      error = bytes > 0 ? posix_fallocate(descriptor(), 0, bytes) : 0;
    } while (error == EINTR);
    // Some file systems keep what they have allocated until the disk was full.
    if (error != 0 && ftruncate(descriptor(), 0) != 0) return errno;
    return error;
  }
  bool read_at(Bytes offset, std::span<std::byte> to) const {
    while (!to.empty()) {
      const ssize_t got = pread(descriptor(), to.data(), to.size(), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      to = to.subspan(static_cast<std::size_t>(got));
      offset += got;
    }
    return true;
  }
  bool write_at(Bytes offset, std::span<const std::byte> from) const {
    while (!from.empty()) {
      const ssize_t put = pwrite(descriptor(), from.data(), from.size(), offset);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return false;
      from = from.subspan(static_cast<std::size_t>(put));
      offset += put;
    }
    return true;
  }

 private:
  Descriptor descriptor_;
};

std::unique_ptr<ActivationStore> ActivationStore::create(const ActivationStoreOptions& options,
                                                         const std::string& name) {
  std::unique_ptr<ActivationStore> store(new ActivationStore);
  store->make(options, name);
  return store;
}

std::unique_ptr<ActivationStore> ActivationStore::open(const ActivationStoreOptions& options, const Files& files) {
  std::unique_ptr<ActivationStore> store(new ActivationStore);
  store->join(options, files);
  return store;
}

ActivationStore::ActivationStore() = default;

void ActivationStore::make(const ActivationStoreOptions& options, const std::string& name) {
  if (options.disk_bytes > 0 && !std::filesystem::is_directory(options.disk_folder)) {
    throw InvalidInput("cache folder", "must be an existing folder; make it, or give another",
                       options.disk_folder.string());
  }
  Header sizes{0, 0};
  memory_begin_ = table_bytes(options);
  lay_out(options.entry_bytes, options.memory_bytes, 0);  // no more memory than the entries need
  for (int sample = 0; sample < slots_in_memory_; ++sample) sizes.memory_bytes += aligned(sizes_[sample]);
  shared_ = make_file(options.memory_folder / name, options.memory_folder.string(), memory_begin_, sizes.memory_bytes);
  if (!shared_) shared_ = make_table(name);
  lay_out(options.entry_bytes, sizes.memory_bytes, options.disk_bytes);
  for (int sample = slots_in_memory_; sample < slots_in_memory_ + slots_on_disk_; ++sample)
    sizes.disk_bytes += aligned(sizes_[sample]);
  const std::filesystem::path disk = options.disk_folder / name;
  if (sizes.disk_bytes > 0) disk_ = make_file(disk, disk.string(), 0, sizes.disk_bytes);
  lay_out(options.entry_bytes, sizes.memory_bytes, sizes.disk_bytes);
  map(memory_begin_ + sizes.memory_bytes);
  std::memcpy(mapped_, &sizes, sizeof sizes);  // reserved pages are zero: every entry is missing
}

void ActivationStore::join(const ActivationStoreOptions& options, const Files& files) {
  const auto open_file = [](const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor < 0) throw RuntimeFailure(fmt::format("{}: {}", path, system_reason(errno)));
    return std::make_unique<File>(descriptor);
  };
  shared_ = open_file(files.shared);
  Header sizes{};
  if (!shared_->read_at(0, std::as_writable_bytes(std::span(&sizes, 1))))
    throw RuntimeFailure(fmt::format("{}: cannot be read", files.shared));
  memory_begin_ = table_bytes(options);
  lay_out(options.entry_bytes, sizes.memory_bytes, sizes.disk_bytes);
  if (slots_on_disk_ > 0) disk_ = open_file(files.disk);
  map(memory_begin_ + sizes.memory_bytes);
}

/// Makes a file without a name of `fixed` + `wanted` bytes. Halves `wanted` until so many bytes can be reserved.
/// Returns null, and sets `wanted` to 0, if not even the fixed bytes fit or the file cannot be made. Adds to the note
/// how much could be reserved, if it is less.
std::unique_ptr<ActivationStore::File> ActivationStore::make_file(const std::filesystem::path& path,
                                                                  const std::string& place, Bytes fixed,
                                                                  Bytes& wanted) {
  const Bytes asked = std::exchange(wanted, 0);
  std::unique_ptr<File> file;
  int first_error = 0;
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, 0600);
  if (descriptor < 0) {
    first_error = errno;
  } else {
    ::unlink(path.c_str());
    file = std::make_unique<File>(descriptor);
    Bytes bytes = asked;
    int error = first_error = file->reserve(fixed + bytes);
    while (error != 0 && bytes > 0) {
      bytes /= 2;
      error = file->reserve(fixed + bytes);
    }
    if (error == 0) wanted = bytes;
    if (error != 0) file.reset();
  }
  if (first_error != 0 && asked > 0) {
    if (!note_.empty()) note_ += "; ";
    note_ += fmt::format("{}: {} of {} could be reserved: {}", place, format_bytes(wanted), format_bytes(asked),
                         system_reason(first_error));
  }
  return file;
}

/// Makes anonymous memory for the table alone, which is enough to find the slots on disk.
std::unique_ptr<ActivationStore::File> ActivationStore::make_table(const std::string& name) const {
  const int descriptor = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (descriptor < 0)
    throw RuntimeFailure(fmt::format("memory for the table of the activation cache: {}", system_reason(errno)));
  auto file = std::make_unique<File>(descriptor);
  if (const int error = file->reserve(memory_begin_))
    throw RuntimeFailure(fmt::format("memory for the table of the activation cache: {}", system_reason(error)));
  return file;
}

void ActivationStore::map(Bytes bytes) {
  void* const mapped =
      mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, shared_->descriptor(), 0);
  if (mapped == MAP_FAILED)
    throw RuntimeFailure(
        fmt::format("mapping {} of the activation cache: {}", format_bytes(bytes), system_reason(errno)));
  mapped_ = static_cast<std::byte*>(mapped);
  mapped_bytes_ = bytes;
}

ActivationStore::~ActivationStore() {
  if (mapped_) munmap(mapped_, static_cast<std::size_t>(mapped_bytes_));
}

ActivationStore::Files ActivationStore::files() const {
  const auto of_this_process = [](const std::unique_ptr<File>& file) {
    return file ? fmt::format("/proc/{}/fd/{}", getpid(), file->descriptor()) : "";
  };
  return {of_this_process(shared_), of_this_process(disk_)};
}

void ActivationStore::lay_out(const std::vector<Bytes>& entry_bytes, Bytes memory_bytes, Bytes disk_bytes) {
  sizes_.clear();
  offsets_.clear();
  slots_in_memory_ = slots_on_disk_ = 0;
  Bytes used = 0;
  for (const Bytes bytes : entry_bytes) {
    const bool fits_in_memory = slots_on_disk_ == 0 && used + aligned(bytes) <= memory_bytes;
    if (!fits_in_memory && slots_on_disk_ == 0) used = 0;  // from here on in the disk file
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
  std::uint64_t key = entry.key.load(std::memory_order_relaxed),
                checksum = entry.checksum.load(std::memory_order_relaxed);
  if (version % 2 != 0 || std::find(keys.begin(), keys.end(), key) == keys.end()) return 0;
  if (in_memory(sample)) {
    std::memcpy(to.data(), mapped_ + memory_begin_ + offsets_[sample], to.size());
  } else if (!disk_->read_at(offsets_[sample], to)) {
    return 0;
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  if (entry.version.load(std::memory_order_relaxed) != version) return 0;
  if (hash_bytes(to) == checksum) return key;
  entry.key.compare_exchange_strong(key, 0, std::memory_order_relaxed);  // damaged: mark it missing, so that it is
                                                                         // written again
  return 0;
}

bool ActivationStore::write(int sample, std::uint64_t key, std::span<const std::byte> from) {
  FROSTPIPE_CHECK(key != 0, "0 says that there is no entry");
  if (!has_slot(sample)) return false;
  FROSTPIPE_CHECK(static_cast<Bytes>(from.size()) == sizes_[sample], "an entry is written as a whole");
  Entry& entry = entry_of(sample);
  const std::uint64_t version =
      entry.version.load(std::memory_order_relaxed) | 1;  // may be odd already if a writer died in the middle
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
