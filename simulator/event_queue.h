#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "profiles/units.h"

namespace frostpipe {

/// Discrete events in order of time; events at one time run in the order in which they were scheduled. `Event` is a
/// small value.
template <class Event>
class EventQueue {
 public:
  /// Requires at_ns >= now(). An event for now() runs after those that already wait for now().
  void schedule(Nanoseconds at_ns, Event event) {
    FROSTPIPE_CHECK(at_ns >= now_ns_, "an event cannot be scheduled in the past");
    entries_.push_back({at_ns, next_sequence_++, std::move(event)});
    std::push_heap(entries_.begin(), entries_.end(), Later{});
  }
  /// Hands one event after the other to `handle`, which may schedule more, until none is left.
  template <class Handle>
  void run(Handle handle) {
    while (!entries_.empty()) {
      std::pop_heap(entries_.begin(), entries_.end(), Later{});
      Entry next = std::move(entries_.back());
      entries_.pop_back();
      now_ns_ = next.at_ns;
      handle(next.event);
    }
  }
  Nanoseconds now() const { return now_ns_; }

 private:
  struct Entry {
    Nanoseconds at_ns;
    std::uint64_t sequence;
    Event event;
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
