#include "executor/training/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numbers>
#include <utility>

#include "executor/data/data_shards.h"
#include "plan/run_length.h"
#include "profiles/error.h"
#include "profiles/files.h"
#include "profiles/hash.h"

namespace frostpipe {
namespace {

/// Linear warm-up over the first steps, then linear or cosine decay to 0 at the end; a function of the step alone, so
/// that no change of layout and no restart begins it anew.
double learning_rate_at(const TrainOptions& options, int step, int num_steps) {
  const int warm_up = std::max(1, static_cast<int>(std::ceil(options.learning_rate_warm_up * num_steps)));
  if (step < warm_up) return options.learning_rate * (step + 1) / warm_up;
  const double rest = static_cast<double>(num_steps - step) / std::max(1, num_steps - warm_up);
  return options.learning_rate * (options.decay == "cosine" ? (1 - std::cos(std::numbers::pi * rest)) / 2 : rest);
}

int threads_of_a_rank(const TrainOptions& options) {
  return options.threads_per_rank > 0 ? options.threads_per_rank : options.plan.threads_per_rank;
}

/// The same layout with more layers frozen; the cache holds what it held.
Phase with_more_frozen(Phase phase, int first_trainable_layer, int from_step) {
  phase.first_trainable_layer = first_trainable_layer;
  phase.from_step = from_step;
  return phase;
}

}  // namespace

Nanoseconds steady_now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

TrainingRun::TrainingRun(Membership& membership, const TrainOptions& options, const InputsFound& inputs,
                         const TrainCallbacks& callbacks)
    : membership_(membership),
      options_(options),
      callbacks_(callbacks),
      started_ns_(steady_now_ns() - inputs.reading_ns),
      subject_(inputs.subject),
      steps_per_epoch_(steps_per_epoch(static_cast<int>(dataset_.split.train.size()), options.plan.global_batch_size)),
      num_steps_(options.plan.num_steps),
      device_(options.emulation ? make_emulated_device(options.emulation->shrink)
                                : make_device(options.device, membership.local_rank(), threads_of_a_rank(options))),
      recorder_(*device_, model_, options.plan, options.plan.world_size, options.output),
      scalars_(options.output),
      controller_(options.freeze, num_blocks(model_), num_steps_) {}

void TrainingRun::train() {
  for (;;) {
    const std::optional<Formation> formation = membership_.form();
    if (!formation) return;
    try {
      return work(*formation);
    } catch (const PeerLost&) {
      if (!membership_.may_re_form()) throw;
    }
    leave();
    membership_.stop(formation->generation);
  }
}

void TrainingRun::work(const Formation& formation) {
  join(formation);
  formation.generation == 0 ? begin() : begin_again(formation);
  // A loss in the middle of an evaluation has lost the evaluation.
  const bool is_evaluated = step_ == 0 || (!summary_.evaluations.empty() && summary_.evaluations.back().step >= step_);
  if (is_tested_after(step_) && !is_evaluated) evaluate_after(step_);
  while (step_ < num_steps_) {
    keeper_->report();
    if (membership_.is_to_end()) return end_early();
    if (keeper_->is_due(step_)) keeper_->write(present(controller_.state()), *session_);
    change_phase_before(step_);
    run_step(step_);
    ++step_;
    if (is_tested_after(step_)) evaluate_after(step_);
  }
  finish();
}

std::span<const int> TrainingRun::order_of(int epoch) {
  while (!orders_.empty() && orders_.begin()->first < epoch - 1) orders_.erase(orders_.begin());
  const auto [found, is_new] = orders_.try_emplace(epoch);
  if (is_new)
    found->second = training_order(shards_, options_.plan.global_batch_size, options_.group_by_length, options_.seed,
                                   epoch, [this](int sample) { return dataset_.samples->tokens(sample); });
  return found->second;
}

MiniBatch TrainingRun::batch_of(int step) {
  MiniBatch batch = mini_batch(*dataset_.samples, order_of(step / steps_per_epoch_), options_.plan.global_batch_size,
                               step % steps_per_epoch_);
  batch.num_shards = num_shards_;
  batch.epoch = step / steps_per_epoch_;
  const std::array<std::uint64_t, 2> parts{options_.seed, static_cast<std::uint64_t>(step)};
  if (options_.dropout > 0)
    batch.dropout_seed = std::max<std::uint64_t>(1, hash_bytes(std::as_bytes(std::span(parts))));
  return batch;
}

/// What follows the current phase when the rule has frozen more; the same on all ranks.
std::vector<Phase> TrainingRun::phases_after_decision(int first_trainable_layer, int step) {
  const Nanoseconds measured_ns = recorder_.median_iteration_ns();
  std::string explanation;
  std::vector<Phase> phases;
  if (is_first()) {
    const Phase& current = session_->phase();
    if (callbacks_.replan) {
      ReplanAnswer answer = callbacks_.replan({.current = current,
                                               .first_trainable_layer = first_trainable_layer,
                                               .from_step = step,
                                               .measured_iteration_ns = measured_ns,
                                               .seats = formation_.seats});
      phases = std::move(answer.phases);
      explanation = std::move(answer.explanation);
    }
    if (phases.empty()) phases = {with_more_frozen(current, first_trainable_layer, step)};
  }
  explanation = communicator_->broadcast(explanation, 0);
  if (!explanation.empty())
    summary_.decisions.push_back({step, frozen_blocks(model_, first_trainable_layer), explanation});
  return phases_of_first_rank(std::move(phases), step);
}

/// Rank 0's, to all. They travel as a plan that starts with them: there is one format.
std::vector<Phase> TrainingRun::phases_of_first_rank(std::vector<Phase> phases, int from_step) {
  TrainingPlan carrier = options_.plan;
  carrier.phases = std::move(phases);
  for (Phase& phase : carrier.phases) phase.from_step -= from_step;
  phases = plan_from_json(communicator_->broadcast(is_first() ? to_json(carrier) : "", 0), "decision of rank 0").phases;
  for (Phase& phase : phases) phase.from_step += from_step;
  return phases;
}

/// The phase to run from `step` on, if another one begins there; the same on all ranks.
std::optional<Phase> TrainingRun::next_phase(int step) {
  if (options_.freeze.rule != FreezePolicy::Rule::plan) {
    const int frozen = frozen_blocks(model_, session_->phase().first_trainable_layer);
    if (controller_.decides_before(step, frozen)) {
      const int decided = controller_.decide(step, frozen, *communicator_);
      if (decided != frozen) upcoming_ = phases_after_decision(first_trainable_layer(model_, decided), step);
    }
  }
  if (upcoming_.empty() || upcoming_.front().from_step > step) return std::nullopt;
  return upcoming_.front();
}

void TrainingRun::change_phase_before(int step) {
  const std::vector<double> freeze_state = controller_.state();
  const std::vector<Phase> upcoming = upcoming_;
  const std::optional<Phase> phase = next_phase(step);
  if (!phase) return;
  if (phase->first_trainable_layer > session_->phase().first_trainable_layer && options_.accuracy_tolerance)
    watch_accuracy(*phase, step, freeze_state, upcoming);
  upcoming_.erase(upcoming_.begin());
  enter(*phase, step);
}

void TrainingRun::enter(const Phase& phase, int step) {
  const Nanoseconds begin = steady_now_ns();
  session_->enter(phase);
  if (phase.first_trainable_layer > 0) is_tied_ = false;
  if (phase.cache.on) cache_->set_boundary(phase.first_trainable_layer, session_->layers(), session_->holders());
  communicator_->everyone().barrier();
  const Nanoseconds end = steady_now_ns();
  recorder_.record_event("transformation", begin, end);
  recorder_.begin_phase(phase, end - begin, cache_ ? cache_->view().counts() : CacheCounts{});
  if (is_first()) {
    callbacks_.progress(
        static_cast<double>(step) / num_steps_,
        fmt::format("step {}: {} layers frozen, {} stage{} x {} replica{}, m = {}{} (changed in {})", step,
                    frozen_blocks(model_, phase.first_trainable_layer), phase.layout.pipeline_parallel_size,
                    phase.layout.pipeline_parallel_size == 1 ? "" : "s", phase.layout.data_parallel_size,
                    phase.layout.data_parallel_size == 1 ? "" : "s", phase.num_micro_batches,
                    phase.cache.on ? fmt::format(", cache: {:.0f} % hits expected",
                                                 100 * fraction_at(phase.cache.found, phase.first_trainable_layer))
                                   : "",
                    format_duration(end - begin)));
  }
  last_step_end_ns_ = steady_now_ns();
}

void TrainingRun::run_step(int step) {
  if (last_step_end_ns_ == 0) last_step_end_ns_ = steady_now_ns();
  const MiniBatch batch = batch_of(step);
  const int tokens = mean_length(batch);
  const std::optional<MiniBatch> next = step + 1 < num_steps_ ? std::optional(batch_of(step + 1)) : std::nullopt;
  const UpdateRule rule{.optimizer = options_.plan.optimizer,
                        .learning_rate = learning_rate_at(options_, step, num_steps_),
                        .weight_decay = options_.weight_decay,
                        .step = step + 1};
  IterationResult result;
  if (StageRunner* const runner = session_->runner()) {
    result =
        runner->run_iteration(batch, next ? &*next : nullptr, step, rule, options_.gradient_clip, recorder_.trace());
  }
  controller_.record(result.block_square_sums);
  const Nanoseconds end = steady_now_ns();
  const bool is_recorded = recorder_.record_step({.step = step,
                                                  .loss = result.loss,
                                                  .learning_rate = rule.learning_rate,
                                                  .samples = static_cast<int>(batch.samples.size()),
                                                  .tokens = tokens,
                                                  .iteration_ns = end - last_step_end_ns_},
                                                 session_->speaks());
  if (!is_recorded && !std::exchange(has_said_unrecorded_, true)) {
    callbacks_.note(fmt::format(
        "{}: the figures of step {} cannot be written; the summary will lack those of such steps, and training goes on",
        (options_.output / "steps.jsonl").string(), step));
  }
  if (session_->speaks()) {
    const Nanoseconds took = std::max<Nanoseconds>(1, end - last_step_end_ns_);
    scalars_.write(
        step + 1,
        {{"loss", result.loss},
         {"learning_rate", rule.learning_rate},
         {"samples_per_second", static_cast<double>(batch.samples.size()) * 1e9 / static_cast<double>(took)},
         {"tokens", static_cast<double>(tokens)},
         {"frozen_blocks", static_cast<double>(frozen_blocks(model_, session_->phase().first_trainable_layer))}});
  }
  last_step_end_ns_ = end;
  recent_loss_ += result.loss;
  ++recent_steps_;
  if ((step + 1) % std::max(1, num_steps_ / 40) == 0) report(step);
}

/// The loss is known where layers train, and shown as it was posted last. Nobody waits for it, so that ranks of frozen
/// stages go on running ahead.
void TrainingRun::report(int step) {
  if (session_->speaks() && !options_.emulation)
    communicator_->post(fmt::format(", loss {:.3f}", recent_loss_ / recent_steps_));
  recent_loss_ = 0;
  recent_steps_ = 0;
  if (is_first())
    callbacks_.progress(static_cast<double>(step + 1) / num_steps_,
                        fmt::format("step {}/{}{}", step + 1, num_steps_, communicator_->posted()));
}

/// As whoever started the run wants it: with a checkpoint, for the next start to go on from.
void TrainingRun::end_early() {
  keeper_->finish();
  keeper_->write(present(controller_.state()), *session_);
  keeper_->finish();
  if (is_first()) {
    const bool is_written = std::filesystem::exists(checkpoint_path(checkpoints_folder(), step_) / "checkpoint.json");
    const std::string how = fmt::format("the same command{} again goes on from step {}",
                                        options_.resume == "auto" ? "" : " with --resume auto", step_);
    callbacks_.note(fmt::format("stopped before step {} of {}: {}", step_, num_steps_,
                                is_written ? how : "its checkpoint is missing, see above"));
  }
  communicator_->everyone().barrier();  // whoever is lost before it is lost to all
  membership_.interrupted();
}

void TrainingRun::finish() {
  communicator_->everyone().barrier();
  const Nanoseconds wall = steady_now_ns() - begin_ns_ - evaluation_ns_;
  keeper_->finish();
  TrainingPlan executed = options_.plan;
  executed.num_steps = num_steps_;
  Trace whole_run;
  recorder_.finish(cache_ ? cache_->view().counts() : CacheCounts{}, summary_, executed, whole_run);
  for (const Phase& phase : executed.phases) {
    for (const int seat : phase.layout.placement) executed.world_size = std::max(executed.world_size, seat + 1);
    executed.world_size = std::max(executed.world_size, num_ranks(phase.layout));
  }
  for (Phase& phase : executed.phases) {
    if (static_cast<int>(phase.predicted.peak_memory_bytes.size()) != executed.world_size)
      phase.predicted.peak_memory_bytes.clear();
  }
  summary_.name = options_.name.empty() ? run_name(options_.plan.method) : options_.name;
  summary_.method = to_string(options_.plan.method);
  summary_.freeze = to_string(options_.freeze.rule);
  summary_.seed = options_.seed;
  summary_.world_size = executed.world_size;
  summary_.threads_per_rank = threads_of_a_rank(options_);
  summary_.epochs = static_cast<double>(num_steps_) / steps_per_epoch_;
  summary_.num_steps = num_steps_;
  summary_.global_batch_size = options_.plan.global_batch_size;
  summary_.num_train_samples = static_cast<int>(dataset_.split.train.size());
  summary_.num_test_samples = static_cast<int>(dataset_.split.test.size());
  summary_.wall_seconds = earlier_wall_seconds_ + static_cast<double>(wall) * 1e-9;
  const int begun = num_steps_ % steps_per_epoch_;  // of the last epoch, whose short mini-batch is its last
  const double samples = static_cast<double>(num_steps_ / steps_per_epoch_) * summary_.num_train_samples +
                         static_cast<double>(begun) * options_.plan.global_batch_size;
  summary_.samples_per_second = samples / summary_.wall_seconds;
  summary_.evaluation_seconds = earlier_evaluation_seconds_ + static_cast<double>(evaluation_ns_) * 1e-9;
  summary_.label_names = dataset_.label_names;
  if (is_first()) {  // what a first rank that was lost here has left
    for (const std::filesystem::path& folder : {options_.output, options_.output / "model"})
      remove_unfinished_files(folder);
  }
  subject_->save(is_tied_, session_->layers(), session_->holders(), *communicator_, options_.output / "model");
  if (is_first()) {
    write_file_atomically(options_.output / "executed_plan.json", to_json(executed));
    write_file_atomically(options_.output / "trace.json", to_chrome_trace(whole_run));
    write_file_atomically(options_.output / "summary.json", to_json(summary_));
  }
  communicator_->everyone().barrier();  // whoever is lost before it is lost to all, and the end is done again
}

}  // namespace frostpipe
