#include "serving/server/http/connection_threads.h"

#include <sys/ioctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/system_reason.h"
#include "serving/server/http/client_socket.h"

namespace frostpipe {
namespace {

/// A connection with this many received bytes counts as one with a complete request; few heads are shorter.
constexpr int kEnough = 128;

/// Returns the number of unread bytes, at most kEnough, so that sending more gives no advantage.
int bytes_received(const Descriptor& connection) {
  int bytes = 0;
  if (ioctl(connection.number(), FIONREAD, &bytes) != 0) return 0;
  return std::min(bytes, kEnough);
}

}  // namespace

std::size_t max_connections(std::size_t wanted) {
  const auto limit = process_limit(RLIMIT_NOFILE);
  if (!limit) return wanted;
  const std::filesystem::directory_iterator open("/proc/self/fd");
  const std::int64_t left = *limit - std::distance(begin(open), end(open));
  return static_cast<std::size_t>(std::clamp<std::int64_t>(left / 4 * 3, 2, static_cast<std::int64_t>(wanted)));
}

ConnectionThreads::ConnectionThreads(std::size_t max_connections, std::size_t most,
                                     std::function<void(Descriptor)> serve)
    : max_(std::min(most, max_connections / 2)), max_waiting_(max_connections - max_), serve_(std::move(serve)) {}

/// Returns the connection to close for a new one; the end if there is none.
std::deque<ConnectionThreads::Waiting>::iterator ConnectionThreads::dispensable() {
  const auto older = std::ranges::upper_bound(waiting_, Clock::now() - kGrace, {}, &Waiting::since);
  const auto bytes = [](const Waiting& one) { return bytes_received(one.connection); };
  const auto fewest = std::ranges::min_element(waiting_.begin(), older, {}, bytes);
  if (fewest != older && bytes(*fewest) < kEnough) return fewest;
  return std::ranges::find_if(waiting_, is_disconnected, &Waiting::connection);
}

ConnectionThreads::~ConnectionThreads() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ConnectionThreads::add(Descriptor connection) {
  constexpr std::chrono::milliseconds kBetweenLooks{5};
  std::unique_lock lock(mutex_);
  if (waiting_.size() >= num_idle_ && threads_.size() < max_) {
    try {
      threads_.emplace_back([this] { run(); });
    } catch (const std::exception&) {  // no thread or memory is available at present
      if (threads_.empty()) return;    // otherwise the existing threads serve it
    }
  }
  while (waiting_.size() >= num_idle_ + max_waiting_) {
    const auto least = dispensable();
    if (least != waiting_.end()) {
      waiting_.erase(least);
    } else {
      has_room_.wait_for(lock, kBetweenLooks);
    }
  }
  waiting_.push_back({std::move(connection), Clock::now()});
  changed_.notify_one();
}

bool ConnectionThreads::are_all_busy() const {
  const std::lock_guard lock(mutex_);
  return threads_.size() >= max_ && waiting_.size() > num_idle_;
}

void ConnectionThreads::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++num_idle_;
    changed_.wait(lock, [this] { return is_ending_ || !waiting_.empty(); });
    --num_idle_;
    if (waiting_.empty()) return;
    const auto next =
        std::ranges::max_element(waiting_, {}, [](const Waiting& one) { return bytes_received(one.connection); });
    Descriptor connection = std::move(next->connection);
    waiting_.erase(next);
    has_room_.notify_one();
    lock.unlock();
    serve_(std::move(connection));
    lock.lock();
  }
}

}  // namespace frostpipe
