#pragma once
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/descriptor.h"

namespace frostpipe {

/// A message from one end to the other.
struct ControlText {
  std::string text;
  Descriptor descriptor;  // came with the text, or none; not inherited by child programs
};

/// One end of a channel between a launcher and one of its processes (a pair of UNIX sockets). It carries texts of 1 to
/// 65,536 bytes, each delivered whole or not at all. One thread may send while another receives.
class ControlChannel {
 public:
  /// Returns the launcher's end, which child processes do not inherit, and the process's end, which they do. Throws
  /// RuntimeFailure if the system refuses.
  static std::pair<ControlChannel, ControlChannel> make_pair();
  /// Takes over an open descriptor.
  explicit ControlChannel(int descriptor) : socket_(descriptor) {}
  ControlChannel(ControlChannel&& other) noexcept : socket_(std::move(other.socket_)), closed_(other.closed_.load()) {}
  ControlChannel& operator=(ControlChannel&& other) noexcept;

  int descriptor() const { return socket_.number(); }
  /// Sends a text without ever blocking. Returns false if the other end is closed or its buffer is full. A `descriptor`
  /// >= 0 is sent along: the other end receives a duplicate.
  bool send(const std::string& text, int descriptor = -1);
  /// Returns the next text, waiting at most `wait` for it. Returns none on time-out, after a signal, or if the other
  /// end is closed: see closed().
  std::optional<ControlText> receive(std::chrono::milliseconds wait);
  bool closed() const { return closed_; }

 private:
  Descriptor socket_;
  std::atomic<bool> closed_ = false;
};

}  // namespace frostpipe
