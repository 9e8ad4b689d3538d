#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"

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
  /// Passes the events one after the other to `handle`, which may schedule more, until none is left.
  template <class Handle>
  void run(Handle handle) {
    while (!entries_.empty()) {
      Entry next = take_first();
      now_ns_ = next.at_ns;
      handle(next.event);
    }
  }
  /// Replaces run() where events follow a real clock: sets now() to at_ns, which must be >= now(), and passes to
  /// `handle` all events that are due by then.
  template <class Handle>
  void advance_to(Nanoseconds at_ns, Handle handle) {
    FROSTPIPE_CHECK(at_ns >= now_ns_, "time does not run backwards");
    now_ns_ = at_ns;
    while (!entries_.empty() && entries_.front().at_ns <= at_ns) handle(take_first().event);
  }
  Nanoseconds now() const { return now_ns_; }
  /// Returns the time of the next event; none if the queue is empty.
  std::optional<Nanoseconds> next_ns() const {
    return entries_.empty() ? std::nullopt : std::optional(entries_.front().at_ns);
  }

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
  Entry take_first() {
    std::pop_heap(entries_.begin(), entries_.end(), Later{});
    Entry first = std::move(entries_.back());
    entries_.pop_back();
    return first;
  }

  std::vector<Entry> entries_;  // heap ordered by Later: the earliest event is at the front
  std::uint64_t next_sequence_ = 0;
  Nanoseconds now_ns_ = 0;
};

}  // namespace frostpipe
