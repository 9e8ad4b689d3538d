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

/// Threads that serve connections, one at a time each. A thread is started when a connection comes and none is idle, as
/// long as there are fewer than `most`; connections beyond that wait. Those are served first of which more bytes have
/// come, up to those of a request's head; of equal ones the oldest. Where no more may wait, the one is closed of which
/// the fewest have come, but for the newest quarter; where of all others a head may be there, one whose client has
/// left, then one of the newest quarter, or else the new one.
class ConnectionThreads {
 public:
  /// Half of `most_connections` may wait where that leaves fewer than `most` threads. `serve` throws nothing.
  ConnectionThreads(std::size_t most_connections, std::size_t most, std::function<void(Descriptor)> serve);
  /// Serves what waits, and returns.
  ~ConnectionThreads();
  ConnectionThreads(const ConnectionThreads&) = delete;
  ConnectionThreads& operator=(const ConnectionThreads&) = delete;

  /// Where no thread can be started for it, others serve it, or it is closed where there are none.
  void add(Descriptor connection);
  /// There are as many threads as may be, and some connection waits for one. Any thread may ask.
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

/// As many as the process has descriptors for, but at most `wished`. A quarter of those that are left is kept for all
/// else that a server opens: workers that are started again, batches, files.
std::size_t most_connections(std::size_t wished);

}  // namespace frostpipe
