// ScheduleRunner's iterations by CUDA graphs.
#include "base/error.h"
#include "executor/runtime/schedule_iteration.h"
#include "plan/stages.h"

namespace frostpipe {

bool ScheduleRunner::is_captured(const Action& action) const {
  if (!graphs_) return false;
  switch (action.kind) {
    case ActionKind::forward:
      return action.stage >= first_trainable_stage(phase_) ||
             (has_stage(action.stage + 1) && is_captured({.kind = action.kind, .stage = action.stage + 1}));
    case ActionKind::backward:
    case ActionKind::input_gradient:
    case ActionKind::weight_gradient:
      return true;
    case ActionKind::reduce_gradient:
    case ActionKind::optimizer_step:
      return captures_update_;
    default:
      return false;
  }
}

void ScheduleRunner::issue_captured(Iteration& iteration, const Action& action) {
  graphs_->run([&] { issue(iteration, action); });
  if (!action.micro_batch) return;
  const bool is_forward = action.kind == ActionKind::forward;
  const std::pair key(action.stage, part_of(action));
  StageTensors &made = is_forward ? iteration.outputs : iteration.input_gradients,
               &kept = is_forward ? graph_tensors_->outputs : graph_tensors_->input_gradients;
  if (graphs_->captures() && made.contains(key)) kept[key] = made.at(key);
  if (!graphs_->replays()) return;
  (is_forward ? iteration.inputs : iteration.output_gradients).erase(key);  // read in place
  if (kept.contains(key)) made[key] = kept.at(key);
}

void ScheduleRunner::reset_graphs() {
  if (graphs_) graphs_->reset();
  graph_tensors_.reset();
}

at::Tensor ScheduleRunner::make_received(const Action& receive, std::int64_t tokens) {
  const ActionKind taker = receive.kind == ActionKind::recv_forward ? ActionKind::forward : ActionKind::backward;
  if (!is_captured({.kind = taker, .stage = receive.stage})) return make_activation(tokens);
  at::Tensor& kept = graph_tensors_->received[receive];
  if (!kept.defined()) kept = make_activation(tokens);
  return kept.detach();  // detached, since autograd marks tensors that it uses
}

void ScheduleRunner::begin_gradient_step(Iteration& iteration, const IterationUpdate& update) {
  if (graphs_ && captures_update_) {
    FROSTPIPE_CHECK(update.applied, "captured updates are applied");
    IterationUpdate on_device = update;
    on_device.rule = graphs_->on_device(update.rule);
    if (graphs_->replays())
      iteration.gradient_step.emplace(std::move(*graph_tensors_->gradient_step));
    else
      iteration.gradient_step.emplace(phase_, rank_, iteration.parts, on_device);
  } else {
    iteration.gradient_step.emplace(phase_, rank_, iteration.parts, update);
  }
}

}  // namespace frostpipe
