#include "executor/training/training_state.h"

#include <algorithm>

#include "base/files.h"
#include "plan/reconfiguration.h"

namespace frostpipe {
namespace {

void add_baseline(const AccuracyGate& gate, Checkpoint& snapshot) {
  if (!gate.baseline()) return;
  snapshot.watched_step = gate.baseline()->step;
  snapshot.watched_accuracy = gate.baseline()->accuracy;
}

/// True if the last step before the snapshot was done in `phase`, or in one after which delayed updates continue.
bool was_taken_within(const Phase& phase, const Checkpoint& snapshot, const RendezvousRound& round) {
  if (snapshot.step == 0) return false;
  const std::optional<Phase> before =
      round.with_ranks(snapshot.plan.phases[phase_at(snapshot.plan, snapshot.step - 1)]);
  return before && keeps_weight_versions(*before, phase);
}

}  // namespace

RunSettings settings_of(const RunContext& run, int num_shards) {
  const TrainOptions& options = run.options;
  return {.model_fingerprint = fingerprint(run.model),
          .data_fingerprint = fingerprint(run.dataset),
          .data_shards = num_shards,
          .seed = options.seed,
          .global_batch_size = options.plan.global_batch_size,
          .num_steps = run.num_steps,
          .optimizer = options.plan.optimizer,
          .dtype = options.plan.dtype,
          .frozen_dtype = options.plan.frozen_dtype,
          .learning_rate = options.learning_rate,
          .learning_rate_warm_up = options.learning_rate_warm_up,
          .weight_decay = options.weight_decay,
          .gradient_clip = options.gradient_clip,
          .decay = options.decay,
          .dropout = options.dropout,
          .label_smoothing = options.label_smoothing,
          .group_by_length = options.group_by_length};
}

TrainingState::TrainingState(const RunContext& run)
    : run(run),
      recorder(*run.device, run.model, run.options.plan.world_size, run.options.output,
               run.training_task->traced_steps()),
      phases(run),
      gate(run.dataset.test_by_length.empty() ? std::nullopt : run.options.accuracy_tolerance) {}

Checkpoint TrainingState::beginning() const {
  return {.step = 0,
          .settings = settings,
          .plan_fingerprint = fingerprint(to_json(run.options.plan)),
          .freeze_rule = to_string(run.options.freeze.rule),
          .plan = run.options.plan};
}

Checkpoint TrainingState::snapshot(RendezvousRound& round, const PhaseSequence::State& to_come) {
  const WithoutVirtualTime on_the_host(round.communicator().control_group());
  Checkpoint snapshot = beginning();
  snapshot.step = step;
  // The state is that of the rank that reports figures, which has trained since the last decision.
  std::vector<double> freeze_state = to_come.freeze_rule;
  if (!round.session().reports_figures()) std::fill(freeze_state.begin(), freeze_state.end(), 0.0);
  snapshot.freeze_state = round.communicator().sum(std::move(freeze_state));
  snapshot.freeze_is_decided = to_come.asked_before == step;
  add_baseline(gate, snapshot);
  snapshot.run = summary;
  snapshot.run.wall_seconds = clock.wall_seconds(run.device->now_ns());
  snapshot.run.evaluation_seconds = clock.evaluation_seconds();
  recorder.so_far(round.cache_counts(), snapshot.run, snapshot.plan);
  // Includes the current phase even if none of its steps is done.
  std::vector<Phase>& executed = snapshot.plan.phases;
  const Phase& running = round.session().phase();
  if (executed.empty() || executed.back().from_step < running.from_step)
    executed.push_back(round.with_logical_ranks(running));
  for (const Phase& next : to_come.upcoming) executed.push_back(round.with_logical_ranks(next));
  return snapshot;
}

Checkpoint TrainingState::snapshot_before_decision(RendezvousRound& round) {
  Checkpoint before = snapshot(round, before_decision_->phases);
  before.run.decisions.resize(before_decision_->num_decisions);
  return before;
}

Checkpoint TrainingState::remembered(int at_step, const RendezvousRound& round,
                                     const std::vector<Phase>& known_phases) const {
  Checkpoint snapshot = beginning();
  snapshot.step = at_step;
  const PhaseSequence::State to_come = phases.state();
  snapshot.freeze_state = to_come.freeze_rule;
  snapshot.freeze_is_decided = to_come.asked_before == at_step;
  add_baseline(gate, snapshot);
  snapshot.run = summary;
  snapshot.run.wall_seconds = clock.wall_seconds(run.device->now_ns());
  snapshot.run.evaluation_seconds = clock.evaluation_seconds();
  recorder.history(at_step, round.cache_counts(), snapshot.run, snapshot.plan);
  std::vector<Phase>& executed = snapshot.plan.phases;
  for (const Phase& phase : known_phases) {
    if (executed.empty() || executed.back().from_step < phase.from_step) executed.push_back(phase);
  }
  return snapshot;
}

void TrainingState::undo_decision() {
  if (!before_decision_) return;
  phases.go_back(before_decision_->phases);
  summary.decisions.resize(before_decision_->num_decisions);
  gate = before_decision_->gate;  // if the plan freezes, lacks_baseline() is then true
  before_decision_.reset();
}

Phase TrainingState::restore(const Checkpoint& snapshot, RendezvousRound& round) {
  step = snapshot.step;
  std::vector<Recovery> recoveries = std::move(summary.recoveries);
  summary = snapshot.run;
  if (recoveries.size() > summary.recoveries.size())
    summary.recoveries = std::move(recoveries);  // recoveries really happened, even if their steps are undone
  if (round.cache() && !round.cache()->note().empty()) summary.cache_note = round.cache()->note();
  recorder.restore(snapshot.run, snapshot.plan, step);
  // Write the last step, because the rank that wrote figures may have been lost during it; for checkpoints of older
  // versions, all steps.
  if (round.is_first() && !snapshot.run.steps.empty()) recorder.log().write(snapshot.run.steps);
  summary.steps.clear();
  gate.close();
  if (snapshot.watched_step >= 0) gate.open({.step = snapshot.watched_step, .accuracy = snapshot.watched_accuracy});
  const Phase phase = phases.restore(snapshot, round);
  keeps_older_weights = was_taken_within(phase, snapshot, round);
  const auto trains_all = [](const PhaseSummary& past) { return past.first_trainable_layer == 0; };
  embeddings_are_tied = phase.first_trainable_layer == 0 &&
                        std::all_of(snapshot.run.phases.begin(), snapshot.run.phases.end(), trains_all);
  return phase;
}

bool TrainingState::lacks_baseline(const Phase& phase) const {
  if (step >= run.num_steps || summary.phases.empty()) return false;
  return gate.needs_baseline({.first_trainable_layer = summary.phases.back().first_trainable_layer}, phase);
}

}  // namespace frostpipe
