#pragma once
// Implementation header of simulate_serving.cpp.
#include <deque>
#include <vector>

#include "serving/simulator/serving_engine.h"

namespace frostpipe {

/// The baseline without reservations: every pool batches by itself.
///
/// A request goes to the pipeline that has had the fewest per planned throughput. In front of a pipeline's first pool
/// stands one queue for all its virtual devices; in the later pools each has its own. A batch that was computed goes to
/// the device of the next pool with the fewest requests (waiting, computing or on their way), of these to the one whose
/// downlink is free first (ties in turn), as soon as both network cards are free.
///
/// What the plan says that the later pools take, planned batches without waiting, is what a queue leaves of the
/// objective. An idle device takes the largest batch up to the planned size that ends in time for that; it waits for a
/// fuller one while one request more would still be in time. The oldest request is dropped if no batch is in time.
class ReactivePlane {
 public:
  explicit ReactivePlane(ServingEngine& engine);
  void handle(const ServingEvent& event);

 private:
  struct Place {
    int pipeline = 0, partition = 0;
    int queue = 0;  // the pool's first
    /// Of the objective, what the pools after this one need.
    Nanoseconds reserve_ns = 0;
    int last_receiver = 0;  // of a later pool, the virtual device that the last batch was sent to
  };
  struct Queue {
    int place = 0;
    int first_device = 0, num_devices = 1;
    std::deque<int> requests;
    int load = 0;  // requests that are on their way to it, wait in it or compute
    int round = 0;
  };
  struct Batch {
    int place = 0;
    int device = 0;
    std::vector<int> requests;
  };

  Pool& pool_of(const Place& place) { return engine_.pipelines[place.pipeline][place.partition]; }
  int next_pipeline();
  void serve(int queue);
  bool begin_batch(int queue, int device);
  void pass_on(int batch);
  void receive(int batch);
  int receiver_in(Place& place) const;
  int queue_of(const Place& place, int device) const { return place.queue + (place.partition > 0 ? device : 0); }

  ServingEngine& engine_;
  std::vector<Place> places_;         // every pool, pipeline by pipeline
  std::vector<int> first_place_;      // by pipeline
  std::vector<std::int64_t> routed_;  // requests so far, by pipeline
  std::vector<Queue> queues_;
  std::vector<Batch> batches_;
};

}  // namespace frostpipe
