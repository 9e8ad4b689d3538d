#pragma once
#include <optional>

#include "plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"
#include "simulator/failures.h"

// This header has functions that change a plan or the inputs of its prediction, and one that predicts the effect.

namespace frostpipe {

/// A plan with everything that determines how long it takes.
struct Scenario {
  TrainingPlan plan;
  Profile profile;
  Cluster cluster;
  double jitter = 0;  // standard deviation of each compute time, as a fraction of it; drawn with a fixed seed
  Failures failures;
};

/// Multiplies the bandwidths of messages and collectives, within and between nodes, and of the links that ranks share
/// (network cards, switches) by `factor`. Each is at least 1 byte/s afterwards; unlimited bandwidths stay unlimited.
void scale_bandwidths(Cluster& cluster, double factor);

/// Sets the bandwidths of messages and collectives to the same value, at least 1 byte/s. Shared links keep theirs.
void set_bandwidths(Cluster& cluster, double bytes_per_second);

void scale_latencies(Cluster& cluster, double factor);
void set_latencies(Cluster& cluster, double latency_ns);

/// Gives the rank a device type of its own that is `speed` times as fast. Requires speed > 0. Throws std::out_of_range
/// if there is no such rank.
void change_speed(Scenario& scenario, int rank, double speed);

/// Moves every freeze to `factor` times its step, rounded. Phases that would begin at or after the run's end, or be
/// replaced before their first step, are removed.
void move_freezes(TrainingPlan& plan, double factor);

/// The spread of iteration times over draws of the jitter.
struct IterationSpread {
  int from_step = 0;                                   // of the phase
  Nanoseconds low_ns = 0, median_ns = 0, high_ns = 0;  // 5th, 50th and 95th percentile of the draws
};

/// The prediction for a scenario.
struct Outcome {
  double total_seconds = 0;  // of the training, including the cost of failures
  double samples_per_second = 0;
  Bytes peak_memory_bytes = 0;                // of the rank and phase with the largest peak
  std::optional<IterationSpread> spread;      // with jitter: the spread of the phase with the most steps
  std::optional<ExpectedTime> with_failures;  // if the scenario has failures
};

/// Predicts the scenario with predict_phases. With jitter each phase's iteration takes the mean of 200 seeded draws.
/// Throws as predict_phases does.
Outcome evaluate(const Scenario& scenario);

}  // namespace frostpipe
