#pragma once
#include <unistd.h>

#include <utility>

namespace frostpipe {

/// An open file descriptor (of a file, a socket), closed with its owner; negative: none.
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
  /// No longer closed with this: the caller's.
  int release() { return std::exchange(number_, -1); }
  /// What close(2) says; 0 where nothing is open.
  int close() { return number_ < 0 ? 0 : ::close(std::exchange(number_, -1)); }

 private:
  int number_ = -1;
};

}  // namespace frostpipe
