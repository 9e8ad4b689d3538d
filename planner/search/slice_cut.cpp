#include "planner/search/slice_cut.h"

#include <algorithm>
#include <numeric>

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

std::optional<Candidate> with_cut_slices(const Phase& phase, const PlanningProblem& problem, CandidateMaker& maker,
                                         LayerCosts& costs) {
  const bool are_open = num_slices(phase) > 1 && problem.options.token_slices == 0 && !problem.options.schedule.empty();
  if (!are_open || !knows_slices(problem.profile)) return std::nullopt;
  Phase cut = phase;
  try {
    cut.token_slices = cut_for_slowest_stage(phase, problem, costs).lengths;
    return maker.with_memory(std::move(cut));
  } catch (const InvalidInput&) {  // a slice after so many tokens was not measured
    return std::nullopt;
  }
}

}  // namespace frostpipe
