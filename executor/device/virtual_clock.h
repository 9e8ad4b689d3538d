#pragma once
#include <functional>

#include "base/steady_clock.h"

namespace frostpipe {

/// The clock of a host, which never goes back, and a way to sleep until a time on it.
struct HostClock {
  std::function<Nanoseconds()> now;
  std::function<void(Nanoseconds)> sleep_until;
};

/// The time of an emulated rank, from 0 on; ranks may be on several hosts, whose clocks have nothing in common. It
/// advances only when the rank says so: by an action's duration, or to the arrival time of a message that the rank
/// waits for. Times are therefore the same however late the host runs a rank. The rank sleeps until the host's clock
/// has reached the same time, and does not sleep if that is ahead already.
class VirtualClock {
 public:
  /// Uses this host's clock (steady_now_ns).
  VirtualClock();
  explicit VirtualClock(HostClock host);

  Nanoseconds now() const { return now_; }
  /// Advances to `time`; does nothing if that is past.
  void wait_until(Nanoseconds time);
  void pass(Nanoseconds duration) { wait_until(now_ + duration); }

  /// Forgets how late the rank is, so that it does not catch up.
  void synchronize() { lag_ = host_.now() - now_; }
  /// Between these two calls the clock advances at least as fast as the host's; earlier lateness does not count. A
  /// second call of begin_host_time(), or of end_host_time() without it, has no effect.
  void begin_host_time();
  void end_host_time();

 private:
  HostClock host_;
  Nanoseconds now_ = 0;
  Nanoseconds lag_;  // how far this clock is behind the host's if the rank is on time
  bool takes_host_time_ = false;
};

}  // namespace frostpipe
