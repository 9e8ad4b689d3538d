#include "planner/search/slice_cut.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "plan/memory.h"
#include "plan/stages.h"
#include "plan/token_slices.h"

namespace frostpipe {
namespace {

/// Returns the time of forward and backward of a stage's layers.
Nanoseconds stage_ns(const Phase& phase, const Model& model, int stage, const std::vector<LayerCost>& layers) {
  Nanoseconds sum = 0;
  for (int layer = phase.partition[stage].begin; layer < phase.partition[stage].end; ++layer) {
    const LayerCost& cost = layers[layer];
    if (layer < phase.first_trainable_layer) {
      sum += cost.frozen_forward_ns;
      continue;
    }
    const int forwards = is_recomputed(phase.recompute, model.layers[layer].kind) ? 2 : 1;
    sum += forwards * cost.forward_ns + cost.weight_gradient_ns;
    if (layer > phase.first_trainable_layer) sum += cost.input_gradient_ns;
  }
  return sum;
}

}  // namespace

TokenSlices cut_for_slowest_stage(const Phase& phase, const PlanningProblem& problem, LayerCosts& costs) {
  constexpr int kSteps = 16;
  const Model& model = problem.profile.model;
  const int samples = planned_micro_batch(phase, problem.options.global_batch_size).samples,
            t = phase.layout.tensor_parallel_size, step = std::max(1, phase.tokens / kSteps),
            tokens = (phase.tokens + step - 1) / step * step;
  const auto type_of = [&](int stage) { return problem.cluster.devices.at(rank_of_stage(phase, stage, 0)).type; };
  int slowest = 0;
  Nanoseconds longest_ns = 0;
  for (int stage = 0; stage < num_stages(phase); ++stage) {
    const Nanoseconds time = stage_ns(phase, model, stage, costs.at(type_of(stage), samples, phase.tokens, t));
    if (time <= longest_ns) continue;
    longest_ns = time;
    slowest = stage;
  }
  TokenSlices slices = slice_tokens(
      tokens, step, phase.layout.pipeline_parallel_size, phase.num_micro_batches, [&](int length, int context) {
        return stage_ns(
            phase, model, slowest,
            costs.of_slice(type_of(slowest), samples, phase.tokens, t, TokenRange{context, context + length}));
      });
  slices.lengths.back() += std::max(0, static_cast<int>(longest_sample(phase)) - tokens);
  return slices;
}

namespace {

/// Returns the cuts to try for a phase that has its partition: that of TeraPipe's dynamic program, which knows
/// neither messages nor the schedule, and few or many equal slices.
std::vector<std::vector<int>> cuts_to_try(const Phase& phase, const PlanningProblem& problem, LayerCosts& costs) {
  constexpr std::array kEqual = {1, 2, 8};
  std::vector<std::vector<int>> cuts{cut_for_slowest_stage(phase, problem, costs).lengths};
  const int tokens = static_cast<int>(longest_sample(phase));
  for (const int slices : kEqual)
    if (slices <= tokens) cuts.push_back(equal_slices(tokens, slices));
  return cuts;
}

/// Returns the fastest of the phases that have the slices of `phase` and an iteration below the limit: from its cuts,
/// and from those of the least StageBound for these slices, the cuts are shifted while that is faster.
std::optional<Phase> with_partition_for_its_slices(const Phase& phase, Nanoseconds limit_ns,
                                                   const PlanningProblem& problem, CandidateMaker& maker,
                                                   const PredictBelow& predicted_below) {
  std::vector<Phase> starts{phase};
  const auto made = maker.make(phase, limit_ns);
  const auto* const candidate = std::get_if<std::optional<Candidate>>(&made);
  if (candidate && *candidate) starts.push_back((*candidate)->phase);
  std::optional<Phase> best;
  for (const Phase& start : starts) {
    const auto predicted = predicted_below(start, kNoLimit);
    if (!predicted) continue;
    Phase shifted = with_shifted_or_even_cuts(*predicted, problem, maker, predicted_below);
    if (shifted.predicted.iteration_ns >= limit_ns) continue;
    limit_ns = shifted.predicted.iteration_ns;
    best = std::move(shifted);
  }
  return best;
}

}  // namespace

std::optional<Phase> with_cut_slices(Phase phase, const PlanningProblem& problem, CandidateMaker& maker,
                                     LayerCosts& costs, const PredictBelow& predicted_below) {
  if (num_slices(phase) < 2 || !cuts_slices(problem)) return std::nullopt;
  std::optional<Phase> best;
  Nanoseconds limit_ns = phase.predicted.iteration_ns;
  try {
    for (std::vector<int>& lengths : cuts_to_try(phase, problem, costs)) {
      phase.token_slices = std::move(lengths);
      auto cut = with_partition_for_its_slices(phase, limit_ns, problem, maker, predicted_below);
      if (!cut) continue;
      limit_ns = cut->predicted.iteration_ns;
      best = std::move(cut);
    }
  } catch (const InvalidInput&) {  // a slice after so many tokens was not measured
  }
  return best;
}

}  // namespace frostpipe
