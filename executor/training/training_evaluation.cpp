#include <fmt/format.h>

#include <algorithm>

#include "executor/models/task.h"
#include "executor/training/evaluation/score.h"
#include "executor/training/training_run.h"
#include "plan/memory.h"

namespace frostpipe {

namespace {

constexpr int kMostSamples = 64;  // at a time

/// Tokens at a time, forward only, so that a memory limit holds in an evaluation too: those of the largest micro-batch.
/// What trains fits twice without its stash; frozen layers have none, and logits over a vocabulary are there in either
/// case.
std::int64_t tokens_at_a_time(const Phase& phase, int global_batch_size, Task task) {
  const bool twice = phase.first_trainable_layer == 0 && task != Task::causal_language_modeling;
  return (twice ? 2 : 1) * planned_micro_batch(phase, global_batch_size).all_tokens();
}

}  // namespace

/// Fills the summary's figures of the last evaluation, and returns the accuracy.
double TrainingRun::evaluate(int steps) {
  const Nanoseconds begin = steady_now_ns();
  const std::vector<int>& items = dataset_.test_by_length;
  std::vector<double> found(items.size() * static_cast<std::size_t>(answer_size(dataset_.task)),
                            0.0);  // known to one rank each
  if (StageRunner* const runner = session_->runner(); runner)
    found = runner->answers(*dataset_.samples, items, kMostSamples,
                            tokens_at_a_time(session_->phase(), options_.plan.global_batch_size, dataset_.task));
  found = communicator_->sum(std::move(found));
  Score score = score_of(dataset_, items, found);
  summary_.test_items = score.labels.empty() ? std::vector<int>{} : items;
  summary_.test_labels = std::move(score.labels);
  summary_.test_predictions = std::move(score.predictions);
  summary_.test_metric = score.metric;
  summary_.test_accuracy = score.value;
  summary_.test_accuracy_standard_error = score.standard_error;
  summary_.test_others = std::move(score.others);
  if (summary_.evaluations.empty() || summary_.evaluations.back().step != steps)
    summary_.evaluations.push_back({steps, summary_.test_accuracy});
  if (session_->speaks()) {
    std::vector<NamedValue> values{{"test/" + score.metric, score.value}};
    for (const NamedValue& other : summary_.test_others) values.push_back({"test/" + other.name, other.value});
    scalars_.write(steps, values);
  }
  communicator_->everyone().barrier();
  const Nanoseconds end = steady_now_ns();
  recorder_.record_event("evaluation", begin, end);
  evaluation_ns_ += end - begin;
  last_step_end_ns_ = end;
  return summary_.test_accuracy;
}

void TrainingRun::evaluate_after(int steps) {
  if (dataset_.test_by_length.empty()) return;
  const double accuracy = evaluate(steps);
  const std::string when =
      steps % steps_per_epoch_ == 0 ? fmt::format("epoch {}", steps / steps_per_epoch_) : fmt::format("step {}", steps);
  if (is_first())
    callbacks_.progress(static_cast<double>(steps) / num_steps_,
                        fmt::format("after {}: test {} {:.1f} %", when, summary_.test_metric, 100 * accuracy));
  check_accuracy(steps);
}

/// Before a freeze: the moment to go back to, and what it must not cost. Of several freezes between two evaluations the
/// first counts. `freeze_state` and `upcoming` are those before the decision: who goes on from the checkpoint decides
/// again.
void TrainingRun::watch_accuracy(const Phase& next, int step, const std::vector<double>& freeze_state,
                                 std::vector<Phase> upcoming) {
  if (watched_ || dataset_.test_by_length.empty()) return;
  const bool is_known = !summary_.evaluations.empty() && summary_.evaluations.back().step == step;
  watched_ = {.step = step, .accuracy = is_known ? summary_.evaluations.back().accuracy : evaluate(step)};
  std::swap(upcoming_, upcoming);
  keeper_->write_and_hold(present(freeze_state), *session_);
  std::swap(upcoming_, upcoming);
  if (is_first()) {
    callbacks_.progress(static_cast<double>(step) / num_steps_,
                        fmt::format("step {}: before {} layers freeze: test accuracy {:.1f} %", step,
                                    frozen_blocks(model_, next.first_trainable_layer), 100 * watched_->accuracy));
  }
}

/// Behind a freeze: keeps it, or takes it back.
void TrainingRun::check_accuracy(int steps) {
  if (!watched_) return;
  const Watched watched = *watched_;
  const double accuracy = summary_.test_accuracy;
  if (accuracy >= watched.accuracy - *options_.accuracy_tolerance) {
    watched_.reset();
    keeper_->release();
    return;
  }
  keeper_->finish();
  const std::filesystem::path root = checkpoints_folder();
  std::string problem;
  if (is_first()) {
    try {
      const Checkpoint checkpoint = read_checkpoint(checkpoint_path(root, watched.step));
      for (int layer = 0; layer < num_layers(checkpoint); ++layer) open_layer(checkpoint, layer);
    } catch (const std::exception& error) {
      problem = error.what();
    }
  }
  problem = communicator_->broadcast(problem, 0);
  watched_.reset();
  const std::string what = fmt::format("step {}: test accuracy {:.1f} % after {:.1f} % before the freeze at step {}",
                                       steps, 100 * accuracy, 100 * watched.accuracy, watched.step);
  if (!problem.empty()) {
    if (is_first()) callbacks_.note(fmt::format("{}; the freeze cannot be taken back: {}", what, problem));
    keeper_->release();
    return;
  }
  const Nanoseconds begin = steady_now_ns();
  Checkpoint checkpoint = read_checkpoint(checkpoint_path(root, watched.step));
  for (Phase& phase : checkpoint.plan.phases) {
    if (phase.from_step >= watched.step)
      phase.from_step += steps - watched.step;  // what the plan froze then, it freezes later
  }
  Recovery recovery{.step = watched.step,
                    .lost_steps = steps - watched.step,
                    .world_size = communicator_->world_size(),
                    .cause = what,
                    .source = "checkpoint " + checkpoint.folder.filename().string(),
                    .lost_work_ns = recorder_.time_since(watched.step)};
  if (is_first()) remove_checkpoints_behind(root, watched.step);
  session_->release();
  session_.emplace(model_, *factory_, *communicator_, *device_, options_.plan.optimizer, options_.plan.dtype);
  resume_from(checkpoint, {.checkpoint = &checkpoint, .held = std::nullopt, .holdings = {}});
  watched_.reset();
  controller_.slow_down(steps);
  keeper_->release();
  communicator_->everyone().barrier();
  recovery.restoring_ns = steady_now_ns() - begin;
  summary_.recoveries.push_back(recovery);
  last_step_end_ns_ = steady_now_ns();
  if (is_first())
    callbacks_.note(
        fmt::format("{}, more than the tolerance of {:.1f} %: the freeze is taken back, nothing freezes before step {}",
                    what, 100 * *options_.accuracy_tolerance, steps));
}

}  // namespace frostpipe
