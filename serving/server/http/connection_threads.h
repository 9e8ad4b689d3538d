#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/descriptor.h"

namespace frostpipe {

/// A pool of threads, each of which serves one connection at a time. A thread is started when a connection arrives and
/// no thread is idle, as long as there are fewer than `most`; further connections wait. The connection with the most
/// received bytes, counted up to 128, is served first; among equals, the oldest.
///
/// When no more connections may wait, a new one replaces another: among those that have waited for kGrace, the one with
/// the fewest bytes, if these are less than 128; else one whose client has left. If there is none, the new connection
/// waits in add() until a thread takes another, and later ones wait in the listening socket's backlog. Clients with
/// complete requests, few of which are shorter, are therefore not cut off by earlier ones.
class ConnectionThreads {
 public:
  /// Time in which a client's first bytes may still be in transfer.
  static constexpr std::chrono::milliseconds kGrace{100};

  /// There are at most `most` threads, but at most half as many as `max_connections`; the other connections may wait.
  /// `serve` must not throw.
  ConnectionThreads(std::size_t max_connections, std::size_t most, std::function<void(Descriptor)> serve);
  /// Serves the waiting connections, and returns.
  ~ConnectionThreads();
  ConnectionThreads(const ConnectionThreads&) = delete;
  ConnectionThreads& operator=(const ConnectionThreads&) = delete;

  /// Must be called by one thread only. If no thread can be started, existing threads serve the connection; if there
  /// are none, it is closed.
  void add(Descriptor connection);
  /// True if the maximum number of threads is running and a connection waits for one. Thread-safe.
  bool are_all_busy() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    Descriptor connection;
    Clock::time_point since;
  };

  void run();
  std::deque<Waiting>::iterator dispensable();

  const std::size_t max_, max_waiting_;
  const std::function<void(Descriptor)> serve_;
  mutable std::mutex mutex_;
  std::condition_variable changed_, has_room_;
  std::deque<Waiting> waiting_;
  std::size_t num_idle_ = 0;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

/// Returns the number of connections for which the process has descriptors, at least 2 and at most `wanted`. A quarter
/// of the free descriptors is reserved for everything else that a server opens: restarted workers, batches, files.
std::size_t max_connections(std::size_t wanted);

}  // namespace frostpipe
