#include "executor/training/policy/accuracy_gate.h"

namespace frostpipe {

bool AccuracyGate::needs_baseline(const Phase& current, const Phase& next) const {
  return tolerance_ && !baseline_ && next.first_trainable_layer > current.first_trainable_layer;
}

void AccuracyGate::open(const Baseline& baseline) {
  if (tolerance_) baseline_ = baseline;
}

AccuracyGate::Verdict AccuracyGate::judge(double accuracy) const {
  if (!baseline_) return Verdict::nothing_to_judge;
  return accuracy >= baseline_->accuracy - *tolerance_ ? Verdict::confirmed : Verdict::too_low;
}

void delay_changes(TrainingPlan& plan, int back_to, int step) {
  for (Phase& phase : plan.phases) {
    if (phase.from_step >= back_to) phase.from_step += step - back_to;
  }
}

}  // namespace frostpipe
