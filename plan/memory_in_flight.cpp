#include "plan/memory_in_flight.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "plan/batch.h"
#include "plan/memory.h"
#include "plan/reroute.h"
#include "plan/schedule_rows.h"
#include "plan/stages.h"
#include "plan/token_slices.h"

namespace frostpipe {
namespace {

/// Returns the moments of one list after an increase and before a decrease; at every other moment a neighbouring one
/// holds at least as much. Frozen stages hold nothing. An action of slice s counts slice_tokens[s].
std::vector<StagesInFlight> moments_of(const std::vector<Action>& list, const Schedule& schedule,
                                       const std::vector<int>& stages, const std::vector<std::int64_t>& slice_tokens) {
  std::set<StagesInFlight> moments;
  StagesInFlight now(stages.size());
  bool has_risen = false;
  for (const Action& action : list) {
    if (action.stage < schedule.first_trainable_stage) continue;
    InFlight& of_stage = now[std::ranges::find(stages, action.stage) - stages.begin()];
    const ActionKind kind = action.kind;
    const int change =
        (kind == ActionKind::forward) - (kind == ActionKind::backward || kind == ActionKind::input_gradient);
    const bool falls = kind != ActionKind::forward;
    if (falls && has_risen) moments.insert(now);
    has_risen = !falls || kind == ActionKind::input_gradient;  // I leaves what W needs
    of_stage.before_backward += change * slice_tokens[action.slice.value_or(0)];
    of_stage.before_weights += (kind == ActionKind::input_gradient) - (kind == ActionKind::weight_gradient);
    if (action.slice && *action.slice == 0) of_stage.key_values += change;
  }
  if (has_risen) moments.insert(now);
  return {moments.begin(), moments.end()};
}

/// Removes the moments that are dominated by another one.
std::vector<StagesInFlight> most_of(const std::vector<StagesInFlight>& moments) {
  const auto is_at_most = [](const InFlight& a, const InFlight& b) {
    return a.before_backward <= b.before_backward && a.before_weights <= b.before_weights &&
           a.key_values <= b.key_values;
  };
  const auto is_below = [&](const StagesInFlight& a, const StagesInFlight& b) {
    return a != b && std::equal(a.begin(), a.end(), b.begin(), is_at_most);
  };
  std::vector<StagesInFlight> most;
  for (const StagesInFlight& one : moments)
    if (std::ranges::none_of(moments, [&](const StagesInFlight& other) { return is_below(one, other); }))
      most.push_back(one);
  return most;
}

}  // namespace

std::vector<double> peak_in_flight(const Schedule& schedule, double weight_gradient_share) {
  std::vector<int> stages_on(num_pipeline_ranks(schedule), 0);
  for (int pipeline_rank = 0; pipeline_rank < num_pipeline_ranks(schedule); ++pipeline_rank)
    for (int stage = 0; stage < num_stages(schedule); ++stage)
      stages_on[pipeline_rank] += lives_on(schedule, stage, pipeline_rank) ? 1 : 0;
  std::vector<double> peaks;
  for (int pipeline_rank = 0; pipeline_rank < num_pipeline_ranks(schedule); ++pipeline_rank) {
    int before_backward = 0, before_weights = 0;  // in stages of this rank
    double peak = 0;
    for (const auto* part : {&schedule.prologue, &schedule.body, &schedule.epilogue}) {
      if (part->empty()) continue;
      for (const auto& action : (*part)[pipeline_rank]) {
        if (action.stage < schedule.first_trainable_stage) continue;
        before_backward += action.kind == ActionKind::forward;
        before_backward -= action.kind == ActionKind::backward || action.kind == ActionKind::input_gradient;
        before_weights += (action.kind == ActionKind::input_gradient) - (action.kind == ActionKind::weight_gradient);
        peak = std::max(peak, before_backward + weight_gradient_share * before_weights);
      }
    }
    peaks.push_back(peak / (std::max(1, stages_on[pipeline_rank]) * schedule.num_slices));
  }
  return peaks;
}

int micro_batches_in_flight(const Phase& phase) {
  // Apart from the exceptions below, the peak is before or after the steady part, which more micro-batches only
  // lengthen.
  if (!phase.layout.vacant.empty()) return phase.num_micro_batches;
  const int m = phase.num_micro_batches, p = phase.layout.pipeline_parallel_size;
  const bool has_uneven_rounds = phase.virtual_stages > 1 && m % p != 0;
  return schedule_traits(phase.schedule).starts_all_forwards || has_uneven_rounds ? m : std::min(m, 4 * p);
}

std::vector<std::vector<StagesInFlight>> most_in_flight(const Phase& phase, int first_trainable_stage) {
  // Messages keep nothing in flight, so the schedule need not be lowered. Where iterations overlap, the next one fills
  // the places that this one leaves, so the flushed schedule has the same peaks.
  Schedule schedule =
      phase.schedule_rows.empty()
          ? flushed(build_schedule(phase.schedule, {.pipeline_parallel_size = phase.layout.pipeline_parallel_size,
                                                    .num_micro_batches = micro_batches_in_flight(phase),
                                                    .first_trainable_stage = first_trainable_stage,
                                                    .virtual_stages = phase.virtual_stages,
                                                    .token_slices = num_slices(phase)}))
          : compute_of_rows(phase, first_trainable_stage);
  if (!phase.layout.vacant.empty()) schedule = written_out(schedule, phase.layout);
  const std::vector<std::int64_t> tokens =
      num_slices(phase) > 1 ? tokens_of_slices(phase, longest_sample(phase)) : std::vector<std::int64_t>{1};
  std::vector<std::vector<StagesInFlight>> most;
  for (int pipeline_rank = 0; pipeline_rank < phase.layout.pipeline_parallel_size; ++pipeline_rank) {
    std::vector<StagesInFlight> moments;
    for (const int list : lists_of(phase.layout, pipeline_rank)) {
      const auto of_list = moments_of(schedule.body[list], schedule, stages_on(phase, pipeline_rank), tokens);
      moments.insert(moments.end(), of_list.begin(), of_list.end());
    }
    most.push_back(most_of(moments));
  }
  return most;
}

}  // namespace frostpipe
