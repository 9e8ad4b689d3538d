#include "executor/training/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "executor/communication/store_rendezvous.h"
#include "executor/inputs/run_inputs.h"
#include "executor/training/evaluation/test_score.h"
#include "executor/training/policy/learning_rate.h"
#include "executor/training/policy/resume_point.h"
#include "executor/training/run_results.h"

namespace frostpipe {
namespace {

std::string at_step(int done) { return fmt::format(" at step {}", done); }

}  // namespace

Trainer::Trainer(Membership& membership, StoreRendezvous* store_rendezvous, const RendezvousInfo& first,
                 const TrainOptions& options, const InputsFound& inputs, const TrainCallbacks& callbacks)
    : membership_(membership),
      rendezvous_(store_rendezvous ? static_cast<Rendezvous&>(*store_rendezvous) : membership),
      run_(options, callbacks, inputs, first),
      scalars_(options.output),
      round_(run_, store_rendezvous),
      state_(run_),
      recovery_(run_, round_, state_) {}

void Trainer::train(RendezvousInfo first) {
  std::optional<RendezvousInfo> info = std::move(first);
  while (info) {
    try {
      return run_round(*info);
    } catch (const PeerLost&) {
      if (!rendezvous_.may_rendezvous_again()) throw;
    }
    leave();
    rendezvous_.stop(info->generation);
    info.reset();  // closes the round's sockets
    info = rendezvous_.next_round();
  }
}

void Trainer::run_round(const RendezvousInfo& info) {
  join(info);
  info.generation == 0 ? recovery_.start(scalars_) : recovery_.recover(info, scalars_);
  membership_.begun(recovery_.origin());
  catch_up_on_evaluation();
  catch_up_on_baseline();
  while (state_.step < run_.num_steps) {
    round_.checkpoints().report();
    const bool ends = membership_.is_to_end();
    if (ends && !has_begun_) return end_early();  // otherwise the step that has begun is finished first
    if (round_.checkpoints().is_due(state_.step)) write_checkpoint();
    change_phase_if_due();
    train_step(ends);
    ++state_.step;
    if (run_.is_tested_after(state_.step)) evaluate_and_judge();
  }
  finish();
}

void Trainer::join(const RendezvousInfo& info) {
  round_.connect(info);
  if (!batches_) {
    batches_.emplace(run_.options, run_.dataset, round_.num_nodes());
    state_.settings = settings_of(run_, batches_->num_shards());
    if (!info.self.watched_by_launcher && !info.self.is_on_one_host)
      require_equal_inputs(round_.communicator().gather(to_text(run_inputs(run_.options, state_.settings))));
  }
  round_.open(batches_->shards());
  state_.recorder.join(round_.communicator(), round_.logical_ranks());
  const std::string lacks = round_.cache() ? round_.cache()->note() : "";
  if (round_.is_first() && !lacks.empty() && lacks != state_.summary.cache_note)
    run_.callbacks.note(fmt::format("activation cache: {}; activations that it does not hold are computed", lacks));
}

/// Called after a loss: closes every connection of the round and keeps this rank's layers for the recovery. In a
/// rehearsal, host time counts from here to the end of the recovery.
void Trainer::leave() {
  if (VirtualClock* const clock = run_.device->virtual_clock()) clock->begin_host_time();
  has_begun_ = false;
  round_.close_connections();
  state_.undo_decision();
  recovery_.keep_layers();
  round_.close();
}

void Trainer::write_checkpoint() { round_.checkpoints().write(state_.snapshot(round_), round_.collect_layers()); }

void Trainer::change_phase_if_due() {
  state_.begin_decision();
  const std::optional<Phase> phase = state_.phases.next(state_.step, round_, state_.recorder, state_.summary.decisions);
  if (phase && state_.gate.needs_baseline(round_.session().phase(), *phase)) take_baseline(*phase);
  if (phase) state_.phases.begin_next();
  state_.end_decision();
  if (phase) enter(*phase);
}

/// Returns a text on the phase that runs from now on.
std::string Trainer::change_text(const Phase& phase) const {
  const int frozen = frozen_blocks(run_.model, phase.first_trainable_layer);
  const auto plural = [](int count, const char* word) {
    return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
  };
  const ParallelLayout& layout = phase.layout;
  if (!phase.operator_plan.empty())
    return fmt::format("{} frozen, {}", plural(frozen, "layer"), plural(layout.data_parallel_size, "device"));
  const std::string tensor_ranks = layout.tensor_parallel_size == 1
                                       ? ""
                                       : fmt::format(" x {} tensor ranks{}", layout.tensor_parallel_size,
                                                     layout.sequence_parallel ? " with split tokens" : "");
  const std::string cache = phase.cache.on
                                ? fmt::format(", cache: {:.0f} % hits expected",
                                              100 * fraction_at(phase.cache.found, phase.first_trainable_layer))
                                : "";
  return fmt::format("{} frozen, {} x {}{}, m = {}{}", plural(frozen, "block"),
                     plural(layout.pipeline_parallel_size, "stage"), plural(layout.data_parallel_size, "replica"),
                     tensor_ranks, phase.num_micro_batches, cache);
}

void Trainer::enter(const Phase& phase) {
  const Nanoseconds begin = run_.device->now_ns();
  state_.recorder.end_steps();
  VirtualClock* const clock = run_.device->virtual_clock();
  if (clock) clock->begin_host_time();
  round_.session().enter(phase);
  if (phase.first_trainable_layer > 0) state_.embeddings_are_tied = false;
  round_.set_cache_boundary();
  if (clock) clock->end_host_time();
  round_.communicator().control_group().barrier();
  const Nanoseconds end = run_.device->now_ns();
  state_.recorder.record_event("transformation", begin, end);
  state_.recorder.begin_phase(phase, end - begin, round_.cache_counts());
  if (round_.is_first())
    run_.callbacks.progress(run_.fraction(state_.step), fmt::format("step {}: {} (changed in {})", state_.step,
                                                                    change_text(phase), format_duration(end - begin)));
  state_.clock.restart_step(run_.device->now_ns());
}

/// True if the next step must not begin within this one, because an evaluation or a change of phase cannot happen
/// during a step. A checkpoint can be written then, since a step that has begun has not changed weights.
bool Trainer::drains_pipeline(bool is_last) const {
  const int next = state_.step + 1;
  return is_last || next == run_.num_steps || run_.is_tested_after(next) || state_.phases.changes_at(next);
}

void Trainer::train_step(bool is_last) {
  const int step = state_.step;
  state_.clock.begin_step(run_.device->now_ns());
  const MiniBatch batch = batches_->at(step);
  const int tokens = mean_length(batch);
  const std::optional<MiniBatch> next =
      step + 1 < run_.num_steps ? std::optional(batches_->at(step + 1)) : std::nullopt;
  const UpdateRule rule{.optimizer = run_.options.plan.optimizer,
                        .learning_rate = learning_rate_at(run_.options, step, run_.num_steps),
                        .weight_decay = run_.options.weight_decay,
                        .step = step + 1};
  const bool drains = drains_pipeline(is_last);
  has_begun_ = weight_delay(round_.session().phase()) > 0 && !drains;
  const IterationResult result = round_.session().run_iteration(
      batch, next ? &*next : nullptr, step, {.rule = rule, .gradient_clip = run_.options.gradient_clip},
      state_.recorder.trace(), drains);
  state_.phases.record(result.block_square_sums);
  record_step({.step = step,
               .loss = result.loss,
               .learning_rate = rule.learning_rate,
               .samples = static_cast<int>(batch.samples.size()),
               .tokens = tokens,
               .iteration_ns = state_.clock.end_step(run_.device->now_ns())});
  recent_loss_ += result.loss;
  ++recent_steps_;
  if ((step + 1) % std::max(1, run_.num_steps / 40) == 0) report_progress();
}

void Trainer::record_step(const StepRecord& step) {
  const bool reports_figures = round_.session().reports_figures();
  const bool is_recorded = state_.recorder.record_step(step, reports_figures);
  if (!is_recorded && !std::exchange(has_noted_unrecorded_steps_, true)) {
    run_.callbacks.note(fmt::format(
        "{}: the figures of step {} cannot be written; the summary will lack those of such steps, and training goes on",
        (run_.options.output / "steps.jsonl").string(), step.step));
  }
  if (!reports_figures) return;
  const double took_ns = static_cast<double>(std::max<Nanoseconds>(1, step.iteration_ns));
  const int frozen = frozen_blocks(run_.model, round_.session().phase().first_trainable_layer);
  scalars_.write(step.step + 1, {{"loss", step.loss},
                                 {"learning_rate", step.learning_rate},
                                 {"samples_per_second", step.samples * 1e9 / took_ns},
                                 {"tokens", static_cast<double>(step.tokens)},
                                 {"frozen_blocks", static_cast<double>(frozen)}});
}

/// Reports progress on rank 0. The line shows the loss that a rank that trains has posted last, with its step if that
/// is an earlier one. No rank waits for it, so that ranks of frozen stages can run ahead.
void Trainer::report_progress() {
  const int done = state_.step + 1;
  if (round_.session().reports_figures() && !run_.options.emulation)
    round_.communicator().post(fmt::format(", loss {:.3f}{}", recent_loss_ / recent_steps_, at_step(done)));
  recent_loss_ = 0;
  recent_steps_ = 0;
  if (!round_.is_first()) return;
  std::string loss = round_.communicator().posted();
  if (loss.ends_with(at_step(done))) loss.resize(loss.size() - at_step(done).size());
  run_.callbacks.progress(run_.fraction(done), fmt::format("step {}/{}{}", done, run_.num_steps, loss));
}

/// Ends early at the launcher's request, with a checkpoint from which the next start resumes.
void Trainer::end_early() {
  round_.checkpoints().finish();
  write_checkpoint();
  round_.checkpoints().finish();
  if (round_.is_first()) {
    const bool is_written = std::filesystem::exists(round_.checkpoints().path_of(state_.step) / kCheckpointManifest);
    run_.callbacks.note(stopped_early(run_.options, state_.step, run_.num_steps, is_written));
  }
  round_.communicator().control_group().barrier();  // if a rank is lost before this, all ranks notice it
  membership_.interrupted();
}

void Trainer::finish() {
  round_.communicator().control_group().barrier();
  const double wall_seconds = state_.clock.wall_seconds(run_.device->now_ns());
  round_.checkpoints().finish();
  write_results(run_, round_, state_, wall_seconds);
  // If a rank is lost before this barrier, all ranks notice it and repeat finish().
  round_.communicator().control_group().barrier();
}

/// Returns whether the run was evaluated at this step. An evaluation during which a rank was lost is not recorded.
bool Trainer::is_evaluated() const {
  const std::vector<EvaluationRecord>& evaluations = state_.summary.evaluations;
  return state_.step == 0 || (!evaluations.empty() && evaluations.back().step >= state_.step);
}

/// Called at the beginning of a round: makes up for the evaluation at this step, or for the judgement of a freeze after
/// it, if the loss of a rank has prevented it.
void Trainer::catch_up_on_evaluation() {
  if (!run_.is_tested_after(state_.step)) return;
  if (!is_evaluated()) return evaluate_and_judge();
  if (state_.gate.is_to_judge_at(state_.step)) confirm_or_take_back_freeze(state_.summary.evaluations.back().accuracy);
}

void Trainer::evaluate_and_judge() {
  const int steps = state_.step;
  const double accuracy = evaluate();
  const std::string when = steps % run_.steps_per_epoch == 0 ? fmt::format("epoch {}", steps / run_.steps_per_epoch)
                                                             : fmt::format("step {}", steps);
  if (round_.is_first())
    run_.callbacks.progress(run_.fraction(steps), fmt::format("after {}: test {} {:.1f} %", when,
                                                              state_.summary.test_metric, 100 * accuracy));
  confirm_or_take_back_freeze(accuracy);
}

/// Evaluates the model on the test data, records the result in the summary, and returns the accuracy.
double Trainer::evaluate() {
  const Nanoseconds begin = run_.device->now_ns();
  const std::vector<int>& items = run_.dataset.test_by_length;
  const Score score = score_of(run_.dataset, items, round_.communicator().sum(round_.session().answers(items)));
  record_evaluation(score, run_.dataset, state_.step, state_.summary);
  if (round_.session().reports_figures()) {
    std::vector<NamedValue> values{{"test/" + score.metric, score.value}};
    for (const NamedValue& other : score.others) values.push_back({"test/" + other.name, other.value});
    scalars_.write(state_.step, values);
  }
  round_.communicator().control_group().barrier();
  const Nanoseconds end = run_.device->now_ns();
  state_.recorder.record_event("evaluation", begin, end);
  state_.clock.add_evaluation(begin, end);
  return score.value;
}

/// Called before a freeze that is watched: writes the checkpoint to go back to and records the accuracy to compare
/// with. A run that resumes from this checkpoint decides about the freeze again.
void Trainer::take_baseline(const Phase& next) {
  const std::vector<EvaluationRecord>& evaluations = state_.summary.evaluations;
  const bool is_known = !evaluations.empty() && evaluations.back().step == state_.step;
  const double accuracy = is_known ? evaluations.back().accuracy : evaluate();
  state_.gate.open({.step = state_.step, .accuracy = accuracy});
  round_.checkpoints().write_and_hold(state_.snapshot_before_decision(round_), round_.collect_layers());
  if (round_.is_first()) {
    const int frozen = frozen_blocks(run_.model, next.first_trainable_layer);
    run_.callbacks.progress(run_.fraction(state_.step),
                            fmt::format("step {}: before {} {}: test accuracy {:.1f} %", state_.step, frozen,
                                        frozen == 1 ? "block freezes" : "blocks freeze", 100 * accuracy));
  }
}

/// Called at the beginning of a round: takes the baseline of a freeze that begins at exactly this step. With a plan
/// that freezes, the recovery continues with the new phase, so change_phase_if_due() does not do it.
void Trainer::catch_up_on_baseline() {
  const Phase& phase = round_.session().phase();
  if (!state_.lacks_baseline(phase)) return;
  state_.begin_decision();
  take_baseline(phase);
  state_.end_decision();
}

/// Called after each evaluation: if a freeze is watched, confirms it or goes back to before it.
void Trainer::confirm_or_take_back_freeze(double accuracy) {
  CheckpointManager& checkpoints = round_.checkpoints();
  switch (state_.gate.judge(accuracy)) {
    case AccuracyGate::Verdict::nothing_to_judge:
      return;
    case AccuracyGate::Verdict::confirmed:
      state_.gate.close();
      checkpoints.release();
      return;
    case AccuracyGate::Verdict::too_low:
      break;
  }
  const AccuracyGate::Baseline baseline = *state_.gate.baseline();
  const int steps = state_.step;
  checkpoints.finish();
  const std::string defect = checkpoints.defect_of(baseline.step);
  state_.gate.close();
  const std::string what = fmt::format("step {}: test accuracy {:.1f} % after {:.1f} % before the freeze at step {}",
                                       steps, 100 * accuracy, 100 * baseline.accuracy, baseline.step);
  if (defect.empty()) {
    recovery_.take_back_freeze(baseline, what);
  } else {
    checkpoints.release();
  }
  if (!round_.is_first()) return;
  run_.callbacks.note(
      defect.empty()
          ? fmt::format("{}, more than the tolerance of {:.1f} %: the freeze is taken back, nothing freezes before "
                        "step {}",
                        what, 100 * *state_.gate.tolerance(), steps)
          : fmt::format("{}; the freeze cannot be taken back: {}", what, defect));
}

}  // namespace frostpipe
