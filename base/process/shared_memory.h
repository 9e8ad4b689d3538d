#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/descriptor.h"

namespace frostpipe {

/// Memory of one process that other processes of the same user and host map too. It has no name in the file system and
/// is freed when the last process that maps it ends, in whatever way.
class SharedMemory {
 public:
  /// Identifies the memory to another process, as long as the process that made it keeps the file open.
  struct Address {
    std::int64_t process = 0;
    std::int64_t descriptor = -1;
    std::int64_t file = 0;  // inode number, unique among the host's shared memories
  };

  SharedMemory() = default;
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  /// Makes new memory and reserves all of it. Returns none if the system refuses: no room, or a limit of the process.
  static std::optional<SharedMemory> make(std::size_t bytes);
  /// Maps the memory of another process. Returns none if it has fewer bytes, or the system refuses: another user, or
  /// processes in different containers.
  static std::optional<SharedMemory> open(Address address, std::size_t bytes);

  /// Maps the memory behind one of its descriptors. Returns none if it has fewer bytes, or the system refuses.
  static std::optional<SharedMemory> open(Descriptor file, std::size_t bytes);

  std::span<std::byte> bytes() const { return bytes_; }
  /// Returns the address for other processes, which is valid until close_file().
  Address address() const;
  /// Closes the descriptor: from now on no other process can open the memory, which stays mapped here.
  void close_file() { file_.close(); }

 private:
  static std::optional<SharedMemory> map(Descriptor file, std::size_t bytes);
  Descriptor file_;
  std::span<std::byte> bytes_;
};

}  // namespace frostpipe
