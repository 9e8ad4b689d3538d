#pragma once
// The common base of both data planes, in the simulator and in the server (serving/server), where workers compute.
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/event_queue.h"
#include "base/link_queue.h"
#include "serving/data_plane/serving_run.h"
#include "serving/plan/serving_plan.h"

namespace frostpipe {

struct ServingEvent {
  enum class Kind : std::uint8_t {
    arrival,   // request `index` arrives
    timer,     // the timer of queue `index` expires; ignored unless `round` is the queue's current one
    computed,  // batch `index` has been computed
    received,  // batch `index` has arrived at its next virtual device
  };
  Kind kind = Kind::arrival;
  std::int64_t index = 0;
  int round = 0;
};

/// A pool of virtual devices, and the network cards of their servers.
struct Pool {
  const ServingPartition* partition = nullptr;
  /// Index of its statistics in ServingRun::pools.
  int use = 0;
  int devices_per_server = 1;                 // virtual devices per server
  std::vector<Nanoseconds> device_until;      // end of the reservation, by virtual device
  std::vector<LinkQueue> uplinks, downlinks;  // by server
  /// The factor by which batches take longer than the plan says; 1 in a simulation.
  double slowdown = 1;

  int server_of(int device) const { return device / devices_per_server; }
  Nanoseconds planned_ns(int requests) const { return partition->compute_ns[requests - 1]; }
  Nanoseconds compute_ns(int requests) const {
    return slowdown == 1 ? planned_ns(requests) : std::llround(slowdown * static_cast<double>(planned_ns(requests)));
  }
  Nanoseconds transfer_ns(int requests) const { return requests * partition->transfer_ns; }
};

/// The device and the times of a batch in one pool, as reserved.
struct RouteLeg {
  int device = 0;
  Nanoseconds transfer_begin_ns = 0, compute_begin_ns = 0, compute_end_ns = 0;
};

/// Receives the decisions of a data plane. A simulation needs none, since there batches take exactly the times of the
/// plan.
class ServingObserver {
 public:
  virtual ~ServingObserver() = default;
  /// Requests [first_request, first_request + requests) are sent now, with one leg per partition.
  virtual void sent(int pipeline, std::int64_t first_request, int requests, const std::vector<RouteLeg>& legs) = 0;
  virtual void dropped(std::int64_t request, DropReason reason) = 0;
};

/// The pools of one model and the state of a run. Requests are numbered by arrival, from 0.
class ServingEngine {
 public:
  ServingEngine(const ServingPlan& plan, const ServedModel& model, bool with_timeline);

  const ServedModel& model;
  std::vector<std::vector<Pool>> pipelines;  // [pipeline][partition]
  EventQueue<ServingEvent> queue;
  ServingRun run;
  std::int64_t num_drops = 0;
  ServingObserver* observer = nullptr;
  /// Part of the objective reserved for answers that are later than planned.
  Nanoseconds kept_free_ns = 0;

  /// Adds the next request, which arrived at `at_ns` <= now; returns its number.
  std::int64_t arrive(Nanoseconds at_ns);
  std::int64_t num_requests() const { return num_forgotten_ + static_cast<std::int64_t>(run.requests.size()); }
  ServedRequest& request(std::int64_t number) { return run.requests[number - num_forgotten_]; }
  /// Removes the requests before `number` from run.requests, for runs that never end. They must not be used any more.
  void forget_before(std::int64_t number);
  Nanoseconds deadline_ns(std::int64_t number) {
    return request(number).arrival_ns + model.objective_ns - kept_free_ns;
  }
  void drop(std::int64_t number, DropReason reason);
  /// Reserves the device for a batch and adds its span to the timeline.
  void compute(Pool& pool, int device, int requests, Nanoseconds begin_ns);
  /// Reserves the uplink of the sender's server and the downlink of the receiver's.
  void transfer(Pool& from, int sender, Pool& to, int receiver, int requests, Nanoseconds begin_ns);

 private:
  bool with_timeline_ = false;
  std::int64_t num_forgotten_ = 0;
};

}  // namespace frostpipe
