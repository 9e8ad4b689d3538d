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
  /// When the request was considered first, the pipeline that would have waited least had no batch of at least 95 % of
  /// the planned size in time. Smaller batches and other pipelines were not tried.
  no_device_in_time,
  batch_not_filled,      // it waited for others to fill its batch, and then no batch was in time
  time_spent_in_queues,  // reactive data plane: a pool found that it would miss the objective
  failed,                // its worker was lost or could not compute it; never in a simulation
};
inline constexpr std::array kDropReasons = {DropReason::no_device_in_time, DropReason::batch_not_filled,
                                            DropReason::time_spent_in_queues, DropReason::failed};

/// Times are relative to the start of the run.
struct ServedRequest {
  Nanoseconds arrival_ns = 0;
  /// The time at which its batch was sent; not set if it was dropped before.
  std::optional<Nanoseconds> admitted_ns = std::nullopt;
  /// The time at which it was answered or dropped.
  Nanoseconds end_ns = 0;
  std::optional<DropReason> drop = std::nullopt;  // not set if answered
  bool operator==(const ServedRequest&) const = default;
};

/// Statistics of a pool.
struct PoolUse {
  int pipeline = 0, partition = 0;
  std::string device_class;
  int share = 1;
  int num_virtual_devices = 1;
  /// Compute time within the window of arrivals, summed over all virtual devices.
  Nanoseconds busy_ns = 0;
  std::int64_t batches = 0, requests = 0;
  bool operator==(const PoolUse&) const = default;
};

/// A batch that computes on a virtual device or is transferred to one.
struct ServingSpan {
  enum class Kind { transfer, compute };
  Kind kind = Kind::compute;
  int pipeline = 0, partition = 0;
  int virtual_device = 0;  // index in the partition's pool; for a transfer the receiver
  int sender = 0;          // for a transfer: index in the previous pool
  int requests = 0;
  Nanoseconds begin_ns = 0, end_ns = 0;  // for a transfer: while it occupies network cards
  bool operator==(const ServingSpan&) const = default;
};

/// The result of serving one model.
struct ServingRun {
  std::string model;
  Nanoseconds objective_ns = 0;
  /// Requests arrive in [0, window_ns).
  Nanoseconds window_ns = 0;
  std::vector<ServedRequest> requests;  // in order of arrival
  std::vector<PoolUse> pools;           // pipeline by pipeline, in order of partitions
  /// Number of texts that had more tokens than the model is planned for; in a server only, since its start.
  std::int64_t cut = 0;
  /// Spans in the order in which they were decided; empty unless requested.
  std::vector<ServingSpan> timeline;
  bool operator==(const ServingRun&) const = default;
};

struct ServingSummary {
  std::int64_t requests = 0;
  std::int64_t in_time = 0;  // answered within the objective
  std::int64_t late = 0;
  std::array<std::int64_t, kDropReasons.size()> drops = {};  // by DropReason
  /// Fraction of all requests answered in time; 1 if there were none.
  double attainment = 1;
  /// Answers in time per second of the window.
  double goodput_per_second = 0;
  /// Latencies from arrival to answer of the answered requests; 0 if there are none.
  Nanoseconds mean_latency_ns = 0, median_latency_ns = 0, p90_latency_ns = 0, p99_latency_ns = 0,
              largest_latency_ns = 0;
  /// Busy fraction of the window, by pool in the order of ServingRun::pools.
  std::vector<double> utilisation;
  bool operator==(const ServingSummary&) const = default;
};

ServingSummary summarize(const ServingRun& run);

/// Returns a text such as "no device in time".
std::string_view to_string(DropReason reason);

}  // namespace frostpipe
