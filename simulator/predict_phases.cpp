#include "simulator/predict_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "plan/reconfiguration.h"

namespace frostpipe {
namespace {

std::vector<Bytes> peak_memory_per_rank(const Phase& phase, const TrainingPlan& plan,
                                        const std::vector<RankMemory>& per_pipeline_rank) {
  std::vector<Bytes> bytes(plan.world_size, 0);
  for (int rank = 0; rank < plan.world_size; ++rank) {
    if (const auto coordinate = find_coordinate(phase.layout, rank))
      bytes[rank] = per_pipeline_rank[coordinate->pipeline_rank].total();
  }
  return bytes;
}

/// Returns the tokens per sample for which a phase is predicted: the workload's rounded mean if the phase's
/// mini-batches had that mean within half a token (measurements with the rounded mean stand for the mean, see
/// Workload), else those of the phase.
int tokens_of(const PhaseSummary& phase, const RunSummary& run, const std::optional<Workload>& workload) {
  double sum = 0;
  int count = 0;
  for (const StepRecord& step : run.steps) {
    if (step.step < phase.from_step || step.step >= phase.from_step + phase.num_steps) continue;
    sum += step.tokens;
    ++count;
  }
  if (workload && count > 0 && std::abs(sum / count - workload->tokens) < 0.5)
    return static_cast<int>(std::lround(workload->tokens));
  return phase.tokens;
}

}  // namespace

std::vector<PredictedPhase> predict_phases(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster) {
  std::vector<PredictedPhase> predicted;
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const Phase& phase = plan.phases[i];
    PredictedPhase result;
    result.simulated = simulate_phase(phase, step_settings(plan), profile, cluster);
    result.memory = memory_of(phase, step_settings(plan), profile, cluster);
    result.peak_memory_bytes = peak_memory_per_rank(phase, plan, result.memory);
    if (i > 0) {
      const Reconfiguration change = diff(plan.phases[i - 1], phase, profile.model, plan.optimizer, plan.dtype);
      result.transformation_ns = reconfiguration_ns(change, cluster);
    }
    predicted.push_back(std::move(result));
  }
  return predicted;
}

std::optional<double> tokens_per_second(const Phase& phase, int global_batch_size, const Profile& profile) {
  if (profile.model.vocab_size == 0) return std::nullopt;
  const auto& workload = profile.workload;
  const bool is_of_workload = workload && std::lround(workload->tokens) == phase.tokens;
  const double tokens = is_of_workload ? workload->tokens : phase.tokens;
  return 1e9 * global_batch_size * tokens / static_cast<double>(std::max<Nanoseconds>(1, phase.predicted.iteration_ns));
}

TrainingPlan with_predictions(TrainingPlan plan, const std::vector<PredictedPhase>& phases) {
  for (std::size_t i = 0; i < phases.size(); ++i)
    plan.phases[i].predicted = {.iteration_ns = phases[i].simulated.summary.iteration_ns,
                                .transformation_ns = phases[i].transformation_ns,
                                .peak_memory_bytes = phases[i].peak_memory_bytes};
  return plan;
}

void add_predictions(RunSummary& run, const TrainingPlan& executed, const std::string& source, const Profile& profile,
                     const Cluster& cluster) {
  if (executed.phases.size() != run.phases.size()) {
    throw InvalidInput(source + ": phases",
                       fmt::format("must have {} entr{}, as in the run {}", run.phases.size(),
                                   run.phases.size() == 1 ? "y" : "ies", run.name),
                       std::to_string(executed.phases.size()));
  }
  TrainingPlan as_it_was = executed;
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    Phase& phase = as_it_was.phases[i];
    if (phase.from_step != run.phases[i].from_step) {
      throw InvalidInput(fmt::format("{}: phases[{}].from_step", source, i),
                         fmt::format("must be {} as in the run {}", run.phases[i].from_step, run.name),
                         std::to_string(phase.from_step));
    }
    if (run.phases[i].tokens > 0) phase.tokens = tokens_of(run.phases[i], run, profile.workload);
  }
  std::vector<PredictedPhase> predicted = predict_phases(as_it_was, profile, cluster);
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    PhaseSummary& phase = run.phases[i];
    phase.predicted_iteration_ns = predicted[i].simulated.summary.iteration_ns;
    phase.predicted_timeline = std::move(predicted[i].simulated.timeline);
    phase.predicted_peak_memory_bytes = std::move(predicted[i].peak_memory_bytes);
    phase.predicted_transformation_ns = predicted[i].transformation_ns;
  }
}

}  // namespace frostpipe
