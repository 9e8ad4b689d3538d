#include "executor/elastic/peer_connections.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/system_reason.h"
#include "executor/elastic/peer.h"

namespace frostpipe {
namespace {

/// Size of a socket's buffer. Larger buffers save switches between threads; the kernel may grant less.
constexpr int kSocketBufferBytes = 4 << 20;
constexpr std::uint64_t kLongestLine = 64 << 10;

}  // namespace

struct PeerConnections::State {
  std::shared_ptr<MessageMonitor> monitor = std::make_shared<MessageMonitor>();
  int self = 0;
  std::vector<Peer> peers;
  std::string posted;
  Descriptor wake_up{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<bool> ending = false;
  std::function<void()> on_loss;  // empty after the call
  std::thread thread;

  explicit State(std::size_t num_ranks) : peers(num_ranks) {}

  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_up.number(), &one, sizeof one);
  }

  /// Marks the peer as lost and fails all its messages. Only the serving thread may call this, or another thread once
  /// the serving thread has ended, because it releases the message that is being read.
  void lose(Peer& peer, const std::string& why) {
    const std::lock_guard writing(peer.writing);
    const std::lock_guard lock(monitor->mutex);
    if (!peer.lost.empty()) return;
    peer.lost = why;
    shutdown(peer.socket.number(), SHUT_RDWR);
    for (auto* const queues : {&peer.wanted, &peer.held_back}) {
      for (auto& [channel, messages] : *queues) {
        for (const std::shared_ptr<MessageState>& message : messages) message->finish(why);
      }
      queues->clear();
    }
    for (const OutgoingFrame& outgoing : peer.outbox) {
      if (outgoing.message) outgoing.message->finish(why);
    }
    peer.outbox.clear();
    if (peer.incoming) std::exchange(peer.incoming, nullptr)->finish(why);
  }

  /// Writes as much as the socket takes now; the serving thread writes the rest later. Never waits: while one thread
  /// writes, another leaves its frames to that one, which looks again. (A thread that spun until the writer has
  /// finished would keep it from a core that they share until the kernel's next tick, 4 ms.)
  void flush(Peer& peer) {
    if (peer.flushes.fetch_add(1) > 0) return;
    int answered = 1;
    do {
      write(peer);
      answered = peer.flushes.fetch_sub(answered) - answered;
    } while (answered > 0);
  }

