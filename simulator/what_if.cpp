#include "simulator/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "base/statistics.h"
#include "simulator/predict_phases.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

constexpr int kDraws = 200;
constexpr std::uint64_t kSeed = 1;

template <class Edit>
void for_each_link(Cluster& cluster, Edit edit) {
  std::vector<LinkClass*> classes = {&cluster.intra_node, &cluster.inter_node};
  for (NodePair& pair : cluster.node_pairs) classes.push_back(&pair.links);
  for (LinkClass* const links : classes)
    for (Link* const link : {&links->point_to_point, &links->collective}) edit(*link);
}

/// Rounds to an integer that is at most a quarter of the largest int64, so that a few results can be added.
std::int64_t rounded(double amount) {
  constexpr double kMax = static_cast<double>(std::numeric_limits<std::int64_t>::max() / 4);
  return std::llround(std::min(kMax, amount));
}

/// Returns how long the run takes. Unlike predicted_run_ns() this does not overflow after 292 years.
double run_seconds(const TrainingPlan& plan) {
  double nanoseconds = 0;
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const Phase& phase = plan.phases[i];
    const int end_step = i + 1 < plan.phases.size() ? plan.phases[i + 1].from_step : plan.num_steps;
    nanoseconds += static_cast<double>(end_step - phase.from_step) * static_cast<double>(phase.predicted.iteration_ns) +
                   static_cast<double>(phase.predicted.transformation_ns);
  }
  return 1e-9 * nanoseconds;
}

/// Varies the compute times of other costs at random.
class JitteredCostModel final : public CostModel {
 public:
  JitteredCostModel(const CostModel& costs, double deviation, std::uint64_t seed)
      : costs_(costs), normal_(1, deviation), random_(seed) {}
  std::vector<Segment> segments(const Action& action, int pipeline_rank, int replica) const override {
    std::vector<Segment> segments = costs_.segments(action, pipeline_rank, replica);
    if (is_compute(action.kind))
      for (Segment& segment : segments) segment.duration_ns = varied(segment.duration_ns);
    return segments;
  }
  Nanoseconds compute_ns(const Action& action, int pipeline_rank, int replica) const override {
    return varied(costs_.compute_ns(action, pipeline_rank, replica));
  }
  TransferCost transfer(const Action& send, int replica) const override { return costs_.transfer(send, replica); }
  std::vector<SharedOccupancy> shared_occupancies(const Action& send, int replica) const override {
    return costs_.shared_occupancies(send, replica);
  }
  bool shares_links() const override { return costs_.shares_links(); }

 private:
  Nanoseconds varied(Nanoseconds duration) const {
    const double factor = std::max(0.1, normal_(random_));
    return static_cast<Nanoseconds>(std::llround(factor * static_cast<double>(duration)));
  }

  const CostModel& costs_;
  mutable std::normal_distribution<double> normal_;
  mutable std::mt19937_64 random_;
};

/// Returns the phase's iteration time for each draw.
std::vector<Nanoseconds> jittered_iterations(const Phase& phase, const Scenario& scenario) {
  const TrainingPlan& plan = scenario.plan;
  std::vector<Nanoseconds> draws;
  for (int draw = 0; draw < kDraws; ++draw) {
    const auto wrap = [&](const CostModel& costs) {
      return std::make_unique<JitteredCostModel>(costs, scenario.jitter, kSeed * kDraws + draw);
    };
    draws.push_back(iteration_ns_with(phase, step_settings(plan), scenario.profile, scenario.cluster, wrap));
  }
  return draws;
}

Nanoseconds mean(const std::vector<Nanoseconds>& draws) {
  double sum = 0;
  for (const Nanoseconds draw : draws) sum += static_cast<double>(draw);
  return static_cast<Nanoseconds>(sum / static_cast<double>(draws.size()));
}

