#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "executor/elastic/peer_connections.h"

// The state of a peer and of its messages, for the sources of PeerConnections only.

namespace frostpipe {

/// One lock and condition variable for the completion of all messages.
struct MessageMonitor {
  std::mutex mutex;
  std::condition_variable changed;
};

struct MessageState {
  std::shared_ptr<MessageMonitor> monitor;
  std::byte* bytes = nullptr;
  std::uint64_t size = 0;
  std::shared_ptr<const void> owner;
  bool is_done = false;
  std::string error;

  /// The monitor must be locked.
  void finish(std::string why_not = "") {
    is_done = true;
    error = std::move(why_not);
    owner.reset();
    monitor->changed.notify_all();
  }
};

enum class FrameKind : std::uint32_t { ready, data, line };

/// Precedes every frame. For `ready`, `bytes` is the size of the message that the sender of the frame waits for; for
/// `data` and `line`, the size of the content that follows.
struct FrameHeader {
  FrameKind kind = FrameKind::ready;
  MessageChannel channel;
  std::uint64_t bytes = 0;
};

/// A frame that is being written or waits to be written.
struct OutgoingFrame {
  FrameHeader header;
  std::shared_ptr<MessageState> message;  // set for a data frame
  std::string line;
  std::uint64_t written = 0;  // bytes of header and content written so far
};

/// The state of the connection to one other rank.
struct Peer {
  Descriptor socket;
  std::string lost;  // reason for the loss; empty while connected
  std::map<MessageChannel, std::deque<std::shared_ptr<MessageState>>> wanted;  // receives, in the order of the calls
  std::map<MessageChannel, std::deque<std::shared_ptr<MessageState>>>
      held_back;                                                  // sends that the peer has not asked for yet
  std::map<MessageChannel, std::deque<std::uint64_t>> asked_for;  // sizes of messages that the peer waits for
  std::deque<OutgoingFrame> outbox;                               // only the writing thread removes frames
  std::atomic<int> flushes = 0;                                   // pending flush() calls; the first one writes for all
  std::mutex writing;                                             // locked before the monitor
  bool is_full = false;                                           // the socket takes no more; guarded by the monitor
  // The frame that is being read. Used by the serving thread only.
  FrameHeader header;
  std::uint64_t header_read = 0, content_read = 0;
  std::shared_ptr<MessageState> incoming;
  std::string incoming_line;
};

/// Removes and returns the first value of a channel's queue; nothing if there is none.
template <class Value>
std::optional<Value> take(std::map<MessageChannel, std::deque<Value>>& queues, MessageChannel channel) {
  const auto found = queues.find(channel);
  if (found == queues.end()) return std::nullopt;
  Value value = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) queues.erase(found);
  return value;
}

}  // namespace frostpipe
