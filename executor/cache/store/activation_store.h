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
  std::vector<Bytes> entry_bytes;  // per sample of the node
  Bytes memory_bytes = 0;
  Bytes disk_bytes = 0;
  std::filesystem::path disk_folder;                 // must exist if disk_bytes > 0
  std::filesystem::path memory_folder = "/dev/shm";  // a file system in memory
};

/// One entry per sample, shared by the processes of a node: in host memory as far as that goes, then on disk; samples
/// beyond both have none.
///
/// Slots have fixed places and are written over when a sample's activation is replaced, so nothing is ever freed, and
/// writing stays on pages that exist (the fastest way measured). Every sample is used once in an epoch, in random
/// order: no rule of eviction does better than leaving the first ones where they are.
///
/// Nobody waits for anybody: an entry is found whole under its key, or it is missing. A writer that dies in the middle,
/// a flipped bit, a full disk make entries missing, nothing else. Memory is reserved when the store is made, so that a
/// full /dev/shm cannot kill a process later. Where that folder takes nothing (full, read-only, not there), no slots
/// are in memory, and those on disk are there all the same.
class ActivationStore {
 public:
  /// Where a store's files can be opened: they have no names, and go with the last process that has them, however it
  /// ends.
  struct Files {
    std::string shared, disk;
  };

  /// By one process of the node. What cannot be reserved makes the store smaller, see note(), down to one without any
  /// slot. Throws InvalidInput unless the disk folder is one, RuntimeFailure if there is no memory for its table (24
  /// bytes per sample).
  static std::unique_ptr<ActivationStore> create(const ActivationStoreOptions& options, const std::string& name);
  /// By the others, with the same options, while a process lives that has the store. Throws RuntimeFailure if there is
  /// no such store, or no room to map it.
  static std::unique_ptr<ActivationStore> open(const ActivationStoreOptions& options, const Files& files);
  ~ActivationStore();

  Files files() const;

  /// Copies the sample's entry to `to` (its entry_bytes) if it is whole and has one of these keys: returns that key,
  /// else 0. Keys are not 0.
  std::uint64_t read(int sample, std::span<const std::uint64_t> keys, std::span<std::byte> to) const;
  /// The sample's entry has a place: there is room for the first ones alone.
  bool has_slot(int sample) const { return sample < slots_in_memory_ + slots_on_disk_; }
  /// True if an entry under that key stands there, read or not.
  bool holds(int sample, std::uint64_t key) const;
  /// False if the sample has no slot or the disk refused. Two processes must not write one sample at a time (the entry
  /// would be missing).
  bool write(int sample, std::uint64_t key, std::span<const std::byte> from);

  int slots_in_memory() const { return slots_in_memory_; }
  int slots_on_disk() const { return slots_on_disk_; }
  /// What could not be reserved and why; empty if all could.
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

  std::unique_ptr<File> shared_, disk_;  // header, entry words and slots in memory; slots on disk
  std::vector<Bytes> sizes_, offsets_;   // per sample with a slot: in its file
  int slots_in_memory_ = 0, slots_on_disk_ = 0;
  Bytes memory_begin_ = 0;  // of the slots in the shared file
  std::byte* mapped_ = nullptr;
  Bytes mapped_bytes_ = 0;
  std::string note_;
};

}  // namespace frostpipe
