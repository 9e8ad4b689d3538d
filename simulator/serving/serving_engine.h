#pragma once
// Implementation header: what both data planes stand on.
#include <cstdint>
#include <vector>

#include "plan/serving/serving_plan.h"
#include "simulator/event_queue.h"
#include "simulator/serving/serving_run.h"

namespace frostpipe {

struct ServingEvent {
  enum class Kind : std::uint8_t {
    arrival,   // of request `index`
    timer,     // of queue `index`; void unless `round` is still the queue's
    computed,  // batch `index` leaves its virtual device
    received,  // batch `index` is at its next virtual device
  };
  Kind kind = Kind::arrival;
  int index = 0;
  int round = 0;
};

/// A pool of virtual devices and their servers' network cards.
struct Pool {
  const ServingPartition* partition = nullptr;
  /// What it did, as in ServingRun::pools.
  int use = 0;
  int devices_per_server = 1;                             // virtual ones
  std::vector<Nanoseconds> device_until;                  // taken until then, by virtual device
  std::vector<Nanoseconds> uplink_until, downlink_until;  // by server

  int server_of(int device) const { return device / devices_per_server; }
  Nanoseconds compute_ns(int requests) const { return partition->compute_ns[requests - 1]; }
  Nanoseconds transfer_ns(int requests) const { return requests * partition->transfer_ns; }
};

/// The pools of one model, and the run as far as it has come.
class ServingEngine {
 public:
  ServingEngine(const ServingPlan& plan, const ServedModel& model, bool with_timeline);

  const ServedModel& model;
  std::vector<std::vector<Pool>> pipelines;  // [pipeline][partition]
  EventQueue<ServingEvent> queue;
  ServingRun run;
  std::int64_t num_drops = 0;

  Nanoseconds deadline_ns(int request) const { return run.requests[request].arrival_ns + model.objective_ns; }
  void drop(int request, DropReason reason);
  /// The device and, in the timeline, the span of a batch.
  void compute(Pool& pool, int device, int requests, Nanoseconds begin_ns);
  /// Takes the uplink of the sender's server and the downlink of the receiver's.
  void transfer(Pool& from, int sender, Pool& to, int receiver, int requests, Nanoseconds begin_ns);

 private:
  bool with_timeline_ = false;
};

}  // namespace frostpipe
