#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"

namespace frostpipe {

struct ActivationStoreOptions {
  std::vector<Bytes> entry_bytes;  // one per sample of the node
  Bytes memory_bytes = 0;
  Bytes disk_bytes = 0;
  std::filesystem::path disk_folder;                 // must exist if disk_bytes > 0
  std::filesystem::path memory_folder = "/dev/shm";  // a file system in memory (tmpfs)
};

/// A store with one entry per sample, shared by the processes of a node. The first samples have slots in host memory,
/// the next ones on disk, and the remaining ones have no slot.
///
/// Slots have fixed positions and are overwritten when a sample's activation is replaced. So nothing is freed, and
/// writes go to pages that exist already, which was measured to be the fastest way. Every sample is used once per
/// epoch, in random order, so no eviction policy is better than keeping the first samples.
///
/// No process waits for another: an entry is found complete under its key, or it is missing. A writer that dies in the
/// middle, a flipped bit or a full disk only make entries missing. Memory is reserved when the store is made, so that a
/// full /dev/shm cannot kill a process later. If `memory_folder` is full, read-only or missing, there are no slots in
/// memory but still those on disk.
class ActivationStore {
 public:
  /// The paths by which other processes open a store's files. The files have no names and disappear with the last
  /// process that holds them, however it ends.
  struct Files {
    std::string shared, disk;
  };

  /// Creates the store; called by one process of the node. `name` names its files while they are made. If not all space
  /// can be reserved the store is smaller, possibly without any slot, see note(). Throws InvalidInput if disk_bytes > 0
  /// and the disk folder is not a folder, and RuntimeFailure if there is no memory for the table (24 bytes per sample).
  static std::unique_ptr<ActivationStore> create(const ActivationStoreOptions& options, const std::string& name);
  /// Opens the store in another process, with the same options, while at least one process holds it. Throws
  /// RuntimeFailure if there is no such store, or no memory to map it.
  static std::unique_ptr<ActivationStore> open(const ActivationStoreOptions& options, const Files& files);
  ~ActivationStore();

  /// Returns the paths for open() in other processes.
  Files files() const;

  /// Copies the sample's entry to `to`, which has its entry_bytes, if the entry is complete and has one of these keys.
  /// Returns that key, else 0. Keys must not be 0.
  std::uint64_t read(int sample, std::span<const std::uint64_t> keys, std::span<std::byte> to) const;
  /// Returns whether the sample has a slot; only the first samples have.
  bool has_slot(int sample) const { return sample < slots_in_memory_ + slots_on_disk_; }
  /// True if the sample's entry has that key; its content is not checked.
  bool holds(int sample, std::uint64_t key) const;
  /// Writes an entry. Returns false if the sample has no slot or the disk failed. If two processes write the same
  /// sample at the same time, the entry is missing.
  bool write(int sample, std::uint64_t key, std::span<const std::byte> from);

  int slots_in_memory() const { return slots_in_memory_; }
  int slots_on_disk() const { return slots_on_disk_; }
  /// Describes what could not be reserved and why; "" if everything could.
  const std::string& note() const { return note_; }

 private:
  struct Header;
  struct Entry;
  class File;

  ActivationStore();
  static Bytes table_bytes(const ActivationStoreOptions& options);
  void make(const ActivationStoreOptions& options, const std::string& name);
  void join(const ActivationStoreOptions& options, const Files& files);
  std::unique_ptr<File> make_file(const std::filesystem::path& path, const std::string& place, Bytes fixed,
                                  Bytes& wanted);
  std::unique_ptr<File> make_table(const std::string& name) const;
  void map(Bytes bytes);
  void lay_out(const std::vector<Bytes>& entry_bytes, Bytes memory_bytes, Bytes disk_bytes);
  Entry& entry_of(int sample) const;
  bool in_memory(int sample) const { return sample < slots_in_memory_; }

  std::unique_ptr<File> shared_, disk_;  // `shared_`: header, entries' keys and slots in memory; `disk_`: slots on disk
  std::vector<Bytes> sizes_, offsets_;   // per sample with a slot; offsets within its file
  int slots_in_memory_ = 0, slots_on_disk_ = 0;
  Bytes memory_begin_ = 0;  // begin of the slots in the shared file
  std::byte* mapped_ = nullptr;
  Bytes mapped_bytes_ = 0;
  std::string note_;
};

}  // namespace frostpipe
