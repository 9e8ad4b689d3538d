#pragma once
#include <chrono>
#include <memory>

namespace frostpipe {

struct MessageState;

/// A message in progress, see PeerConnections.
class Message {
 public:
  /// Waits until a sent message has left this process, or a received one has arrived. Throws std::runtime_error if the
  /// connection is lost, or after `limit` (0 = no limit).
  void wait(std::chrono::milliseconds limit = std::chrono::milliseconds(0)) const;
  /// True if wait() would return or throw at once.
  bool is_done() const;

 private:
  friend class PeerConnections;
  std::shared_ptr<MessageState> state_;
};

}  // namespace frostpipe
