// ScheduleRunner's iterations that are recorded and replayed.
#include "executor/runtime/schedule_iteration.h"
#include "plan/stages.h"
#include "profiles/error.h"

namespace frostpipe {

bool ScheduleRunner::is_recorded(const Action& action) const {
  if (!record_) return false;
  switch (action.kind) {
    case ActionKind::forward:
      return action.stage >= first_trainable_stage(phase_) ||
             (has_stage(action.stage + 1) && is_recorded({.kind = action.kind, .stage = action.stage + 1}));
    case ActionKind::backward:
    case ActionKind::input_gradient:
    case ActionKind::weight_gradient:
      return true;
    case ActionKind::reduce_gradient:
    case ActionKind::optimizer_step:
      return records_update_;
    default:
      return false;
  }
}

void ScheduleRunner::issue_recorded(Iteration& iteration, const Action& action) {
  record_->run([&] { issue(iteration, action); });
  if (!action.micro_batch) return;
  const bool is_forward = action.kind == ActionKind::forward;
  const std::pair key(action.stage, part_of(action));
  StageTensors &made = is_forward ? iteration.outputs : iteration.input_gradients,
               &kept = is_forward ? recorded_->outputs : recorded_->input_gradients;
  if (record_->is_recorded() && made.contains(key)) kept[key] = made.at(key);
  if (!record_->is_replayed()) return;
  (is_forward ? iteration.inputs : iteration.output_gradients).erase(key);  // read where it lies
  if (kept.contains(key)) made[key] = kept.at(key);
}

void ScheduleRunner::forget_records() {
  if (record_) record_->forget();
  recorded_.reset();
}

at::Tensor ScheduleRunner::make_received(const Action& receive, std::int64_t tokens) {
  const ActionKind taker = receive.kind == ActionKind::recv_forward ? ActionKind::forward : ActionKind::backward;
  if (!is_recorded({.kind = taker, .stage = receive.stage})) return make_activation(tokens);
  at::Tensor& kept = recorded_->received[receive];
  if (!kept.defined()) kept = make_activation(tokens);
  return kept.detach();  // autograd adds to what it knows of a tensor
}

void ScheduleRunner::begin_gradient_step(Iteration& iteration, const IterationUpdate& update) {
  if (record_ && records_update_) {
    FROSTPIPE_CHECK(update.applied, "recorded updates are applied");
    IterationUpdate on_device = update;
    on_device.rule = record_->on_device(update.rule);
    if (record_->is_replayed())
      iteration.gradient_step.emplace(std::move(*recorded_->gradient_step));
    else
      iteration.gradient_step.emplace(phase_, rank_, iteration.parts, on_device);
  } else {
    iteration.gradient_step.emplace(phase_, rank_, iteration.parts, update);
  }
}

}  // namespace frostpipe
