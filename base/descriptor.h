#pragma once
#include <unistd.h>

#include <utility>

namespace frostpipe {

/// Owns an open file descriptor (of a file or a socket) and closes it on destruction. A negative number means none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  /// Gives up ownership: the caller must close the descriptor.
  int release() { return std::exchange(number_, -1); }
  /// Closes the descriptor now. Returns the result of close(2), or 0 if nothing is open.
  int close() { return number_ < 0 ? 0 : ::close(std::exchange(number_, -1)); }

 private:
  int number_ = -1;
};

}  // namespace frostpipe
