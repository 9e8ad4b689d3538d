#include "executor/device/virtual_clock.h"

#include <chrono>
#include <thread>

namespace frostpipe {

void VirtualClock::wait_until(Nanoseconds time) {
  now_ = std::max(now_, time);
  using Clock = std::chrono::steady_clock;
  std::this_thread::sleep_until(
      Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::nanoseconds(now_ + lag_))));
}

void VirtualClock::set_to_host() {
  now_ = std::max(now_, steady_now_ns());
  lag_ = 0;
}

void VirtualClock::begin_host_time() {
  if (!takes_host_time_) lag_ = steady_now_ns() - now_;
  takes_host_time_ = true;
}

void VirtualClock::end_host_time() {
  if (takes_host_time_) now_ = std::max(now_, steady_now_ns() - lag_);
  takes_host_time_ = false;
}

}  // namespace frostpipe
