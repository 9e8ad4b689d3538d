#include "serving/data_plane/reserved_plane.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace frostpipe {
namespace {

/// A request is dropped at first sight unless a batch of at least this fraction of the planned size is in time. The
/// figure is PPipe's.
constexpr double kPartOfPlannedBatch = 0.95;

/// Returns the device on which the batch ends first, with its times. `from` is the previous pool, null for the first.
RouteLeg best_leg(const Pool& pool, const Pool* from, int sender, int requests, Nanoseconds ready_ns, bool sends_on) {
  const Nanoseconds transfer_ns = pool.transfer_ns(requests), compute_ns = pool.compute_ns(requests);
  const Nanoseconds latency_ns = from ? pool.partition->latency_ns : 0;
  const Nanoseconds sender_free_ns = from && transfer_ns > 0 ? from->uplinks[from->server_of(sender)].free_at() : 0;
  const Nanoseconds earliest_ns = std::max(ready_ns, sender_free_ns);
  // A lower bound: the end on a device that is free when the batch arrives.
  const Nanoseconds best_possible_ns = (from ? earliest_ns + transfer_ns : ready_ns) + latency_ns + compute_ns;
  RouteLeg best;
  Nanoseconds best_ns = std::numeric_limits<Nanoseconds>::max();
  const int num_devices = static_cast<int>(pool.device_until.size());
  for (int server = 0, device = 0; device < num_devices; ++server) {
    const Nanoseconds begin_ns = transfer_ns > 0 ? std::max(earliest_ns, pool.downlinks[server].free_at()) : ready_ns;
    const Nanoseconds received_ns = begin_ns + transfer_ns + latency_ns;
    const Nanoseconds uplink_ns = sends_on ? pool.uplinks[server].free_at() : 0;
    for (const int end = std::min(num_devices, device + pool.devices_per_server); device < end; ++device) {
      const Nanoseconds compute_begin_ns = std::max(received_ns, pool.device_until[device]);
      const Nanoseconds end_ns = compute_begin_ns + compute_ns;
      if (std::max(uplink_ns, end_ns) >= best_ns) continue;
      best_ns = std::max(uplink_ns, end_ns);
      best = {device, begin_ns, compute_begin_ns, end_ns};
    }
    if (best_ns == best_possible_ns) break;
  }
  return best;
}

}  // namespace

Route find_route(const std::vector<Pool>& pools, int requests, Nanoseconds now_ns) {
  Route route;
  route.legs.reserve(pools.size());
  Nanoseconds ready_ns = now_ns, unloaded_ns = 0;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const Pool& pool = pools[i];
    const Pool* from = i > 0 ? &pools[i - 1] : nullptr;
    const int sender = i > 0 ? route.legs.back().device : 0;
    route.legs.push_back(best_leg(pool, from, sender, requests, ready_ns, i + 1 < pools.size()));
    ready_ns = route.legs.back().compute_end_ns;
    unloaded_ns += pool.compute_ns(requests);
    if (from) unloaded_ns += pool.transfer_ns(requests) + pool.partition->latency_ns;
  }
  route.end_ns = ready_ns;
  route.wait_ns = ready_ns - now_ns - unloaded_ns;
  return route;
}

void ReservedPlane::handle(const ServingEvent& event) {
  if (event.kind == ServingEvent::Kind::arrival) end_ = event.index + 1;
  const bool is_timer = event.kind == ServingEvent::Kind::timer;
  if (is_timer && event.round != timer_round_) return;
  ++timer_round_;
  // A real-time clock wakes this thread late. A batch that was in time at the intended moment is still sent, at the
  // expense of the reserve for such delays.
  delay_ns_ = is_timer ? engine_.queue.now() - timer_due_ns_ : 0;
  const Nanoseconds borrowed_ns = std::min(delay_ns_, engine_.kept_free_ns);
  while (oldest_ < end_) {
    const bool has_waited = oldest_ < waited_end_;
    const Nanoseconds deadline_ns = engine_.deadline_ns(oldest_) + (has_waited ? borrowed_ns : 0);
    Choice choice = least_waiting_pipeline(deadline_ns);
    const int smallest = has_waited ? 1 : static_cast<int>(std::lround(kPartOfPlannedBatch * choice.requests));
    if (!shrink_to(deadline_ns, smallest, choice)) {
      engine_.drop(oldest_++, has_waited ? DropReason::batch_not_filled : DropReason::no_device_in_time);
      continue;
    }
    const auto num_here = static_cast<int>(std::min<std::int64_t>(end_ - oldest_, choice.requests));
    if (num_here < choice.requests) {
      const Nanoseconds until_ns = end_of_waiting_ns(deadline_ns, num_here, choice);
      if (until_ns > engine_.queue.now()) return wait_until(until_ns);
      choice.requests = num_here;
      choice.route = probe(choice.pipeline, num_here);
      shrink_to(deadline_ns, 1, choice);
    }
    send(choice);
  }
}

