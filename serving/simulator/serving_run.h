#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace frostpipe {

/// Why a request was not answered.
enum class DropReason {
  /// When its turn came, the pipeline that would have waited least had no batch of at least 95 % of the planned size in
  /// time. Smaller batches, and other pipelines, were not looked at.
  no_device_in_time,
  batch_not_filled,      // it had waited for others to fill its batch, and then no batch was in time there
  time_spent_in_queues,  // reactive data plane: a pool found it too late to be answered within the objective
  failed,                // its worker was lost, or could not compute it; never in a simulation
};
inline constexpr std::array kDropReasons = {DropReason::no_device_in_time, DropReason::batch_not_filled,
                                            DropReason::time_spent_in_queues, DropReason::failed};

/// Times count from the begin of the run.
struct ServedRequest {
  Nanoseconds arrival_ns = 0;
  /// Its batch was sent on its way: none for what was dropped before.
  std::optional<Nanoseconds> admitted_ns = std::nullopt;
  /// The answer, or the drop.
  Nanoseconds end_ns = 0;
  std::optional<DropReason> drop = std::nullopt;  // none: answered
  bool operator==(const ServedRequest&) const = default;
};

/// What a pool did.
struct PoolUse {
  int pipeline = 0, partition = 0;
  std::string device_class;
  int share = 1;
  int num_virtual_devices = 1;
  /// Computing within the window of arrivals, all virtual devices together.
  Nanoseconds busy_ns = 0;
  std::int64_t batches = 0, requests = 0;
  bool operator==(const PoolUse&) const = default;
};

/// A batch on a virtual device or on its way to one.
struct ServingSpan {
  enum class Kind { transfer, compute };
  Kind kind = Kind::compute;
  int pipeline = 0, partition = 0;
  int virtual_device = 0;  // of the partition's pool, from 0; a transfer's receiver
  int sender = 0;          // a transfer's, of the pool before
  int requests = 0;
  Nanoseconds begin_ns = 0, end_ns = 0;  // a transfer's: while it occupies network cards
  bool operator==(const ServingSpan&) const = default;
};

/// How one model was served.
struct ServingRun {
  std::string model;
  Nanoseconds objective_ns = 0;
  /// Requests arrive in [0, window_ns).
  Nanoseconds window_ns = 0;
  std::vector<ServedRequest> requests;  // in order of arrival
  std::vector<PoolUse> pools;           // pipeline by pipeline, in order of partitions
  /// Reserved data plane: how often a route through a pipeline was looked for.
  std::int64_t probes = 0;
  /// Spans in the order in which they were decided; empty unless they were asked for.
  std::vector<ServingSpan> timeline;
  bool operator==(const ServingRun&) const = default;
};

struct ServingSummary {
  std::int64_t requests = 0;
  std::int64_t in_time = 0;  // answered within the objective
  std::int64_t late = 0;
  std::array<std::int64_t, kDropReasons.size()> drops = {};  // by DropReason
  /// Of all requests those in time; 1 where none came.
  double attainment = 1;
  /// Answers in time per second of the window.
  double goodput_per_second = 0;
  /// From arrival to answer of the answered ones; 0 where there are none.
  Nanoseconds mean_latency_ns = 0, median_latency_ns = 0, p90_latency_ns = 0, p99_latency_ns = 0,
              largest_latency_ns = 0;
  /// Busy part of the window, by pool in the order of ServingRun::pools.
  std::vector<double> utilisation;
  bool operator==(const ServingSummary&) const = default;
};

ServingSummary summarize(const ServingRun& run);

/// "no device in time"
std::string_view to_string(DropReason reason);

}  // namespace frostpipe
