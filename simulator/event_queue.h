#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "profiles/units.h"

namespace frostpipe {

/// Discrete events in order of time; events at one time run in the order in which they were scheduled.
class EventQueue {
 public:
  using Handler = std::function<void()>;
  /// Requires at_ns >= now(). An event for now() runs after those that already wait for now().
  void schedule(Nanoseconds at_ns, Handler handler);
  /// Runs until no event is left.
  void run();
  Nanoseconds now() const { return now_ns_; }

 private:
  struct Entry {
    Nanoseconds at_ns;
    std::uint64_t sequence;
    Handler handler;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.sequence > b.sequence;
    }
  };
  std::vector<Entry> entries_;  // a heap by Later: the earliest first
  std::uint64_t next_sequence_ = 0;
  Nanoseconds now_ns_ = 0;
};

}  // namespace frostpipe
