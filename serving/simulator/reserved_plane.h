#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "serving/simulator/serving_engine.h"

namespace frostpipe {

/// A way through a pipeline for a batch that sets out now.
struct Route {
  std::vector<RouteLeg> legs;
  Nanoseconds end_ns = 0;
  /// How much longer than where nothing is busy.
  Nanoseconds wait_ns = 0;
};

/// Partition by partition the virtual device where the batch ends first, given what is reserved; before the last
/// partition one whose uplink is reserved for longer counts as ending then.
Route find_route(const std::vector<Pool>& pools, int requests, Nanoseconds now_ns);

/// PPipe's reservation-based adaptive batching. Requests wait in one queue, the oldest first, and whenever one arrives
/// or a timer ends:
///
///   1. The pipeline is the one whose planned batch would wait least for reserved resources.
///   2. The batch is the largest, from the planned size downwards, that answers the oldest request in time.
///   3. None: the oldest request is dropped. More than there are requests: they wait for more to come, to the last
///      instant at which one more would be in time. Else its route is reserved and the batch is on its way.
///
/// A resource is reserved up to one time; gaps before are not filled. A request that was never looked at before is
/// dropped unless a batch of nearly the planned size is in time: small batches are for requests that waited in vain,
/// and would else eat the throughput where there is too much load.
class ReservedPlane {
 public:
  explicit ReservedPlane(ServingEngine& engine) : engine_(engine) {}
  void handle(const ServingEvent& event);
  std::int64_t num_waiting() const { return end_ - oldest_; }
  /// How late the last event was handled: only a clock that runs by itself is ever late.
  Nanoseconds delay_ns() const { return delay_ns_; }

 private:
  struct Choice {
    int pipeline = 0;
    int requests = 1;
    Route route;
  };
  Route probe(int pipeline, int requests);
  Choice least_waiting_pipeline(Nanoseconds deadline_ns);
  bool shrink_to(Nanoseconds deadline_ns, int smallest, Choice& choice);
  void wait_for_more(Nanoseconds deadline_ns, const Choice& choice);
  void send(const Choice& choice);

  ServingEngine& engine_;
  std::int64_t oldest_ = 0, end_ = 0;      // requests [oldest_, end_) wait
  std::optional<std::int64_t> looked_at_;  // the request for whose batch others were awaited
  int timer_round_ = 0;
  Nanoseconds timer_due_ns_ = 0, delay_ns_ = 0;
};

}  // namespace frostpipe
