#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/descriptor.h"

namespace frostpipe {

/// Memory of one process that others of the same user and host map too. It has no name in any folder and ends with the
/// last process that maps it, however that process ends.
class SharedMemory {
 public:
  /// By which another process finds the memory while the one that has made it keeps its file open.
  struct Address {
    std::int64_t process = 0;
    std::int64_t descriptor = -1;
    std::int64_t file = 0;  // its number, which no other memory of the host has
  };

  SharedMemory() = default;
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  /// New memory, all of it reserved. None where the system gives none: no room, or a limit of the process.
  static std::optional<SharedMemory> make(std::size_t bytes);
  /// That of another process, of at least `bytes`. None where the system does not let us: another user, or processes
  /// that do not see each other.
  static std::optional<SharedMemory> open(Address address, std::size_t bytes);

  /// That behind a descriptor of it. None where it has fewer bytes.
  static std::optional<SharedMemory> open(Descriptor file, std::size_t bytes);

  std::span<std::byte> bytes() const { return bytes_; }
  /// Until close_file().
  Address address() const;
  /// Nobody else finds the memory any more; it stays mapped.
  void close_file() { file_.close(); }

 private:
  static std::optional<SharedMemory> map(Descriptor file, std::size_t bytes);
  Descriptor file_;
  std::span<std::byte> bytes_;
};

}  // namespace frostpipe
