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

/// Returns the connection to close for a new one; the end if there is none.
std::deque<Descriptor>::iterator dispensable(std::deque<Descriptor>& waiting) {
  const auto fewest = [&](auto end) { return std::ranges::min_element(waiting.begin(), end, {}, bytes_received); };
  const auto is_kept_back = [&](auto one) { return one != waiting.end() && bytes_received(*one) < kEnough; };
  // The bytes of the newest connections may still be in transfer.
  const auto older = fewest(waiting.end() - static_cast<std::ptrdiff_t>(waiting.size() / 4));
  if (is_kept_back(older)) return older;
  const auto left = std::ranges::find_if(waiting, has_left);
  if (left != waiting.end()) return left;
  const auto newer = fewest(waiting.end());
  return is_kept_back(newer) ? newer : waiting.end();
}

}  // namespace

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
    } catch (const std::exception&) {  // no thread or memory is available at present
      if (threads_.empty()) return;    // otherwise the existing threads serve it
    }
  }
  if (waiting_.size() >= num_idle_ + most_waiting_) {
    const auto least = dispensable(waiting_);
    if (least == waiting_.end()) return;
    waiting_.erase(least);
  }
  waiting_.push_back(std::move(connection));
  changed_.notify_one();
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
    const auto next = std::ranges::max_element(waiting_, {}, bytes_received);
    Descriptor connection = std::move(*next);
    waiting_.erase(next);
    lock.unlock();
    serve_(std::move(connection));
    lock.lock();
  }
}

}  // namespace frostpipe
