#pragma once
#include "base/units.h"

namespace frostpipe {

/// One direction of a link, or a network card, as all simulators model it. It carries one message at a time, in the
/// order in which messages are issued: a message begins when it is ready and every link that it needs is free, and
/// occupies each of them for its bytes over that link's bandwidth. The message arrives one latency after the last of
/// these links has carried it; during the latency no link is occupied.
class LinkQueue {
 public:
  /// Returns the earliest time at which the next message can begin.
  Nanoseconds free_at() const { return free_at_; }
  /// Carries a message from begin_ns >= free_at() on. Returns the time at which the link is done.
  Nanoseconds carry(Nanoseconds begin_ns, Nanoseconds occupancy_ns) { return free_at_ = begin_ns + occupancy_ns; }

 private:
  Nanoseconds free_at_ = 0;
};

}  // namespace frostpipe
