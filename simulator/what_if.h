#pragma once
#include <optional>

#include "plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"
#include "simulator/failures.h"

// Changes to a plan and to what it is predicted from, and what they would bring.

namespace frostpipe {

/// A plan with all that decides how long it takes.
struct Scenario {
  TrainingPlan plan;
  Profile profile;
  Cluster cluster;
  double jitter = 0;  // standard deviation of a compute time, as a share of it; seeded
  Failures failures;
};

/// Of messages and collectives, within and between nodes; at least 1 byte/s. Unlimited ones stay unlimited.
void scale_bandwidths(Cluster& cluster, double factor);

/// The same for all of them; at least 1 byte/s.
void set_bandwidths(Cluster& cluster, double bytes_per_second);

void scale_latencies(Cluster& cluster, double factor);
void set_latencies(Cluster& cluster, double latency_ns);

/// The rank gets a device type of its own, `speed` times as fast. Requires speed > 0. Throws std::out_of_range for a
/// rank that is not there.
void change_speed(Scenario& scenario, int rank, double speed);

/// Every freeze at `factor` times its step. Phases that would begin after the run are left out, and those that another
/// phase replaces before their first step.
void move_freezes(TrainingPlan& plan, double factor);

/// How iteration times spread over draws of the jitter.
struct IterationSpread {
  int from_step = 0;                                   // of the phase
  Nanoseconds low_ns = 0, median_ns = 0, high_ns = 0;  // 5 %, 50 %, 95 % of the draws
};

/// What a scenario is predicted to take.
struct Outcome {
  double total_seconds = 0;  // of the training, with what failures cost
  double samples_per_second = 0;
  Bytes peak_memory_bytes = 0;                // of the rank and phase that needs most
  std::optional<IterationSpread> spread;      // with jitter: of the phase with most steps
  std::optional<ExpectedTime> with_failures;  // of the training, if there are any
};

/// By predict_phases. With jitter each phase's iteration takes the mean of 200 seeded draws. Throws as predict_phases
/// does.
Outcome evaluate(const Scenario& scenario);

}  // namespace frostpipe
