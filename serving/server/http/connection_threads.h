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

/// Threads that serve connections, one at a time each. A thread is started when a connection comes and none is idle, as
/// long as there are fewer than `most`; connections beyond that wait. The connection with the most bytes received, up
/// to those of a request's head, is served first; of equal ones the oldest.
///
/// Where no more connections may wait, a new one takes the place of one that is of least use: of those that have waited
/// for kGrace the one with the fewest bytes, if these are fewer than a head has, else one whose client has left. Where
/// there is none, the new connection waits in add() until a thread takes another, and those behind it wait in the
/// queue of the listening socket: a client that asks in earnest is not cut off because others have asked before it.
class ConnectionThreads {
 public:
  /// A client's first bytes may be on their way for so long.
  static constexpr std::chrono::milliseconds kGrace{100};

  /// Half of `most_connections` may wait where that leaves fewer than `most` threads. `serve` throws nothing.
  ConnectionThreads(std::size_t most_connections, std::size_t most, std::function<void(Descriptor)> serve);
  /// Serves the waiting connections, and returns.
  ~ConnectionThreads();
  ConnectionThreads(const ConnectionThreads&) = delete;
  ConnectionThreads& operator=(const ConnectionThreads&) = delete;

  /// To be called by one thread. Where no thread can be started for the connection, others serve it, or it is closed
  /// where there are none.
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

  const std::size_t most_, most_waiting_;
  const std::function<void(Descriptor)> serve_;
  mutable std::mutex mutex_;
  std::condition_variable changed_, has_room_;
  std::deque<Waiting> waiting_;
  std::size_t num_idle_ = 0;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

/// Returns how many connections the process has descriptors for, at most `wished`. A quarter of the free descriptors is
/// reserved for everything else that a server opens: restarted workers, batches, files.
std::size_t most_connections(std::size_t wished);

}  // namespace frostpipe
