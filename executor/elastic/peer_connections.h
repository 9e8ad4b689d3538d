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

/// Which messages between two ranks belong together: those of one channel arrive in the order in which they were sent.
struct MessageChannel {
  std::uint32_t group = 0;
  std::uint32_t tag = 0;
  auto operator<=>(const MessageChannel&) const = default;
};

/// The connections of a rank to all others of its job, on one host: for each a UNIX stream socket whose other end only
/// that rank has (the launcher makes the pairs and hands them out). Nothing listens and nothing has a name, so nobody
/// else can connect.
///
/// A message is sent when its receiver has asked for it: a receiver that falls behind holds its sender up, and nothing
/// is stored on the way. A thread of this object moves the bytes. All functions may be called from any thread.
class PeerConnections {
 public:
  /// `sockets`: by rank; none for `self`. A rank without one is lost from the beginning. `on_loss` is called once, by
  /// the thread, when a connection has ended, for whatever reason.
  PeerConnections(int self, std::vector<Descriptor> sockets, std::function<void()> on_loss = {});
  /// What is still on its way is lost.
  ~PeerConnections();
  PeerConnections(const PeerConnections&) = delete;
  PeerConnections& operator=(const PeerConnections&) = delete;

  /// Neither blocks. `owner` keeps the memory alive until the message is done; what is sent must not change before.
  Message send(int to_rank, MessageChannel channel, std::span<const std::byte> bytes,
               std::shared_ptr<const void> owner);
  /// `into` has the size of what is sent; else both ends' messages fail.
  Message receive(int from_rank, MessageChannel channel, std::span<std::byte> into, std::shared_ptr<const void> owner);

  /// A line for whoever looks, to all other ranks; nobody waits for it.
  void post(const std::string& line);
  /// What was posted last, by any rank; "" before that.
  std::string posted() const;

  /// False where the other end has closed one of the connections that there were at first. Asks the sockets, not the
  /// thread.
  bool are_open() const;

  /// Ends all connections: whoever waits at one, here or at its other end, gets an error at once.
  void sever();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace frostpipe
