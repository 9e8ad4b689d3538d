#pragma once
#include <functional>

#include "base/steady_clock.h"

namespace frostpipe {

/// A host's clock, which never goes back, and how to sleep until a time of it.
struct HostClock {
  std::function<Nanoseconds()> now;
  std::function<void(Nanoseconds)> sleep_until;
};

/// The time on an emulated rank, from 0 on: ranks may be on several hosts, whose clocks have nothing in common. It
/// passes where the rank says so: with an action's duration, or when the rank waits for another one, whose messages say
/// when they arrive there. However late the host wakes a rank, its times are the same. The rank sleeps until the host's
/// clock is as far, and does not where that is ahead already.
class VirtualClock {
 public:
  /// On this host (steady_now_ns).
  VirtualClock();
  explicit VirtualClock(HostClock host);

  Nanoseconds now() const { return now_; }
  /// Nothing where that is past.
  void wait_until(Nanoseconds time);
  void pass(Nanoseconds duration) { wait_until(now_ + duration); }

  /// The rank does not make up for how late it is.
  void be_on_time() { lag_ = host_.now() - now_; }
  /// What a rank does between these two takes at least the time that it takes on the host; how late it was before does
  /// not count. What has begun already goes on, and what has not does not end.
  void begin_host_time();
  void end_host_time();

 private:
  HostClock host_;
  Nanoseconds now_ = 0;
  Nanoseconds lag_;  // of this clock behind the host's, where the rank is on time
  bool takes_host_time_ = false;
};

}  // namespace frostpipe
