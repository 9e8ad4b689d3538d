#pragma once
#include <algorithm>

#include "profiles/steady_clock.h"

namespace frostpipe {

/// The time on an emulated rank. It passes where the rank says so: with an action's duration, or when the rank waits
/// for another one, whose messages say when they arrive there. However late the host wakes a rank, its times are the
/// same. The rank sleeps until the host's clock is as far, and does not where that is ahead already.
class VirtualClock {
 public:
  VirtualClock() : now_(steady_now_ns()) {}
  Nanoseconds now() const { return now_; }
  /// Nothing where that is past.
  void wait_until(Nanoseconds time);
  void pass(Nanoseconds duration) { wait_until(now_ + duration); }

  /// Shows the host's time.
  void set_to_host();
  /// What a rank does between these two takes at least the time that it takes on the host; how late it was before does
  /// not count. What has begun already goes on, and what has not does not end.
  void begin_host_time();
  void end_host_time();

 private:
  Nanoseconds now_;
  Nanoseconds lag_ = 0;  // of this clock behind the host's, where the rank is on time
  bool takes_host_time_ = false;
};

}  // namespace frostpipe
