#pragma once
// The data plane that only the simulator has (serving/simulator/simulate_serving.cpp).
#include <deque>
#include <vector>

#include "serving/data_plane/serving_engine.h"

namespace frostpipe {

/// The baseline without reservations: every pool builds its batches independently.
///
/// A request goes to the pipeline with the fewest requests so far per planned throughput. A pipeline's first pool has
/// one queue for all its virtual devices; in later pools each device has its own. A computed batch goes to the device
/// of the next pool with the fewest requests (waiting, computing or in transfer), among these to the one whose downlink
/// is free first (ties in turn), as soon as both network cards are free.
///
/// A queue may use the objective minus the plan's time for the later pools (planned batches without waiting). An idle
/// device takes the largest batch, up to the planned size, that ends within that time; it waits for a fuller batch
/// while one more request would still be in time. If no batch is in time, the oldest request is dropped.
class ReactivePlane {
 public:
  explicit ReactivePlane(ServingEngine& engine);
  void handle(const ServingEvent& event);

 private:
  struct Place {
    int pipeline = 0, partition = 0;
    int queue = 0;  // the pool's first queue
    /// Part of the objective that the later pools need.
    Nanoseconds reserve_ns = 0;
    int last_receiver = 0;  // for a later pool: the virtual device that received the last batch
  };
  struct Queue {
    int place = 0;
    int first_device = 0, num_devices = 1;
    std::deque<int> requests;
    int load = 0;  // requests in transfer to it, waiting or computing
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
  std::vector<Place> places_;         // all pools, pipeline by pipeline
  std::vector<int> first_place_;      // by pipeline
  std::vector<std::int64_t> routed_;  // number of requests so far, by pipeline
  std::vector<Queue> queues_;
  std::vector<Batch> batches_;
};

}  // namespace frostpipe