  /// Called by flush() only.
  void write(Peer& peer) {
    const std::lock_guard writing(peer.writing);
    for (;;) {
      OutgoingFrame* outgoing = nullptr;
      {
        const std::lock_guard lock(monitor->mutex);
        if (!peer.lost.empty() || peer.outbox.empty()) return;
        outgoing = &peer.outbox.front();
      }
      auto* const content =
          outgoing->message ? outgoing->message->bytes : reinterpret_cast<std::byte*>(outgoing->line.data());
      const std::uint64_t content_size = outgoing->header.kind == FrameKind::ready ? 0 : outgoing->header.bytes;
      const std::uint64_t whole = sizeof(FrameHeader) + content_size;
      const std::uint64_t of_header = std::min<std::uint64_t>(outgoing->written, sizeof(FrameHeader));
      const std::uint64_t of_content = outgoing->written - of_header;
      iovec parts[2] = {{reinterpret_cast<std::byte*>(&outgoing->header) + of_header, sizeof(FrameHeader) - of_header},
                        {content + of_content, content_size - of_content}};
      msghdr frame{};
      frame.msg_iov = parts;
      frame.msg_iovlen = 2;
      const ssize_t written = sendmsg(peer.socket.number(), &frame, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {  // full; or broken, which the serving thread finds by reading
        {
          const std::lock_guard lock(monitor->mutex);
          peer.is_full = true;
        }
        return wake();
      }
      outgoing->written += static_cast<std::uint64_t>(written);
      if (outgoing->written < whole) continue;
      const std::lock_guard lock(monitor->mutex);
      if (outgoing->message) outgoing->message->finish();
      peer.outbox.pop_front();
    }
  }

  /// Queues the data of a message for which the peer has asked with `asked` bytes; if the sizes differ, fails the
  /// message and closes the connection. The monitor must be locked.
  void enqueue_data(Peer& peer, MessageChannel channel, const std::shared_ptr<MessageState>& message,
                    std::uint64_t asked) {
    if (asked == message->size) {
      peer.outbox.push_back({.header = {FrameKind::data, channel, message->size}, .message = message, .line = {}});
    } else {
      message->finish(fmt::format("a message of {} bytes was sent where one of {} is received", message->size, asked));
      shutdown(peer.socket.number(), SHUT_RDWR);
    }
  }

  /// Handles a complete header. Returns false if it is invalid.
  bool begin_frame(Peer& peer) {
    const FrameHeader& header = peer.header;
    if (header.kind == FrameKind::line) {
      peer.incoming_line.assign(std::min(header.bytes, kLongestLine), '\0');
      return header.bytes <= kLongestLine;
    }
    const std::lock_guard lock(monitor->mutex);
    if (header.kind == FrameKind::ready) {
      if (const auto message = take(peer.held_back, header.channel)) {
        enqueue_data(peer, header.channel, *message, header.bytes);
      } else {
        peer.asked_for[header.channel].push_back(header.bytes);
      }
      return true;
    }
    const auto message = take(peer.wanted, header.channel);
    if (!message || (*message)->size != header.bytes) return false;
    peer.incoming = *message;
    return true;
  }

  void end_frame(Peer& peer) {
    const bool is_ready = peer.header.kind == FrameKind::ready;
    if (peer.header.kind == FrameKind::line) {
      const std::lock_guard lock(monitor->mutex);
      posted = std::exchange(peer.incoming_line, "");
    } else if (peer.incoming) {
      const std::lock_guard lock(monitor->mutex);
      std::exchange(peer.incoming, nullptr)->finish();
    }
    peer.header_read = peer.content_read = 0;
    if (is_ready) flush(peer);
  }

  /// Reads all available bytes.
  void read(Peer& peer) {
    for (;;) {
      const bool in_header = peer.header_read < sizeof(FrameHeader);
      std::byte* const content =
          peer.incoming ? peer.incoming->bytes : reinterpret_cast<std::byte*>(peer.incoming_line.data());
      std::byte* const into =
          in_header ? reinterpret_cast<std::byte*>(&peer.header) + peer.header_read : content + peer.content_read;
      const std::uint64_t wanted =
          in_header ? sizeof(FrameHeader) - peer.header_read : peer.header.bytes - peer.content_read;
      const ssize_t got = recv(peer.socket.number(), into, wanted, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      const bool is_closed = got == 0 || (got < 0 && errno == ECONNRESET);  // a reset means that the peer closed
                                                                            // without reading everything
      if (got <= 0) return lose(peer, is_closed ? "the other end has closed the connection" : system_reason(errno));
      (in_header ? peer.header_read : peer.content_read) += static_cast<std::uint64_t>(got);
      if (peer.header_read < sizeof(FrameHeader)) continue;
      if (in_header && !begin_frame(peer))
        return lose(peer, "the peer has sent a message that this rank does not expect");
      const bool has_content = peer.header.kind != FrameKind::ready;
      if (!has_content || peer.content_read == peer.header.bytes) end_frame(peer);
    }
  }

  void serve() {
    std::vector<pollfd> entries;
    std::vector<Peer*> polled;
    while (!ending) {
      entries.assign(1, {wake_up.number(), POLLIN, 0});
      polled.clear();
      {
        const std::lock_guard lock(monitor->mutex);
        for (Peer& peer : peers) {
          if (!peer.socket.is_open() || !peer.lost.empty()) continue;
          entries.push_back({peer.socket.number(), static_cast<short>(peer.is_full ? POLLIN | POLLOUT : POLLIN), 0});
          polled.push_back(&peer);
        }
      }
      if (poll(entries.data(), entries.size(), -1) < 0) continue;
      std::uint64_t count = 0;
      if (entries[0].revents != 0) {
        [[maybe_unused]] const auto drained = ::read(wake_up.number(), &count, sizeof count);
      }
      for (std::size_t i = 0; i < polled.size(); ++i) {
        const short events = entries[i + 1].revents;
        if ((events & POLLOUT) != 0) {
          {
            const std::lock_guard lock(monitor->mutex);
            polled[i]->is_full = false;
          }
          flush(*polled[i]);
        }
        if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) read(*polled[i]);
      }
      const auto is_lost = [](const Peer* peer) { return !peer->lost.empty(); };  // set by this thread only
      if (on_loss && std::ranges::any_of(polled, is_lost)) std::exchange(on_loss, nullptr)();
    }
  }

  std::shared_ptr<MessageState> message_of(std::byte* bytes, std::uint64_t size,
                                           std::shared_ptr<const void> owner) const {
    auto message = std::make_shared<MessageState>();
    message->monitor = monitor;
    message->bytes = bytes;
    message->size = size;
    message->owner = std::move(owner);
    return message;
  }

  Peer& peer_of(int rank) {
    FROSTPIPE_CHECK(rank != self && rank >= 0 && rank < static_cast<int>(peers.size()), "messages go to other ranks");
    return peers[static_cast<std::size_t>(rank)];
  }
};

PeerConnections::PeerConnections(int self, std::vector<Descriptor> sockets, std::function<void()> on_loss)
    : state_(std::make_unique<State>(sockets.size())) {
  state_->self = self;
  state_->on_loss = std::move(on_loss);
  if (!state_->wake_up.is_open()) throw RuntimeFailure(fmt::format("connecting the ranks: {}", system_reason(errno)));
  for (std::size_t rank = 0; rank < sockets.size(); ++rank) {
    Peer& peer = state_->peers[rank];
    peer.socket = std::move(sockets[rank]);
    if (!peer.socket.is_open()) {
      peer.lost = "the launcher could not hand over the connection";
      continue;
    }
    if (setsockopt(peer.socket.number(), SOL_SOCKET, SO_SNDBUFFORCE, &kSocketBufferBytes, sizeof kSocketBufferBytes) ==
        0)
      continue;
    setsockopt(peer.socket.number(), SOL_SOCKET, SO_SNDBUF, &kSocketBufferBytes, sizeof kSocketBufferBytes);
  }
  state_->thread = std::thread([state = state_.get()] { state->serve(); });
}

PeerConnections::~PeerConnections() {
  state_->ending = true;
  state_->wake();
  state_->thread.join();
  for (Peer& peer : state_->peers) {
    if (peer.socket.is_open()) state_->lose(peer, "this rank has given up its connections");
  }
}

Message PeerConnections::send(int to_rank, MessageChannel channel, std::span<const std::byte> bytes,
                              std::shared_ptr<const void> owner) {
  Peer& peer = state_->peer_of(to_rank);
  Message message;
  message.state_ = state_->message_of(const_cast<std::byte*>(bytes.data()), bytes.size(), std::move(owner));
  {
    const std::lock_guard lock(state_->monitor->mutex);
    if (!peer.lost.empty()) {
      message.state_->finish(peer.lost);
    } else if (const auto asked = take(peer.asked_for, channel)) {
      state_->enqueue_data(peer, channel, message.state_, *asked);
    } else {
      peer.held_back[channel].push_back(message.state_);
      return message;
    }
  }
  state_->flush(peer);
  return message;
}

Message PeerConnections::receive(int from_rank, MessageChannel channel, std::span<std::byte> into,
                                 std::shared_ptr<const void> owner) {
  Peer& peer = state_->peer_of(from_rank);
  Message message;
  message.state_ = state_->message_of(into.data(), into.size(), std::move(owner));
  {
    const std::lock_guard lock(state_->monitor->mutex);
    if (peer.lost.empty()) {
      peer.wanted[channel].push_back(message.state_);
      peer.outbox.push_back({.header = {FrameKind::ready, channel, into.size()}, .message = nullptr, .line = {}});
    } else {
      message.state_->finish(peer.lost);
    }
  }
  state_->flush(peer);
  return message;
}

void PeerConnections::post(const std::string& line) {
  FROSTPIPE_CHECK(line.size() <= kLongestLine, "lines are short");
  for (Peer& peer : state_->peers) {
    if (!peer.socket.is_open()) continue;
    {
      const std::lock_guard lock(state_->monitor->mutex);
      if (!peer.lost.empty()) continue;
      peer.outbox.push_back({.header = {FrameKind::line, {}, line.size()}, .message = nullptr, .line = line});
    }
    state_->flush(peer);
  }
  const std::lock_guard lock(state_->monitor->mutex);
  state_->posted = line;
}

std::string PeerConnections::posted() const {
  const std::lock_guard lock(state_->monitor->mutex);
  return state_->posted;
}

bool PeerConnections::are_open() const {
  std::vector<pollfd> entries;
  for (const Peer& peer : state_->peers)
    if (peer.socket.is_open()) entries.push_back({peer.socket.number(), POLLRDHUP, 0});
  if (poll(entries.data(), entries.size(), /*timeout=*/0) < 0) return true;  // interrupted: the thread will find a loss
  return std::ranges::all_of(entries, [](const pollfd& entry) { return entry.revents == 0; });
}

void PeerConnections::close_connections() {
  for (const Peer& peer : state_->peers) {
    if (peer.socket.is_open())
      shutdown(peer.socket.number(), SHUT_RDWR);  // the serving thread, which may be reading, loses the peer
  }
}

}  // namespace frostpipe