Route ReservedPlane::probe(int pipeline, int requests) {
  return find_route(engine_.pipelines[pipeline], requests, engine_.queue.now());
}

ReservedPlane::Choice ReservedPlane::least_waiting_pipeline(Nanoseconds deadline_ns) {
  Choice best;
  Nanoseconds best_ns = std::numeric_limits<Nanoseconds>::max();
  for (int pipeline = 0; pipeline < static_cast<int>(engine_.pipelines.size()); ++pipeline) {
    const int planned = engine_.model.pipelines[pipeline].batch_size;
    Route route = probe(pipeline, planned);
    // No smaller batch can be in time.
    const bool is_hopeless = planned == 1 && route.end_ns > deadline_ns;
    const Nanoseconds key_ns = route.wait_ns + (is_hopeless ? engine_.model.objective_ns : 0);
    if (key_ns >= best_ns) continue;
    best_ns = key_ns;
    best = {.pipeline = pipeline, .requests = planned, .route = std::move(route)};
  }
  return best;
}

/// Shrinks the choice to the largest batch that is in time. Returns false if no batch of at least `smallest` requests
/// is.
bool ReservedPlane::shrink_to(Nanoseconds deadline_ns, int smallest, Choice& choice) {
  while (choice.route.end_ns > deadline_ns) {
    if (choice.requests <= smallest) return false;
    choice.route = probe(choice.pipeline, --choice.requests);
  }
  return true;
}

/// Returns the time until which the `num_here` waiting requests, fewer than the choice's, can wait for more: until the
/// larger batch is too late (then a smaller one is sent), but no longer than a batch of the waiting requests alone is
/// in time. The latter ends earlier if a smaller batch takes as long as a larger one, or longer, as measured times
/// sometimes say.
Nanoseconds ReservedPlane::end_of_waiting_ns(Nanoseconds deadline_ns, int num_here, const Choice& choice) {
  const auto last_instant_ns = [&](const Route& route) {
    return engine_.queue.now() + deadline_ns - route.end_ns + route.wait_ns;
  };
  // The larger batch is that of one more request, or, as measured times do not always grow with the batch, the first
  // one after it that is in time.
  Route larger = choice.route;
  for (int requests = num_here + 1; requests < choice.requests; ++requests) {
    Route smaller = probe(choice.pipeline, requests);
    if (smaller.end_ns > deadline_ns) continue;
    larger = std::move(smaller);
    break;
  }
  Choice here{.pipeline = choice.pipeline, .requests = num_here, .route = probe(choice.pipeline, num_here)};
  // One nanosecond after its last instant the larger batch is too late.
  const Nanoseconds larger_ns = last_instant_ns(larger) + 1;
  return shrink_to(deadline_ns, 1, here) ? std::min(larger_ns, last_instant_ns(here.route)) : larger_ns;
}

void ReservedPlane::wait_until(Nanoseconds until_ns) {
  waited_end_ = end_;
  timer_due_ns_ = until_ns;
  engine_.queue.schedule(timer_due_ns_, {.kind = ServingEvent::Kind::timer, .index = 0, .round = timer_round_});
}

void ReservedPlane::send(const Choice& choice) {
  std::vector<Pool>& pools = engine_.pipelines[choice.pipeline];
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const RouteLeg& leg = choice.route.legs[i];
    if (i > 0) {
      engine_.transfer(pools[i - 1], choice.route.legs[i - 1].device, pools[i], leg.device, choice.requests,
                       leg.transfer_begin_ns);
    }
    engine_.compute(pools[i], leg.device, choice.requests, leg.compute_begin_ns);
  }
  for (int i = 0; i < choice.requests; ++i) {
    ServedRequest& request = engine_.request(oldest_ + i);
    request.admitted_ns = engine_.queue.now();
    request.end_ns = choice.route.end_ns;
  }
  oldest_ += choice.requests;
  if (engine_.observer)
    engine_.observer->sent(choice.pipeline, oldest_ - choice.requests, choice.requests, choice.route.legs);
}

}  // namespace frostpipe
