#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "executor/elastic/message.h"

namespace frostpipe {

/// A channel between two ranks. Messages of one channel arrive in the order in which they were sent.
struct MessageChannel {
  std::uint32_t group = 0;
  std::uint32_t tag = 0;
  auto operator<=>(const MessageChannel&) const = default;
};

/// The connections of a rank to all other ranks of its job on one host. Each is a UNIX stream socket pair that the
/// launcher made and gave to the two ranks. The sockets have no names and nothing listens, so no other process can
/// connect.
///
/// A message is sent only when its receiver has asked for it, so a slow receiver holds up its sender and nothing is
/// buffered in between. A thread of this object moves the bytes. All functions may be called from any thread.
class PeerConnections {
 public:
  /// `sockets` is indexed by rank and has none for `self`. A rank without a socket counts as lost from the beginning.
  /// `on_loss` is called once, by the thread of this object, when any connection has ended.
  PeerConnections(int self, std::vector<Descriptor> sockets, std::function<void()> on_loss = {});
  /// Drops the messages in progress.
  ~PeerConnections();
  PeerConnections(const PeerConnections&) = delete;
  PeerConnections& operator=(const PeerConnections&) = delete;

  /// Start a message and return at once. `owner` keeps the memory of `bytes` or `into` alive until the message is done.
  /// The bytes to be sent must not change before that.
  Message send(int to_rank, MessageChannel channel, std::span<const std::byte> bytes,
               std::shared_ptr<const void> owner);
  /// `into` must have the size of the message that is sent; otherwise both messages fail and the connection is closed.
  Message receive(int from_rank, MessageChannel channel, std::span<std::byte> into, std::shared_ptr<const void> owner);

  /// Sends a line of at most 64 KiB to all other ranks, without waiting for any of them.
  void post(const std::string& line);
  /// Returns the line that was posted here or has arrived last; "" if none was.
  std::string posted() const;

  /// Returns false if any of the original connections has been closed by its peer. Asks the sockets directly rather
  /// than the thread.
  bool are_open() const;

  /// Closes all connections. Every wait for a message, on this rank or on a peer, fails at once.
  void close_connections();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace frostpipe
