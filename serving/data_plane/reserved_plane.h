#pragma once
#include <cstdint>
#include <vector>

#include "serving/data_plane/serving_engine.h"

namespace frostpipe {

/// A route through a pipeline for a batch that is sent now.
struct Route {
  std::vector<RouteLeg> legs;
  Nanoseconds end_ns = 0;
  /// Additional time compared with an idle pipeline.
  Nanoseconds wait_ns = 0;
};

/// For each partition in turn, chooses the virtual device where the batch ends first, given the reservations. Before
/// the last partition, a device whose uplink is reserved for longer counts as ending when that is free.
Route find_route(const std::vector<Pool>& pools, int requests, Nanoseconds now_ns);

/// PPipe's reservation-based adaptive batching. Requests wait in one queue, the oldest first. Whenever one arrives or a
/// timer expires:
///
///   1. Choose the pipeline whose planned batch would wait least for reserved resources.
///   2. Choose the largest batch, up to the planned size, that answers the oldest request in time.
///   3. If there is no such batch, drop the oldest request. If the batch needs more requests than are waiting, wait for
///      more, as long as a batch with one more request, and one of the waiting requests alone, would still be in time.
///      Otherwise reserve the batch's route and send it.
///
/// A resource is reserved until one time; gaps before that time are not filled. A request that is considered for the
/// first time is dropped unless a batch of nearly the planned size is in time: small batches are meant for requests
/// that have waited in vain, and would otherwise reduce the throughput under overload. A request has also waited if it
/// was behind the oldest one while that one waited.
class ReservedPlane {
 public:
  explicit ReservedPlane(ServingEngine& engine) : engine_(engine) {}
  void handle(const ServingEvent& event);
  std::int64_t num_waiting() const { return end_ - oldest_; }
  /// Returns how late the last event was handled; 0 unless the clock runs in real time.
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
  Nanoseconds end_of_waiting_ns(Nanoseconds deadline_ns, int num_here, const Choice& choice);
  void wait_until(Nanoseconds until_ns);
  void send(const Choice& choice);

  ServingEngine& engine_;
  std::int64_t oldest_ = 0, end_ = 0;  // requests [oldest_, end_) are waiting
  std::int64_t waited_end_ = 0;        // those before this one were waiting when more requests were awaited
  int timer_round_ = 0;
  Nanoseconds timer_due_ns_ = 0, delay_ns_ = 0;
};

}  // namespace frostpipe
