#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "serving/plan/serving_plan.h"
#include "serving/simulator/serving_run.h"

namespace frostpipe {

/// How requests find their way through the pools.
enum class DataPlane {
  /// PPipe's (docs/papers.md): before a batch starts it has reserved a virtual device of every pool and the network
  /// cards in between, and a request that no reservation answers in time is dropped at once.
  reserved,
  /// Every pool knows only its own queues: it builds batches as long as the plan's times for the pools after it allow.
  reactive,
};

struct ServingSimulationOptions {
  DataPlane data_plane = DataPlane::reserved;
  /// Fill ServingRun::timeline.
  bool timeline = false;
  /// Where only the question is whether so many requests get no answer: nothing more arrives after that.
  std::optional<std::int64_t> most_drops = std::nullopt;
};

/// Serves `arrivals`, sorted times in [0, window_ns), by the pipelines of one model of a valid plan, until the last
/// request is answered or dropped.
///
/// Resources: virtual devices, and of every server an uplink and a downlink. A batch computes on a virtual device for
/// compute_ns; on the way to the next partition it occupies the sender's uplink and the receiver's downlink together,
/// then is on its way for latency_ns. Virtual devices fill servers in order, a server has those of one pool only; so
/// models and pools share nothing, and models are served one by one. Arrivals and answers cost nothing.
///
/// Deterministic: events at one time run in the order in which they were scheduled, ties go to the first device.
ServingRun simulate_serving(const ServingPlan& plan, const ServedModel& model, std::span<const Nanoseconds> arrivals,
                            Nanoseconds window_ns, const ServingSimulationOptions& options = {});

/// "reserved", "reactive".
std::string_view to_string(DataPlane data_plane);

}  // namespace frostpipe
