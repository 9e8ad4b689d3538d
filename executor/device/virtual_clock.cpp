#include "executor/device/virtual_clock.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace frostpipe {

void VirtualClock::wait_until(Nanoseconds time) {
  now_ = std::max(now_, time);
  using Clock = std::chrono::steady_clock;
  std::this_thread::sleep_until(
      Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::nanoseconds(now_ + lag_))));
}

void VirtualClock::begin_host_time() {
  if (!takes_host_time_) be_on_time();
  takes_host_time_ = true;
}

void VirtualClock::end_host_time() {
  if (takes_host_time_) now_ = std::max(now_, steady_now_ns() - lag_);
  takes_host_time_ = false;
}

}  // namespace frostpipe
