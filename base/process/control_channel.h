#pragma once
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/descriptor.h"

namespace frostpipe {

/// What one end says to the other.
struct ControlText {
  std::string text;
  Descriptor descriptor;  // that came with it, if one did; not inherited by programs that are started
};

/// One end of the line between a launcher and one of its processes (a pair of UNIX sockets): short texts, each whole or
/// not at all. One thread may send while another receives.
class ControlChannel {
 public:
  /// The launcher's end, which its processes do not inherit, and the process's end, which they do.
  static std::pair<ControlChannel, ControlChannel> make_pair();
  /// Takes over an open descriptor.
  explicit ControlChannel(int descriptor) : socket_(descriptor) {}
  ControlChannel(ControlChannel&& other) noexcept : socket_(std::move(other.socket_)), closed_(other.closed_.load()) {}
  ControlChannel& operator=(ControlChannel&& other) noexcept;

  int descriptor() const { return socket_.number(); }
  /// Never blocks. False if the other end is gone, or has read so little that there is no room. `descriptor` goes
  /// along if it is >= 0: the other end gets one of its own for the same thing.
  bool send(const std::string& text, int descriptor = -1);
  /// The next text, if one is there or comes in time; nothing either if the other end is gone, see closed().
  std::optional<ControlText> receive(std::chrono::milliseconds wait);
  bool closed() const { return closed_; }

 private:
  Descriptor socket_;
  std::atomic<bool> closed_ = false;
};

}  // namespace frostpipe
