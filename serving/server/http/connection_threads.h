#pragma once
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
/// no thread is idle, as long as there are fewer than `most`; further connections wait. Connections with more received
/// bytes are served first, up to the size of a request's head; among equals, the oldest. When no more may wait, one is
/// closed: among those without a complete head, except the newest quarter, the one with the fewest bytes; else one
/// whose client has left; else one without a complete head of the newest quarter; else the new one.
class ConnectionThreads {
 public:
  /// If that leaves fewer than `most` threads, half of `most_connections` may wait. `serve` must not throw.
  ConnectionThreads(std::size_t most_connections, std::size_t most, std::function<void(Descriptor)> serve);
  /// Serves the waiting connections, and returns.
  ~ConnectionThreads();
  ConnectionThreads(const ConnectionThreads&) = delete;
  ConnectionThreads& operator=(const ConnectionThreads&) = delete;

  /// If no thread can be started, existing threads serve the connection; if there are none, it is closed.
  void add(Descriptor connection);
  /// True if the maximum number of threads is running and a connection waits for one. Thread-safe.
  bool are_all_busy() const;

 private:
  void run();

  const std::size_t most_, most_waiting_;
  const std::function<void(Descriptor)> serve_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Descriptor> waiting_;
  std::size_t num_idle_ = 0;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

/// Returns how many connections the process has descriptors for, at most `wished`. A quarter of the free descriptors is
/// reserved for everything else that a server opens: restarted workers, batches, files.
std::size_t most_connections(std::size_t wished);

}  // namespace frostpipe