/// Replaces each phase's iteration time in `predicted` by the mean of many draws. Returns the spread of the phase with
/// the most steps.
IterationSpread apply_jitter(TrainingPlan& predicted, const Scenario& scenario) {
  IterationSpread spread;
  int longest = -1;
  for (std::size_t i = 0; i < predicted.phases.size(); ++i) {
    Phase& phase = predicted.phases[i];
    const std::vector<Nanoseconds> draws = jittered_iterations(phase, scenario);
    phase.predicted.iteration_ns = mean(draws);
    const int end_step = i + 1 < predicted.phases.size() ? predicted.phases[i + 1].from_step : predicted.num_steps;
    if (end_step - phase.from_step <= longest) continue;
    longest = end_step - phase.from_step;
    const auto at = [&](double share) { return quantile(draws, share, Between::lower); };
    spread = {.from_step = phase.from_step, .low_ns = at(0.05), .median_ns = at(0.5), .high_ns = at(0.95)};
  }
  return spread;
}

}  // namespace

void scale_bandwidths(Cluster& cluster, double factor) {
  const auto scale = [&](std::int64_t& bandwidth) {
    if (bandwidth > 0) bandwidth = std::max<std::int64_t>(1, rounded(static_cast<double>(bandwidth) * factor));
  };
  for_each_link(cluster, [&](Link& link) { scale(link.bandwidth_bytes_per_second); });
  for (SharedLink& link : cluster.shared_links) scale(link.bandwidth_bytes_per_second);
}

void set_bandwidths(Cluster& cluster, double bytes_per_second) {
  for_each_link(cluster, [&](Link& link) {
    link.bandwidth_bytes_per_second = std::max<std::int64_t>(1, rounded(bytes_per_second));
  });
}

void scale_latencies(Cluster& cluster, double factor) {
  for_each_link(cluster, [&](Link& link) { link.latency_ns = rounded(static_cast<double>(link.latency_ns) * factor); });
}

void set_latencies(Cluster& cluster, double latency_ns) {
  for_each_link(cluster, [&](Link& link) { link.latency_ns = rounded(latency_ns); });
}

void change_speed(Scenario& scenario, int rank, double speed) {
  Device& device = scenario.cluster.devices.at(rank);
  const std::string was = device.type;
  device.type = fmt::format("{} of rank {}", was, rank);
  const auto scaled = [&](Nanoseconds time) { return rounded(static_cast<double>(time) / speed); };
  const std::vector<Measurement> measurements = scenario.profile.measurements;
  for (Measurement one : measurements) {
    if (one.key.device_type != was) continue;
    one.key.device_type = device.type;
    for (Nanoseconds* const time : times_in(one.cost)) *time = scaled(*time);
    scenario.profile.measurements.push_back(one);
  }
  std::sort(scenario.profile.measurements.begin(), scenario.profile.measurements.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  const std::vector<UpdateMeasurement> updates = scenario.profile.updates;
  for (UpdateMeasurement one : updates) {
    if (one.device_type != was) continue;
    one.device_type = device.type;
    one.update_ns = scaled(one.update_ns);
    scenario.profile.updates.push_back(one);
  }
}

void move_freezes(TrainingPlan& plan, double factor) {
  std::vector<Phase> phases;
  for (Phase phase : plan.phases) {
    const double step = std::round(phase.from_step * factor);
    if (step >= plan.num_steps) continue;
    phase.from_step = static_cast<int>(step);
    if (!phases.empty() && phases.back().from_step >= phase.from_step) phases.pop_back();
    phases.push_back(std::move(phase));
  }
  plan.phases = std::move(phases);
}

Outcome evaluate(const Scenario& scenario) {
  Outcome outcome;
  const std::vector<PredictedPhase> phases = predict_phases(scenario.plan, scenario.profile, scenario.cluster);
  for (const PredictedPhase& phase : phases)
    for (const Bytes bytes : phase.peak_memory_bytes)
      outcome.peak_memory_bytes = std::max(outcome.peak_memory_bytes, bytes);
  TrainingPlan predicted = with_predictions(scenario.plan, phases);
  if (scenario.jitter > 0) outcome.spread = apply_jitter(predicted, scenario);
  outcome.total_seconds = run_seconds(predicted);
  if (scenario.failures.per_day > 0) {
    outcome.with_failures = expected_time(outcome.total_seconds, scenario.failures);
    outcome.total_seconds = outcome.with_failures->seconds;
  }
  if (outcome.total_seconds > 0)
    outcome.samples_per_second =
        static_cast<double>(predicted.num_steps) * predicted.global_batch_size / outcome.total_seconds;
  return outcome;
}

}  // namespace frostpipe
