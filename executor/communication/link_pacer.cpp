#include "executor/communication/link_pacer.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace frostpipe {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

struct LinkPacer::State {
  Cluster cluster;
  int shrink = 1;
  int self = 0;
  std::mutex mutex;
  std::condition_variable_any changed;
  std::multimap<Clock::time_point, std::function<void()>>
      waiting;                                 // by when they leave; equal times in the order they came
  std::map<int, Clock::time_point> link_free;  // by receiver
  std::jthread thread;                         // ends before what it uses

  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      if (waiting.empty()) {
        changed.wait(lock, stop, [&] { return !waiting.empty(); });
        continue;
      }
      const Clock::time_point due = waiting.begin()->first;
      if (Clock::now() < due) {
        changed.wait_until(lock, stop, due, [&] { return !waiting.empty() && waiting.begin()->first < due; });
        continue;
      }
      const std::function<void()> leave = std::move(waiting.extract(waiting.begin()).mapped());
      lock.unlock();
      leave();
      lock.lock();
    }
  }
};

LinkPacer::LinkPacer(Cluster cluster, int shrink, int self) : state_(std::make_unique<State>()) {
  state_->cluster = std::move(cluster);
  state_->shrink = shrink;
  state_->self = self;
  state_->thread = std::jthread([state = state_.get()](const std::stop_token& stop) { state->run(stop); });
}

LinkPacer::~LinkPacer() = default;

void LinkPacer::send(int to_rank, Bytes bytes, std::function<void()> leave) {
  const Link& link = link_between(state_->cluster, state_->self, to_rank).point_to_point;
  const std::lock_guard lock(state_->mutex);
  Clock::time_point& link_free = state_->link_free[to_rank];
  link_free =
      std::max(link_free, Clock::now()) + std::chrono::nanoseconds(transfer_occupancy_ns(link, bytes * state_->shrink));
  state_->waiting.emplace(link_free + std::chrono::nanoseconds(link.latency_ns), std::move(leave));
  state_->changed.notify_one();
}

Nanoseconds LinkPacer::all_reduce_ns(const std::vector<int>& ranks, Bytes bytes) const {
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  return frostpipe::all_reduce_ns(state_->cluster, sorted, bytes * state_->shrink);
}

}  // namespace frostpipe
