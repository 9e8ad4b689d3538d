#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "executor/elastic/seats.h"
#include "executor/models/layer_images.h"
#include "executor/training/training_run.h"
#include "plan/memory.h"
#include "profiles/error.h"
#include "profiles/files.h"
#include "profiles/hash.h"

namespace frostpipe {
namespace {

std::string fingerprint_of(const Dataset& dataset) {
  StreamHash hash;
  const auto add = [&hash](const auto& values) { hash.add(std::as_bytes(std::span(values))); };
  add(std::vector<std::uint64_t>{dataset.samples->fingerprint()});
  add(dataset.split.train);
  add(dataset.split.test);
  return fmt::format("{:016x}", hash.value());
}

}  // namespace

RunSettings TrainingRun::settings_now() const {
  return {.model_fingerprint = fingerprint(model_),
          .data_fingerprint = fingerprint_of(dataset_),
          .data_shards = num_shards_,
          .seed = options_.seed,
          .global_batch_size = options_.plan.global_batch_size,
          .num_steps = num_steps_,
          .optimizer = options_.plan.optimizer,
          .dtype = options_.plan.dtype,
          .frozen_dtype = options_.plan.frozen_dtype,
          .learning_rate = options_.learning_rate,
          .learning_rate_warm_up = options_.learning_rate_warm_up,
          .weight_decay = options_.weight_decay,
          .gradient_clip = options_.gradient_clip,
          .decay = options_.decay,
          .dropout = options_.dropout,
          .label_smoothing = options_.label_smoothing,
          .group_by_length = options_.group_by_length};
}

Checkpoint TrainingRun::beginning() const {
  Checkpoint moment{.step = 0,
                    .settings = settings_,
                    .plan_fingerprint = fingerprint(to_json(options_.plan)),
                    .freeze_rule = to_string(options_.freeze.rule),
                    .plan = options_.plan};
  return moment;
}

void TrainingRun::add_watched(Checkpoint& moment) const {
  if (!watched_) return;
  moment.watched_step = watched_->step;
  moment.watched_accuracy = watched_->accuracy;
}

Checkpoint TrainingRun::present(const std::vector<double>& freeze_state) {
  Checkpoint moment = beginning();
  moment.step = step_;
  // What the rank that speaks has: it has trained since the last decision.
  const Phase& phase = session_->phase();
  const int speaker = rank_of(phase.layout, phase.layout.pipeline_parallel_size - 1, 0);
  std::vector<double> state = freeze_state;
  if (communicator_->rank() != speaker) std::fill(state.begin(), state.end(), 0.0);
  moment.freeze_state = communicator_->sum(std::move(state));
  add_watched(moment);
  moment.run = summary_;
  moment.run.wall_seconds =
      earlier_wall_seconds_ + static_cast<double>(steady_now_ns() - begin_ns_ - evaluation_ns_) * 1e-9;
  moment.run.evaluation_seconds = earlier_evaluation_seconds_ + static_cast<double>(evaluation_ns_) * 1e-9;
  recorder_.so_far(cache_ ? cache_->view().counts() : CacheCounts{}, moment.run, moment.plan);
  // Also the running phase if no step of it is done.
  if (moment.plan.phases.empty() || moment.plan.phases.back().from_step < phase.from_step)
    moment.plan.phases.push_back(seated(phase, formation_.seats, options_.plan.world_size));
  for (const Phase& next : upcoming_)
    moment.plan.phases.push_back(seated(next, formation_.seats, options_.plan.world_size));
  return moment;
}

Checkpoint TrainingRun::remembered(int step) {
  Checkpoint moment = beginning();
  moment.step = step;
  moment.freeze_state = controller_.state();
  add_watched(moment);
  moment.run = summary_;
  moment.run.wall_seconds =
      earlier_wall_seconds_ + static_cast<double>(steady_now_ns() - begin_ns_ - evaluation_ns_) * 1e-9;
  recorder_.history(step, cache_ ? cache_->view().counts() : CacheCounts{}, moment.run, moment.plan);
  for (const Phase& phase : known_phases_) {
    if (moment.plan.phases.empty() || moment.plan.phases.back().from_step < phase.from_step)
      moment.plan.phases.push_back(phase);
  }
  return moment;
}

std::optional<Checkpoint> TrainingRun::resumed() const {
  const std::filesystem::path root = checkpoints_folder();
  remove_unfinished_checkpoints(root);
  for (const std::filesystem::path& folder : {options_.output, options_.output / "model"})
    remove_unfinished_files(folder);
  if (options_.resume == "no") return std::nullopt;
  std::optional<Checkpoint> found;
  std::filesystem::path from = options_.resume;
  if (options_.resume == "auto") {
    if (std::filesystem::exists(options_.output / "summary.json")) return std::nullopt;  // that run has ended
    from = root;
  }
  if (std::filesystem::exists(from / "checkpoint.json")) {
    found = read_checkpoint(from);
  } else {
    NewestCheckpoint newest = newest_whole_checkpoint(from);
    for (const std::string& reason : newest.passed_over)
      callbacks_.note(fmt::format("a checkpoint is passed over: {}", reason));
    found = std::move(newest.checkpoint);
    if (!found && options_.resume != "auto")
      throw InvalidInput("--resume", "must name a whole checkpoint, or a folder of such", from.string());
    if (!found && !newest.passed_over.empty()) {
      throw InvalidInput(
          fmt::format("{}: holds a run that has not ended, and no checkpoint of it is whole. Begin anew with --resume "
                      "no, which removes them",
                      from.string()));
    }
  }
  if (!found) return std::nullopt;
  if (const auto difference = first_difference(found->settings, settings_)) {
    throw InvalidInput(
        fmt::format("{}: is of another run: {}. Continue it with the same options, or begin anew with --resume no",
                    found->folder.string(), *difference));
  }
  return found;
}

/// Moments of frozen layers that no rank has any more.
void TrainingRun::adopt_parked(const Checkpoint& checkpoint, int first_trainable_layer) {
  const std::size_t num_layers = model_.layers.size();
  std::vector<double> parked(num_layers, 0.0);
  for (const auto& [layer, moments] : session_->parked()) parked[layer] = 1;
  parked = communicator_->sum(std::move(parked));
  for (int layer = 0; is_first() && layer < first_trainable_layer; ++layer) {
    if (parked[layer] > 0 || layer >= session_->phase().first_trainable_layer) continue;
    LayerState state = factory_->make_layer(layer, /*trains=*/false);
    restore_layer(checkpoint, layer, optimizer_moments(options_.plan.optimizer), state, session_->parked());
  }
}

void TrainingRun::resume_from(const Checkpoint& moment, LayerSource source) {
  const std::string place = moment.folder.empty() ? "survivor" : (moment.folder / "checkpoint.json").string();
  step_ = moment.step;
  std::vector<Recovery> recoveries = std::move(summary_.recoveries);
  summary_ = moment.run;
  if (recoveries.size() > summary_.recoveries.size())
    summary_.recoveries = std::move(recoveries);  // what is undone has been done all the same
  if (cache_ && !cache_->note().empty()) summary_.cache_note = cache_->note();
  recorder_.restore(moment.run, moment.plan, step_);
  // The last step, which whoever wrote the figures may have been lost in; of a checkpoint that older versions wrote,
  // all steps.
  if (is_first() && !moment.run.steps.empty()) recorder_.log().write(moment.run.steps);
  summary_.steps.clear();
  controller_ = FreezeController(options_.freeze, num_blocks(model_), num_steps_);
  if (moment.freeze_rule == to_string(options_.freeze.rule) && !moment.freeze_state.empty())
    controller_.restore(moment.freeze_state, place);
  watched_.reset();
  if (moment.watched_step >= 0 && options_.accuracy_tolerance) {
    watched_ = {.step = moment.watched_step, .accuracy = moment.watched_accuracy};
    keeper_->hold(moment.watched_step);
  }
  upcoming_ = phases_from(moment);
  Phase phase = upcoming_.front();
  upcoming_.erase(upcoming_.begin());
  phase.from_step = step_;
  keeper_->forget();
  if (cache_) cache_->forget_boundaries();
  is_tied_ = phase.first_trainable_layer == 0 &&
             std::all_of(moment.run.phases.begin(), moment.run.phases.end(),
                         [](const PhaseSummary& past) { return past.first_trainable_layer == 0; });
  session_->tie(is_tied_ ? model_.tied_parameter_count / (options_.emulation ? options_.emulation->shrink : 1) : 0);
  if (!source.holdings.empty()) {
    session_->start_with(phase, step_, source.held ? std::move(*source.held) : HeldLayers{},
                         moves_to_restore(source.holdings, phase));
  } else {
    const int num_moments = optimizer_moments(options_.plan.optimizer);
    session_->start(phase, step_, [&](int layer, LayerState& state, std::map<int, ParkedMoments>& parked) {
      if (!source.checkpoint) return subject_->fill(layer, state);
      restore_layer(*source.checkpoint, layer, num_moments, state, parked);
    });
  }
  if (phase.cache.on) cache_->set_boundary(phase.first_trainable_layer, session_->layers(), session_->holders());
  recorder_.begin_phase(phase, 0, cache_ ? cache_->view().counts() : CacheCounts{});
  if (begin_ns_ == 0 && moment.step > 0) {
    earlier_wall_seconds_ = moment.run.wall_seconds;
    earlier_evaluation_seconds_ = moment.run.evaluation_seconds;
  }
}

/// The phase to go on with, and those to come.
std::vector<Phase> TrainingRun::phases_from(const Checkpoint& moment) {
  const Phase& was = moment.plan.phases[phase_at(moment.plan, moment.step)];
  const bool same = moment.plan_fingerprint == fingerprint(to_json(options_.plan)) &&
                    moment.freeze_rule == to_string(options_.freeze.rule);
  std::vector<Phase> phases;
  if (same || options_.freeze.rule == FreezePolicy::Rule::plan) {
    const TrainingPlan& plan = same ? moment.plan : options_.plan;
    phases.assign(plan.phases.begin() + phase_at(plan, moment.step), plan.phases.end());
  } else {
    phases = {options_.plan.phases.front()};
    phases.front().first_trainable_layer = was.first_trainable_layer;
  }
  std::vector<Phase> result;
  for (const Phase& phase : phases) {
    std::optional<Phase> here = ranked(phase, formation_.seats, options_.plan.world_size);
    if (!here) return planned_anew(phases.front(), {phases.begin() + 1, phases.end()}, moment.step);
    result.push_back(std::move(*here));
  }
  return result;
}

std::vector<Phase> TrainingRun::planned_anew(const Phase& lost, const std::vector<Phase>& later, int step) {
  std::vector<Phase> phases;
  if (is_first()) {
    ReplanRequest request{.current = lost,
                          .first_trainable_layer = lost.first_trainable_layer,
                          .from_step = step,
                          .seats = formation_.seats,
                          .layout_is_lost = true};
    if (options_.freeze.rule == FreezePolicy::Rule::plan) {
      request.forecast.emplace();
      for (const Phase& phase : later)
        request.forecast->push_back({phase.from_step, frozen_blocks(model_, phase.first_trainable_layer)});
    }
    ReplanAnswer answer = callbacks_.recover(request);
    if (answer.phases.empty())
      throw RuntimeFailure(
          fmt::format("no layout for the {} ranks that are left: {}", formation_.seats.size(), answer.explanation));
    phases = std::move(answer.phases);
  }
  return phases_of_first_rank(std::move(phases), step);
}

}  // namespace frostpipe
