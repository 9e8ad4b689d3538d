#include <algorithm>

#include "base/error.h"
#include "plan/schedule.h"

namespace frostpipe {

namespace {

Action of_stage(Action action, int stage) {
  action.stage = stage;
  return action;
}

/// Returns the action for the slice before, if there is one: with causal attention the forward of a slice reads the
/// keys and values of the slices before it on this stage.
std::vector<Action> earlier_slice(Action action) {
  if (!action.slice || *action.slice == 0) return {};
  action.slice = *action.slice - 1;
  return {of_kind(action, action.kind)};
}

}  // namespace

Dependencies::Dependencies(const Schedule& lowered)
    : schedule_(lowered), input_gradients_(num_stages(lowered)), backwards_(num_stages(lowered)) {
  for (const auto& list : lowered.body) {
    for (const Action& action : list) {
      if (action.stage < 0 || action.stage >= num_stages(lowered)) continue;  // the validator reports it
      const Action plain = of_kind(action, action.kind);
      if (action.kind == ActionKind::input_gradient) input_gradients_[action.stage].push_back(plain);
      if (action.kind == ActionKind::backward || action.kind == ActionKind::weight_gradient)
        backwards_[action.stage].push_back(plain);
    }
  }
  for (auto& actions : input_gradients_) std::sort(actions.begin(), actions.end());
}

Action Dependencies::input_gradient(const Action& action, int stage) const {
  const Action split = of_stage(of_kind(action, ActionKind::input_gradient), stage);
  const auto& splits = input_gradients_[stage];
  return std::binary_search(splits.begin(), splits.end(), split) ? split : of_kind(split, ActionKind::backward);
}

/// Returns the input gradient of the slice after, if there is one: the backward of a slice needs the gradients that
/// later slices leave for its keys and values.
std::vector<Action> Dependencies::later_slice(Action action) const {
  if (!action.slice || *action.slice + 1 >= schedule_.num_slices) return {};
  action.slice = *action.slice + 1;
  return {input_gradient(action, action.stage)};
}

std::vector<Action> Dependencies::of(const Action& action) const {
  const int stage = action.stage;
  const auto own = [&](ActionKind kind) { return of_kind(action, kind); };
  const auto same_pipeline_rank = [&](int other) {
    return pipeline_rank_of(schedule_, stage, *action.micro_batch) ==
           pipeline_rank_of(schedule_, other, *action.micro_batch);
  };
  switch (action.kind) {
    case ActionKind::forward: {
      std::vector<Action> needed = earlier_slice(action);
      if (stage == 0 && schedule_.reads_cache) needed.push_back(own(ActionKind::cache_read));
      if (stage > 0)
        needed.push_back(same_pipeline_rank(stage - 1) ? of_stage(own(ActionKind::forward), stage - 1)
                                                       : own(ActionKind::recv_forward));
      return needed;
    }
    case ActionKind::backward:
    case ActionKind::input_gradient: {
      std::vector<Action> needed = later_slice(action);
      needed.push_back(own(ActionKind::forward));
      if (stage + 1 < num_stages(schedule_))
        needed.push_back(same_pipeline_rank(stage + 1) ? input_gradient(action, stage + 1)
                                                       : own(ActionKind::recv_backward));
      return needed;
    }
    case ActionKind::weight_gradient:
      return {own(ActionKind::input_gradient)};
    case ActionKind::recompute:
    case ActionKind::cache_write:
    case ActionKind::send_forward:
      return {own(ActionKind::forward)};
    case ActionKind::send_backward:
      return {input_gradient(action, stage)};
    case ActionKind::recv_forward:
    case ActionKind::recv_backward:
      return {of_kind(matching(action), matching(action).kind)};
    case ActionKind::reduce_gradient:
      return backwards_[stage];
    case ActionKind::optimizer_step:
      return {own(ActionKind::reduce_gradient)};
    case ActionKind::unshard:
    case ActionKind::reshard:
    case ActionKind::cache_read:
      return {};
  }
  FROSTPIPE_CHECK(false, "all kinds are listed");
}

}  // namespace frostpipe
