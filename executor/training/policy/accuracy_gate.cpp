#include "executor/training/policy/accuracy_gate.h"

#include <algorithm>

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
  const auto freezes_too_early = [&](const Phase& before, const Phase& phase) {
    return phase.from_step >= back_to && phase.first_trainable_layer > before.first_trainable_layer;
  };
  const auto before = std::ranges::adjacent_find(plan.phases, freezes_too_early);
  if (before == plan.phases.end()) return;
  for (auto phase = before + 1; phase != plan.phases.end(); ++phase) phase->from_step += step - back_to;
}

}  // namespace frostpipe
