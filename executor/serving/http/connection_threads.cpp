#include "executor/serving/http/connection_threads.h"

#include <system_error>
#include <utility>

namespace frostpipe {

ConnectionThreads::ConnectionThreads(std::size_t most, std::size_t most_waiting, std::function<void(Descriptor)> serve)
    : most_(most), most_waiting_(most_waiting), serve_(std::move(serve)) {}

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
    } catch (const std::system_error&) {
      if (threads_.empty()) return;  // else the threads that there are serve it
    }
  }
  if (waiting_.size() >= num_idle_ + most_waiting_) return;
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
    Descriptor connection = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    serve_(std::move(connection));
    lock.lock();
  }
}

}  // namespace frostpipe
