#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "profiles/descriptor.h"

namespace frostpipe {

/// Threads that serve connections, one at a time each. A thread is started when a connection comes and none is idle, as
/// long as there are fewer than `most`; connections beyond that wait, and beyond `most_waiting` they are closed.
class ConnectionThreads {
 public:
  /// `serve` throws nothing.
  ConnectionThreads(std::size_t most, std::size_t most_waiting, std::function<void(Descriptor)> serve);
  /// Serves what waits, and returns.
  ~ConnectionThreads();
  ConnectionThreads(const ConnectionThreads&) = delete;
  ConnectionThreads& operator=(const ConnectionThreads&) = delete;

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

}  // namespace frostpipe
