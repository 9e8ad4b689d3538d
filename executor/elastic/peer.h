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

// What PeerConnections keeps of each peer and of its messages; for its sources alone.

namespace frostpipe {

/// Messages report their end under one lock for all.
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

  /// The monitor is locked.
  void finish(std::string why_not = "") {
    is_done = true;
    error = std::move(why_not);
    owner.reset();
    monitor->changed.notify_all();
  }
};

enum class FrameKind : std::uint32_t { ready, data, line };

/// In front of every frame. `ready`: the sender of it waits for a message of `bytes`; `data` and `line`: this many
/// follow.
struct FrameHeader {
  FrameKind kind = FrameKind::ready;
  MessageChannel channel;
  std::uint64_t bytes = 0;
};

/// A frame that is being written, or waits for that.
struct OutgoingFrame {
  FrameHeader header;
  std::shared_ptr<MessageState> message;  // of data
  std::string line;
  std::uint64_t written = 0;  // of header and content together
};

/// What this rank has to do with one other.
struct Peer {
  Descriptor socket;
  std::string lost;                                                            // why; empty = it is there
  std::map<MessageChannel, std::deque<std::shared_ptr<MessageState>>> wanted;  // receives, in the order of their calls
  std::map<MessageChannel, std::deque<std::shared_ptr<MessageState>>>
      held_back;                                                  // sends that the other end has not asked for
  std::map<MessageChannel, std::deque<std::uint64_t>> asked_for;  // sizes that the other end waits for
  std::deque<OutgoingFrame> outbox;                               // only its writer removes
  std::atomic<int> flushes = 0;                                   // flush() calls; the first one writes for all
  std::mutex writing;                                             // taken before the monitor's
  bool is_full = false;                                           // the socket takes no more; the monitor's
  // Of the serving thread: what is being read.
  FrameHeader header;
  std::uint64_t header_read = 0, content_read = 0;
  std::shared_ptr<MessageState> incoming;
  std::string incoming_line;
};

/// The first value of a channel's queue, taken from it; nothing if there is none.
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
