#include "simulator/event_queue.h"

#include <algorithm>
#include <utility>

#include "profiles/error.h"

namespace frostpipe {

void EventQueue::schedule(Nanoseconds at_ns, Handler handler) {
  FROSTPIPE_CHECK(at_ns >= now_ns_, "an event cannot be scheduled in the past");
  entries_.push_back({at_ns, next_sequence_++, std::move(handler)});
  std::push_heap(entries_.begin(), entries_.end(), Later{});
}

void EventQueue::run() {
  while (!entries_.empty()) {
    std::pop_heap(entries_.begin(), entries_.end(), Later{});
    Entry next = std::move(entries_.back());
    entries_.pop_back();
    now_ns_ = next.at_ns;
    next.handler();
  }
}

}  // namespace frostpipe
