#include "executor/serving/http/connection_threads.h"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iterator>
#include <new>
#include <utility>

#include "profiles/system_reason.h"

namespace frostpipe {

std::size_t most_connections(std::size_t wished) {
  const auto limit = process_limit(RLIMIT_NOFILE);
  if (!limit) return wished;
  const std::filesystem::directory_iterator open("/proc/self/fd");
  const std::int64_t left = *limit - std::distance(begin(open), end(open));
  return static_cast<std::size_t>(std::clamp<std::int64_t>(left / 4 * 3, 2, static_cast<std::int64_t>(wished)));
}

ConnectionThreads::ConnectionThreads(std::size_t most_connections, std::size_t most,
                                     std::function<void(Descriptor)> serve)
    : most_(std::min(most, most_connections / 2)), most_waiting_(most_connections - most_), serve_(std::move(serve)) {}

ConnectionThreads::~ConnectionThreads() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ConnectionThreads::add(Descriptor connection) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= num_idle_ && threads_.size() < most_) {
    try {
      threads_.emplace_back([this] { run(); });
    } catch (const std::exception&) {  // no thread, or no memory, is left for now
      if (threads_.empty()) return;    // else the threads that there are serve it
    }
  }
  try {
    if (waiting_.size() >= num_idle_ + most_waiting_) {
      const std::vector<bool> have_said = has_said_something();
      const auto silent = std::find(have_said.begin(), have_said.end(), false);
      if (silent == have_said.end()) return;
      waiting_.erase(waiting_.begin() + (silent - have_said.begin()));
    }
    waiting_.push_back(std::move(connection));
  } catch (const std::bad_alloc&) {
    return;
  }
  changed_.notify_one();
}

/// Of the connections that wait, in their order; those that have ended count.
std::vector<bool> ConnectionThreads::has_said_something() const {
  std::vector<pollfd> asked;
  for (const Descriptor& connection : waiting_) asked.push_back({connection.number(), POLLIN, 0});
  poll(asked.data(), asked.size(), 0);
  std::vector<bool> have_said;
  for (const pollfd& one : asked) have_said.push_back(one.revents != 0);
  return have_said;
}

Descriptor ConnectionThreads::take_next() {
  std::ptrdiff_t next = 0;
  try {
    const std::vector<bool> have_said = has_said_something();
    const auto found = std::find(have_said.begin(), have_said.end(), true);
    if (found != have_said.end()) next = found - have_said.begin();
  } catch (const std::bad_alloc&) {
    // the first one, then
  }
  Descriptor connection = std::move(waiting_[next]);
  waiting_.erase(waiting_.begin() + next);
  return connection;
}

bool ConnectionThreads::are_all_busy() const {
  const std::lock_guard lock(mutex_);
  return threads_.size() >= most_ && waiting_.size() > num_idle_;
}

void ConnectionThreads::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++num_idle_;
    changed_.wait(lock, [this] { return is_ending_ || !waiting_.empty(); });
    --num_idle_;
    if (waiting_.empty()) return;
    Descriptor connection = take_next();
    lock.unlock();
    serve_(std::move(connection));
    lock.lock();
  }
}

}  // namespace frostpipe
