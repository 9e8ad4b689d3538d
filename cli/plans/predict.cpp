#include "cli/plans/predict.h"

#include <fmt/format.h>

#include "cli/shared/report_words.h"
#include "plan/memory.h"
#include "plan/transformation.h"
#include "planner/search/best_phase.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

std::vector<Bytes> peak_memory_per_rank(const Phase& phase, const TrainingPlan& plan,
                                        const std::vector<RankMemory>& per_position) {
  std::vector<Bytes> bytes(plan.world_size, 0);
  for (int rank = 0; rank < plan.world_size; ++rank) {
    if (const auto place = find_place(phase.layout, rank)) bytes[rank] = per_position[place->position].total();
  }
  return bytes;
}

double embedding_share(const Model& model) {
  double all = 0, embedding = 0;
  for (const Layer& layer : model.layers) {
    all += static_cast<double>(layer.parameter_count);
    if (layer.kind == LayerKind::embedding) embedding += static_cast<double>(layer.parameter_count);
  }
  return all > 0 ? embedding / all : 0;
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
      const Transformation change = diff(plan.phases[i - 1], phase, profile.model, plan.optimizer, plan.dtype);
      result.transformation_ns = transformation_ns(change, cluster);
    }
    predicted.push_back(std::move(result));
  }
  return predicted;
}

void add_predictions(RunSummary& run, const TrainingPlan& executed, const std::string& source, const Profile& profile,
                     const Cluster& cluster) {
  if (executed.phases.size() != run.phases.size()) {
    throw InvalidInput(source + ": phases", fmt::format("must be the {} of the run {}", run.phases.size(), run.name),
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
    if (run.phases[i].tokens > 0) phase.tokens = run.phases[i].tokens;
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

WhatIf freeze_embedding_alone(const std::string& run, const TrainingPlan& executed, int tokens, const Profile& profile,
                              const Cluster& cluster) {
  Phase before = executed.phases.front();
  if (tokens > 0) before.tokens = tokens;
  const auto iteration_ns = [&](const Phase& phase) {
    return simulate_phase(phase, step_settings(executed), profile, cluster).summary.iteration_ns;
  };
  const PlanOptions options{.method = executed.method,
                            .global_batch_size = executed.global_batch_size,
                            .num_steps = executed.num_steps,
                            .tokens = before.tokens,
                            .optimizer = executed.optimizer,
                            .dtype = executed.dtype,
                            .partitioner = executed.partitioner,
                            .tensor_parallel_size = before.layout.tensor_parallel_size,
                            .recompute = before.recompute,
                            .ignore_memory_limit = !executed.memory_limited,
                            .freeze = {}};
  const auto best =
      best_phase(profile, cluster, options, before.layout.pipeline_parallel_size, /*first_trainable_layer=*/1);
  Phase after = before;
  after.first_trainable_layer = 1;
  if (const auto* phase = std::get_if<Phase>(&best)) after = *phase;

  WhatIf what_if{.name = fmt::format("freezing the embedding alone, {}", run),
                 .iteration_ns = iteration_ns(after),
                 .baseline_iteration_ns = iteration_ns(before),
                 .sentence = ""};
  const double change = 100.0 * static_cast<double>(what_if.iteration_ns - what_if.baseline_iteration_ns) /
                        static_cast<double>(std::max<Nanoseconds>(1, what_if.baseline_iteration_ns));
  what_if.sentence = fmt::format(
      "The embedding holds {:.0f} % of the parameters; freezing it and nothing else would take an iteration of {} from "
      "{} to {} ({:+.0f} %).",
      100 * embedding_share(profile.model), run_in_words(run), format_duration(what_if.baseline_iteration_ns),
      format_duration(what_if.iteration_ns), change);
  return what_if;
}

}  // namespace frostpipe
