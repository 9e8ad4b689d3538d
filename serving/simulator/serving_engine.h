#pragma once
// What both data planes stand on, in the simulator and where they decide for workers that compute (serving/server).
#include <cstdint>
#include <vector>

#include "base/event_queue.h"
#include "base/link_queue.h"
#include "serving/plan/serving_plan.h"
#include "serving/simulator/serving_run.h"

namespace frostpipe {

struct ServingEvent {
  enum class Kind : std::uint8_t {
    arrival,   // of request `index`
    timer,     // of queue `index`; void unless `round` is still the queue's
    computed,  // batch `index` leaves its virtual device
    received,  // batch `index` is at its next virtual device
  };
  Kind kind = Kind::arrival;
  std::int64_t index = 0;
  int round = 0;
};

/// A pool of virtual devices and their servers' network cards.
struct Pool {
  const ServingPartition* partition = nullptr;
  /// What it did, as in ServingRun::pools.
  int use = 0;
  int devices_per_server = 1;                 // virtual ones
  std::vector<Nanoseconds> device_until;      // taken until then, by virtual device
  std::vector<LinkQueue> uplinks, downlinks;  // by server

  int server_of(int device) const { return device / devices_per_server; }
  Nanoseconds compute_ns(int requests) const { return partition->compute_ns[requests - 1]; }
  Nanoseconds transfer_ns(int requests) const { return requests * partition->transfer_ns; }
};

/// Where and when a batch runs in one pool, as reserved.
struct RouteLeg {
  int device = 0;
  Nanoseconds transfer_begin_ns = 0, compute_begin_ns = 0, compute_end_ns = 0;
};

/// Is told what a data plane decides. A simulation needs none: the times of a plan come true in it.
class ServingObserver {
 public:
  virtual ~ServingObserver() = default;
  /// Requests [first_request, first_request + requests) set out now, one leg per partition.
  virtual void sent(int pipeline, std::int64_t first_request, int requests, const std::vector<RouteLeg>& legs) = 0;
  virtual void dropped(std::int64_t request, DropReason reason) = 0;
};

/// The pools of one model, and the run as far as it has come. Requests are numbered by arrival, from 0.
class ServingEngine {
 public:
  ServingEngine(const ServingPlan& plan, const ServedModel& model, bool with_timeline);

  const ServedModel& model;
  std::vector<std::vector<Pool>> pipelines;  // [pipeline][partition]
  EventQueue<ServingEvent> queue;
  ServingRun run;
  std::int64_t num_drops = 0;
  ServingObserver* observer = nullptr;
  /// Of the objective, what answers may be later than planned.
  Nanoseconds kept_free_ns = 0;

  /// The next request, which arrived at `at_ns` <= now; returns its number.
  std::int64_t arrive(Nanoseconds at_ns);
  std::int64_t num_requests() const { return num_forgotten_ + static_cast<std::int64_t>(run.requests.size()); }
  ServedRequest& request(std::int64_t number) { return run.requests[number - num_forgotten_]; }
  /// Where a run has no end: requests before `number` are no longer in run.requests, and nobody asks for them.
  void forget_before(std::int64_t number);
  Nanoseconds deadline_ns(std::int64_t number) {
    return request(number).arrival_ns + model.objective_ns - kept_free_ns;
  }
  void drop(std::int64_t number, DropReason reason);
  /// The device and, in the timeline, the span of a batch.
  void compute(Pool& pool, int device, int requests, Nanoseconds begin_ns);
  /// Takes the uplink of the sender's server and the downlink of the receiver's.
  void transfer(Pool& from, int sender, Pool& to, int receiver, int requests, Nanoseconds begin_ns);

 private:
  bool with_timeline_ = false;
  std::int64_t num_forgotten_ = 0;
};

}  // namespace frostpipe
