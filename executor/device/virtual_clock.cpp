#include "executor/device/virtual_clock.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace frostpipe {
namespace {

void sleep_until(Nanoseconds steady_time) {
  using Clock = std::chrono::steady_clock;
  std::this_thread::sleep_until(
      Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::nanoseconds(steady_time))));
}

}  // namespace

VirtualClock::VirtualClock() : VirtualClock(HostClock{.now = steady_now_ns, .sleep_until = sleep_until}) {}

VirtualClock::VirtualClock(HostClock host) : host_(std::move(host)), lag_(host_.now()) {}

void VirtualClock::wait_until(Nanoseconds time) {
  now_ = std::max(now_, time);
  host_.sleep_until(now_ + lag_);
}

void VirtualClock::begin_host_time() {
  if (!takes_host_time_) synchronize();
  takes_host_time_ = true;
}

void VirtualClock::end_host_time() {
  if (takes_host_time_) now_ = std::max(now_, host_.now() - lag_);
  takes_host_time_ = false;
}

}  // namespace frostpipe
