#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "serving/data_plane/serving_run.h"
#include "serving/plan/serving_plan.h"

namespace frostpipe {

/// The rules by which requests are routed through the pools.
enum class DataPlane {
  /// PPipe's (docs/papers.md): before a batch starts, a virtual device of every pool and the network cards in between
  /// are reserved for it. A request that cannot be answered in time is dropped at once, as ReservedPlane says.
  reserved,
  /// Every pool knows only its own queues and builds batches as long as the plan's times for the later pools allow.
  reactive,
};

struct ServingSimulationOptions {
  DataPlane data_plane = DataPlane::reserved;
  /// Fills ServingRun::timeline.
  bool timeline = false;
  /// If set, requests stop arriving after more drops than this. It saves time if the only question is whether there are
  /// so many.
  std::optional<std::int64_t> max_drops = std::nullopt;
};

/// Serves `arrivals`, sorted times in [0, window_ns), by the pipelines of one model of a valid plan, until the last
/// request has been answered or dropped.
///
/// The resources are virtual devices, and an uplink and a downlink per server. A batch computes on a virtual device for
/// compute_ns. On the way to the next partition it occupies the sender's uplink and the receiver's downlink at the same
/// time, then travels for latency_ns. Virtual devices fill servers in order, and a server has devices of one pool only;
/// models and pools therefore share nothing, and models can be served one by one. Arrivals and answers cost nothing.
///
/// Deterministic: simultaneous events run in the order in which they were scheduled, and ties go to the first device
/// or, between the pools of the reactive data plane, to the devices in turn.
ServingRun simulate_serving(const ServingPlan& plan, const ServedModel& model, std::span<const Nanoseconds> arrivals,
                            Nanoseconds window_ns, const ServingSimulationOptions& options = {});

/// Returns the largest number of requests, up to `most`, that an idle server answers all in time if they arrive at
/// once, with `kept_free_ns` of the objective kept free. Returns 1 if not even one is in time.
int most_requests_at_once(const ServingPlan& plan, ServedModel model, Nanoseconds kept_free_ns, int most);

/// Returns "reserved" or "reactive".
std::string_view to_string(DataPlane data_plane);

}  // namespace frostpipe
