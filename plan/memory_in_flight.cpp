#include "plan/memory_in_flight.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>

#include "base/error.h"
#include "plan/batch.h"
#include "plan/memory.h"
#include "plan/reroute.h"
#include "plan/schedule_rows.h"
#include "plan/stages.h"
#include "plan/token_slices.h"

namespace frostpipe {
namespace {

/// Moments one after the other, each with one entry per stage.
struct Moments {
  std::size_t num_stages = 0;
  std::vector<InFlight> entries;
  std::span<const InFlight> at(std::size_t moment) const {
    return std::span(entries).subspan(moment * num_stages, num_stages);
  }
  std::size_t size() const { return entries.size() / num_stages; }
};

/// Adds the moments of one list that follow an increase and precede a decrease; at every other moment, a neighbouring
/// one holds at least as much. Frozen stages hold nothing. An action of slice s counts slice_tokens[s].
void add_moments_of(const std::vector<Action>& list, const Schedule& schedule, const std::vector<int>& stages,
                    const std::vector<std::int64_t>& slice_tokens, Moments& moments) {
  StagesInFlight now(stages.size());
  const auto add = [&] { moments.entries.insert(moments.entries.end(), now.begin(), now.end()); };
  bool has_risen = false;
  for (const Action& action : list) {
    if (action.stage < schedule.first_trainable_stage) continue;
    InFlight& of_stage = now[std::ranges::find(stages, action.stage) - stages.begin()];
    const ActionKind kind = action.kind;
    const int change =
        (kind == ActionKind::forward) - (kind == ActionKind::backward || kind == ActionKind::input_gradient);
    const bool falls = kind != ActionKind::forward;
    if (falls && has_risen) add();
    has_risen = !falls || kind == ActionKind::input_gradient;  // I leaves what W needs
    of_stage.before_backward += change * slice_tokens[action.slice.value_or(0)];
    of_stage.before_weights += (kind == ActionKind::input_gradient) - (kind == ActionKind::weight_gradient);
    if (action.slice && *action.slice == 0) of_stage.key_values += change;
  }
  if (has_risen) add();
}

/// Returns whether `a` holds at most what `b` holds, of every kind on every stage.
bool is_at_most(std::span<const InFlight> a, std::span<const InFlight> b) {
  return std::ranges::equal(a, b, [](const InFlight& one, const InFlight& other) {
    return one.before_backward <= other.before_backward && one.before_weights <= other.before_weights &&
           one.key_values <= other.key_values;
  });
}

/// Raises `most` to at least `one`, of every kind on every stage.
void raise_to(StagesInFlight& most, std::span<const InFlight> one) {
  for (std::size_t i = 0; i < most.size(); ++i) {
    most[i].before_backward = std::max(most[i].before_backward, one[i].before_backward);
    most[i].before_weights = std::max(most[i].before_weights, one[i].before_weights);
    most[i].key_values = std::max(most[i].key_values, one[i].key_values);
  }
}

/// Returns whether a moment holds at most the mean of two others, equally far before and after it. Since the memory of
/// a moment is linear in what it holds, it is then at most that of one of the two. At the first moment with the largest
/// memory this is false, since all earlier moments have less memory, and later ones no more.
bool is_at_most_a_mean(const Moments& moments, std::size_t moment) {
  const std::size_t farthest = 2 * moments.num_stages;  // steady parts of a schedule repeat within a few actions
  const std::span<const InFlight> one = moments.at(moment);
  for (std::size_t far = 1; far <= farthest && far <= moment && moment + far < moments.size(); ++far) {
    const std::span<const InFlight> before = moments.at(moment - far), after = moments.at(moment + far);
    bool is_at_most = true;
    for (std::size_t i = 0; i < one.size() && is_at_most; ++i)
      is_at_most = 2 * one[i].before_backward <= before[i].before_backward + after[i].before_backward &&
                   2 * one[i].before_weights <= before[i].before_weights + after[i].before_weights &&
                   2 * one[i].key_values <= before[i].key_values + after[i].key_values;
    if (is_at_most) return true;
  }
  return false;
}

/// Returns the moments at which the memory can have its peak, each once, in ascending order.
std::vector<StagesInFlight> most_of(const Moments& moments) {
  std::vector<std::span<const InFlight>> descending;
  for (std::size_t moment = 0; moment < moments.size(); ++moment)
    if (!is_at_most_a_mean(moments, moment)) descending.push_back(moments.at(moment));
  std::ranges::sort(descending, [](auto a, auto b) { return std::ranges::lexicographical_compare(b, a); });
  // In this order a moment is dominated only by earlier ones, and if by any, then by one that is kept. A group of
  // neighbours is skipped unless the maxima over the group dominate the moment.
  constexpr std::size_t kGroup = 32;
  std::vector<StagesInFlight> kept, most_of_groups;
  for (const std::span<const InFlight> one : descending) {
    bool is_dominated = false;
    for (std::size_t group = 0; group < most_of_groups.size() && !is_dominated; ++group) {
      if (!is_at_most(one, most_of_groups[group])) continue;
      const std::size_t end = std::min(kept.size(), (group + 1) * kGroup);
      for (std::size_t i = group * kGroup; i < end && !is_dominated; ++i) is_dominated = is_at_most(one, kept[i]);
    }
    if (is_dominated) continue;
    if (kept.size() % kGroup == 0) most_of_groups.emplace_back(one.begin(), one.end());
    raise_to(most_of_groups.back(), one);
    kept.emplace_back(one.begin(), one.end());
  }
  std::ranges::reverse(kept);
  return kept;
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

std::vector<std::vector<StagesInFlight>> peaks_in_flight(const Phase& phase, int first_trainable_stage) {
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
    const std::vector<int> stages = stages_on(phase, pipeline_rank);
    Moments moments{.num_stages = stages.size()};
    for (const int list : lists_of(phase.layout, pipeline_rank))
      add_moments_of(schedule.body[list], schedule, stages, tokens, moments);
    most.push_back(most_of(moments));
  }
  return most;
}

}  // namespace frostpipe
