#include <algorithm>

#include "plan/schedule.h"
#include "profiles/error.h"

namespace frostpipe {

namespace {

Action of_stage(Action action, int stage) {
  action.stage = stage;
  return action;
}

/// The action of `stage` that makes the input gradient of `action`'s micro-batch: I where the schedule splits, else B.
Action input_gradient(const Schedule& schedule, const Action& action, int stage) {
  const Action split = of_stage(of_kind(action, ActionKind::input_gradient), stage);
  const auto& list = schedule.body[schedule.position_of_stage[stage]];
  const auto same = [&](const Action& a) { return of_kind(a, a.kind) == split; };
  return std::any_of(list.begin(), list.end(), same) ? split : of_kind(split, ActionKind::backward);
}

std::vector<Action> backwards_of(const Schedule& schedule, int stage) {
  std::vector<Action> found;
  for (const auto& action : schedule.body[schedule.position_of_stage[stage]])
    if (action.stage == stage && (action.kind == ActionKind::backward || action.kind == ActionKind::weight_gradient))
      found.push_back(of_kind(action, action.kind));
  return found;
}

}  // namespace

std::vector<Action> dependencies(const Schedule& lowered, const Action& action) {
  const int stage = action.stage;
  const auto own = [&](ActionKind kind) { return of_kind(action, kind); };
  const auto same_position = [&](int other) {
    return lowered.position_of_stage[stage] == lowered.position_of_stage[other];
  };
  switch (action.kind) {
    case ActionKind::forward:
      if (stage == 0) return lowered.reads_cache ? std::vector{own(ActionKind::cache_read)} : std::vector<Action>{};
      return {same_position(stage - 1) ? of_stage(own(ActionKind::forward), stage - 1) : own(ActionKind::recv_forward)};
    case ActionKind::backward:
    case ActionKind::input_gradient:
      if (stage + 1 == num_stages(lowered)) return {own(ActionKind::forward)};
      return {own(ActionKind::forward),
              same_position(stage + 1) ? input_gradient(lowered, action, stage + 1) : own(ActionKind::recv_backward)};
    case ActionKind::weight_gradient:
      return {own(ActionKind::input_gradient)};
    case ActionKind::recompute:
    case ActionKind::cache_write:
    case ActionKind::send_forward:
      return {own(ActionKind::forward)};
    case ActionKind::send_backward:
      return {input_gradient(lowered, action, stage)};
    case ActionKind::recv_forward:
    case ActionKind::recv_backward:
      return {of_kind(matching(action), matching(action).kind)};
    case ActionKind::reduce_gradient:
      return backwards_of(lowered, stage);
    case ActionKind::optimizer_step:
      return {own(ActionKind::reduce_gradient)};
    case ActionKind::unshard:
    case ActionKind::reshard:
    case ActionKind::overlap:
    case ActionKind::cache_read:
      return {};
  }
  FROSTPIPE_CHECK(false, "all kinds are listed");
}

}  // namespace frostpipe
