#include <fmt/format.h>

#include <algorithm>

#include "executor/data_shards.h"
#include "executor/job/hash.h"
#include "executor/job/seats.h"
#include "executor/job/sever_connections.h"
#include "executor/layer_images.h"
#include "executor/training_run.h"
#include "plan/memory.h"
#include "profiles/error.h"
#include "profiles/files.h"

namespace frostpipe {
namespace {

constexpr const char* kRuleNames[] = {"plan", "paper", "cap", "fixed", "adaptive"};

std::string rule_name(const TrainOptions& options) { return kRuleNames[static_cast<int>(options.freeze.rule)]; }

std::filesystem::path checkpoints_of(const TrainOptions& options) { return options.output / "checkpoints"; }

std::string fingerprint_of(const Dataset& dataset) {
  StreamHash hash;
  const auto add = [&hash](const auto& values) { hash.add(std::as_bytes(std::span(values))); };
  for (const std::vector<std::int32_t>& ids : dataset.encoded.token_ids) {
    add(ids);
    add(std::vector<std::int32_t>{-1});
  }
  add(dataset.encoded.labels);
  add(dataset.split.train);
  add(dataset.split.test);
  return fmt::format("{:016x}", hash.value());
}

/// Index of the phase that `step` belongs to.
std::size_t phase_index(const std::vector<Phase>& phases, int step) {
  std::size_t index = 0;
  while (index + 1 < phases.size() && phases[index + 1].from_step <= step) ++index;
  return index;
}

}  // namespace

void TrainingRun::join(const Formation& formation) {
  formation_ = formation;
  const RankEnvironment& self = formation.self;
  if (formation.generation == 0 && self.world_size != options_.plan.world_size) {
    throw InvalidInput(options_.plan_source + ": world_size", fmt::format("must equal the number of ranks started ({})", self.world_size), std::to_string(options_.plan.world_size));
  }
  const int seat = formation.seats[self.rank];
  communicator_ = Communicator::connect(self, *device_);
  if (options_.emulation && options_.emulation->links) communicator_->pace(remaining(*options_.cluster, formation.seats), options_.emulation->shrink);
  nodes_ = nodes_of_ranks(*communicator_, options_.num_nodes);
  if (num_shards_ == 0) {
    num_shards_ = options_.num_nodes > 0 ? options_.num_nodes : *std::max_element(nodes_.begin(), nodes_.end()) + 1;
    shards_ = data_shards(dataset_.split.train, num_shards_);
  }
  if (options_.plan.memory_limited && options_.cluster && seat < static_cast<int>(options_.cluster->devices.size())) {
    device_->set_memory_limit(options_.cluster->devices[seat].memory_limit_bytes, fmt::format("rank {}", self.rank));
  }
  const at::TensorOptions compute = at::TensorOptions().dtype(scalar_type_of(options_.plan.dtype)).device(device_->torch_device());
  recorder_.join(*communicator_, formation.seats);
  open_cache(compute);
  factory_ = subject_->make_factory(compute, cache_ ? &cache_->view() : nullptr, seat);
  session_.emplace(model_, *factory_, *communicator_, *device_, options_.plan.optimizer, options_.plan.dtype);
  keeper_.emplace(options_.checkpoints, checkpoints_of(options_), std::to_string(formation.generation), *communicator_, callbacks_.note);
}

void TrainingRun::open_cache(const at::TensorOptions& compute) {
  CacheLimits limits = options_.plan.cache;
  if (options_.emulation) {
    limits.memory_bytes /= options_.emulation->shrink;
    limits.disk_bytes /= options_.emulation->shrink;
  }
  const bool decides_later = options_.freeze.rule != FreezePolicy::Rule::plan;
  const auto caches = [](const Phase& phase) { return phase.cache.on; };
  const bool planned = std::any_of(options_.plan.phases.begin(), options_.plan.phases.end(), caches);
  if (limits.memory_bytes + limits.disk_bytes == 0 || !(planned || decides_later)) return;
  const int node = std::min(nodes_[communicator_->rank()], num_shards_ - 1);
  cache_ = std::make_unique<NodeCache>(NodeCacheOptions{.limits = limits,
                                                        .disk_folder = options_.cache_folder,
                                                        .node = node,
                                                        .samples = shards_[node],
                                                        .hidden_size = subject_->hidden_size(),
                                                        .compute = compute},
                                       dataset_.encoded, *communicator_, std::move(cache_));
  if (is_first() && !cache_->note().empty()) callbacks_.progress(0, "cache: " + cache_->note());
}

/// Gives up every connection of the forming, and keeps what is whole.
void TrainingRun::leave() {
  sever_connections();
  keeper_.reset();
  if (session_ && session_->has_phase()) {  // else: what was held before this forming still is
    holding_ = {};
    const int updates = session_->num_updates();
    known_phases_ = {seated(session_->phase(), formation_.seats, options_.plan.world_size)};
    for (const Phase& phase : upcoming_) known_phases_.push_back(seated(phase, formation_.seats, options_.plan.world_size));
    held_ = session_->release();
    if (held_) {
      holding_.step = updates;
      holding_.phase_from = known_phases_.front().from_step;
      holding_.num_recorded = recorder_.num_steps();
      for (const auto& [layer, state] : held_->layers) {
        holding_.layers.push_back(layer);
        if (state.trains()) holding_.trainable.push_back(layer);
      }
      for (const auto& [layer, moments] : held_->parked) holding_.parked.push_back(layer);
    }
  }
  session_.reset();
  factory_.reset();
  communicator_.reset();
}

RunSettings TrainingRun::settings() const {
  return {.model_fingerprint = fingerprint(model_),
          .data_fingerprint = fingerprint_of(dataset_),
          .data_shards = num_shards_,
          .seed = options_.seed,
          .global_batch_size = options_.plan.global_batch_size,
          .num_steps = num_steps_,
          .optimizer = options_.plan.optimizer,
          .dtype = options_.plan.dtype,
          .learning_rate = options_.learning_rate,
          .learning_rate_warm_up = options_.learning_rate_warm_up,
          .weight_decay = options_.weight_decay,
          .gradient_clip = options_.gradient_clip};
}

Checkpoint TrainingRun::beginning() const {
  Checkpoint moment{.step = 0, .settings = settings(), .plan_fingerprint = fingerprint(to_json(options_.plan)), .freeze_rule = rule_name(options_), .plan = options_.plan};
  moment.run.cache_note = cache_ ? cache_->note() : "";
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
  moment.run.wall_seconds = earlier_wall_seconds_ + static_cast<double>(steady_now_ns() - begin_ns_ - evaluation_ns_) * 1e-9;
  moment.run.evaluation_seconds = earlier_evaluation_seconds_ + static_cast<double>(evaluation_ns_) * 1e-9;
  recorder_.so_far(cache_ ? cache_->view().counts() : CacheCounts{}, moment.run, moment.plan);
  for (const Phase& next : upcoming_) moment.plan.phases.push_back(seated(next, formation_.seats, options_.plan.world_size));
  return moment;
}

Checkpoint TrainingRun::remembered(int step) {
  Checkpoint moment = beginning();
  moment.step = step;
  moment.freeze_state = controller_.state();
  add_watched(moment);
  moment.run = summary_;
  moment.run.wall_seconds = earlier_wall_seconds_ + static_cast<double>(steady_now_ns() - begin_ns_ - evaluation_ns_) * 1e-9;
  recorder_.history(step, cache_ ? cache_->view().counts() : CacheCounts{}, moment.run, moment.plan);
  for (const Phase& phase : known_phases_) {
    if (moment.plan.phases.empty() || moment.plan.phases.back().from_step < phase.from_step) moment.plan.phases.push_back(phase);
  }
  return moment;
}

std::optional<Checkpoint> TrainingRun::resumed() const {
  const std::filesystem::path root = checkpoints_of(options_);
  remove_unfinished_checkpoints(root);
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
    for (const std::string& reason : newest.passed_over) callbacks_.note(fmt::format("a checkpoint is passed over: {}", reason));
    found = std::move(newest.checkpoint);
    if (!found && options_.resume != "auto") throw InvalidInput("--resume", "must name a whole checkpoint, or a folder of such", from.string());
  }
  if (!found) return std::nullopt;
  if (const auto difference = first_difference(found->settings, settings())) {
    throw InvalidInput(fmt::format("{}: is of another run: {}. Continue it with the same options, or begin anew with --resume no", found->folder.string(), *difference));
  }
  return found;
}

void TrainingRun::begin() {
  const Nanoseconds connected = steady_now_ns();
  std::string folder;
  if (is_first()) {
    const std::optional<Checkpoint> found = resumed();
    folder = found ? found->folder.string() : "";
    const std::filesystem::path root = checkpoints_of(options_);
    if (!found || std::filesystem::absolute(found->folder.parent_path()) != std::filesystem::absolute(root)) {
      keep_newest_checkpoints(root, 0, -1);
    } else {
      remove_checkpoints_behind(root, found->step);
    }
    std::error_code none;
    std::filesystem::remove(options_.output / "summary.json", none);  // of the run before
  }
  folder = communicator_->broadcast(folder, 0);
  const Checkpoint moment = folder.empty() ? beginning() : read_checkpoint(folder);
  resume_from(moment, {.checkpoint = folder.empty() ? nullptr : &moment, .held = std::nullopt, .holdings = {}});
  communicator_->everyone().barrier();
  if (!folder.empty()) {
    summary_.recoveries.push_back({.step = step_, .lost_steps = 0, .world_size = communicator_->world_size(), .cause = "the run was interrupted and started again",
                                   .source = "checkpoint " + moment.folder.filename().string(), .restoring_ns = steady_now_ns() - connected});
    if (is_first()) callbacks_.note(fmt::format("goes on with step {} of {}, from {}", step_, num_steps_, folder));
  }
  summary_.start_seconds += static_cast<double>(steady_now_ns() - started_ns_) * 1e-9;
  begin_ns_ = steady_now_ns();
}

void TrainingRun::begin_again(const Formation& formation) {
  const Nanoseconds connected = steady_now_ns();
  const std::filesystem::path root = checkpoints_of(options_);
  if (!held_) holding_ = {};
  std::vector<Holding> holdings;
  for (const std::string& text : communicator_->gather(to_text(holding_))) holdings.push_back(holding_from_text(text));

  // The newest checkpoint: where the memory of the survivors is not enough, and for parked moments that went with a rank.
  std::string folder;
  if (is_first()) {
    NewestCheckpoint newest = newest_whole_checkpoint(root);
    for (const std::string& reason : newest.passed_over) callbacks_.note(fmt::format("a checkpoint is passed over: {}", reason));
    folder = newest.checkpoint ? newest.checkpoint->folder.string() : "";
  }
  folder = communicator_->broadcast(folder, 0);
  const Checkpoint stored = folder.empty() ? beginning() : read_checkpoint(folder);
  const Phase& stored_phase = stored.plan.phases[phase_index(stored.plan.phases, stored.step)];

  const auto source = std::find_if(holdings.begin(), holdings.end(), knows_the_run);
  const bool speaks = source != holdings.end() && source - holdings.begin() == communicator_->rank();
  std::optional<Checkpoint> memory;
  if (source != holdings.end()) {
    const int from = static_cast<int>(source - holdings.begin());
    memory = checkpoint_from_text(communicator_->broadcast(speaks ? to_text(remembered(source->step)) : "", from));
    const int frozen = memory->plan.phases[phase_index(memory->plan.phases, memory->step)].first_trainable_layer;
    std::vector<int> needs_parked;
    const int stored_frozen = folder.empty() ? 0 : stored_phase.first_trainable_layer;
    for (int layer = std::max(memory->plan.phases.front().first_trainable_layer, stored_frozen); layer < frozen; ++layer) needs_parked.push_back(layer);
    if (optimizer_moments(options_.plan.optimizer) == 0) needs_parked.clear();
    if (!common_step(holdings, static_cast<int>(model_.layers.size()), needs_parked)) memory.reset();
  }
  int furthest = 0;
  for (const Holding& holding : holdings) furthest = std::max(furthest, holding.trainable.empty() ? 0 : holding.step);

  const Checkpoint& moment = memory ? *memory : stored;
  // Rows by rank: what this one had spent on the steps that are lost.
  std::vector<double> spent(communicator_->world_size(), 0.0);
  spent[communicator_->rank()] = static_cast<double>(recorder_.time_since(moment.step));
  spent = communicator_->sum(std::move(spent));
  Recovery recovery{.step = moment.step,
                    .lost_steps = std::max(0, furthest - moment.step),
                    .world_size = communicator_->world_size(),
                    .cause = formation.cause,
                    .source = memory ? "the survivors' memory" : folder.empty() ? "the beginning" : "checkpoint " + stored.folder.filename().string(),
                    .detection_ns = formation.noticed_ns - formation.lost_ns,
                    .forming_ns = std::max<Nanoseconds>(0, connected - formation.noticed_ns),
                    .lost_work_ns = static_cast<Nanoseconds>(*std::max_element(spent.begin(), spent.end()))};
  if (recovery.lost_steps == 0) recovery.lost_work_ns = 0;
  if (is_first()) remove_checkpoints_behind(root, moment.step);
  // Whoever survived knows of earlier recoveries that a checkpoint does not.
  const std::vector<std::string> known = communicator_->gather(std::to_string(summary_.recoveries.size()));
  const auto most = std::max_element(known.begin(), known.end(), [](const std::string& a, const std::string& b) { return std::stoul(a) < std::stoul(b); });
  Checkpoint carrier = beginning();
  carrier.run.recoveries = summary_.recoveries;
  carrier = checkpoint_from_text(communicator_->broadcast(to_text(carrier), static_cast<int>(most - known.begin())));

  LayerSource layers{.checkpoint = memory || folder.empty() ? nullptr : &stored, .held = std::nullopt, .holdings = {}};
  if (memory) {
    layers.held = std::move(held_);
    layers.holdings = holdings;
  }
  resume_from(moment, std::move(layers));
  if (memory && !folder.empty()) adopt_parked(stored, stored_phase.first_trainable_layer);
  held_.reset();
  communicator_->everyone().barrier();
  recovery.restoring_ns = steady_now_ns() - connected;
  summary_.recoveries = std::move(carrier.run.recoveries);
  summary_.recoveries.push_back(recovery);
  if (begin_ns_ == 0) {
    earlier_wall_seconds_ = moment.run.wall_seconds;
    earlier_evaluation_seconds_ = moment.run.evaluation_seconds;
    begin_ns_ = steady_now_ns();
  }
  last_step_end_ns_ = steady_now_ns();
  if (is_first()) callbacks_.note(describe_recovery(recovery));
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
  summary_ = moment.run;
  recorder_.restore(moment.run, moment.plan);
  controller_ = FreezeController(options_.freeze, num_blocks(model_), num_steps_);
  if (moment.freeze_rule == rule_name(options_) && !moment.freeze_state.empty()) controller_.restore(moment.freeze_state, place);
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
  if (!source.holdings.empty()) {
    session_->start_with(phase, step_, source.held ? std::move(*source.held) : HeldLayers{}, moves_to_restore(source.holdings, phase));
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
  const Phase& was = moment.plan.phases[phase_index(moment.plan.phases, moment.step)];
  const bool same = moment.plan_fingerprint == fingerprint(to_json(options_.plan)) && moment.freeze_rule == rule_name(options_);
  std::vector<Phase> phases;
  if (same || options_.freeze.rule == FreezePolicy::Rule::plan) {
    const std::vector<Phase>& all = same ? moment.plan.phases : options_.plan.phases;
    phases.assign(all.begin() + static_cast<std::ptrdiff_t>(phase_index(all, moment.step)), all.end());
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
  std::string text;
  if (is_first()) {
    ReplanRequest request{.current = lost, .first_trainable_layer = lost.first_trainable_layer, .from_step = step, .seats = formation_.seats, .layout_is_lost = true};
    if (options_.freeze.rule == FreezePolicy::Rule::plan) {
      request.forecast.emplace();
      for (const Phase& phase : later) request.forecast->push_back({phase.from_step, frozen_blocks(model_, phase.first_trainable_layer)});
    }
    ReplanAnswer answer = callbacks_.recover(request);
    if (answer.phases.empty()) throw RuntimeFailure(fmt::format("no layout for the {} ranks that are left: {}", formation_.seats.size(), answer.explanation));
    TrainingPlan carrier = options_.plan;
    for (Phase& phase : answer.phases) phase.from_step -= step;
    carrier.phases = std::move(answer.phases);
    text = to_json(carrier);
  }
  std::vector<Phase> phases = plan_from_json(communicator_->broadcast(text, 0), "decision of rank 0").phases;
  for (Phase& phase : phases) phase.from_step += step;
  return phases;
}

std::string TrainingRun::describe_recovery(const Recovery& recovery) const {
  const Phase& phase = session_->phase();
  const std::string lost =
      recovery.lost_steps == 0 ? "no step lost" : fmt::format("{} step{} ({}) to do again", recovery.lost_steps, recovery.lost_steps == 1 ? "" : "s", format_duration(recovery.lost_work_ns));
  return fmt::format("goes on with step {} on {} rank{} ({} x {}), from {}: {}; noticed after {}, formed anew in {}, restored in {}", recovery.step, recovery.world_size,
                     recovery.world_size == 1 ? "" : "s", phase.layout.pipeline_parallel_size, phase.layout.data_parallel_size, recovery.source, lost, format_duration(recovery.detection_ns),
                     format_duration(recovery.forming_ns), format_duration(recovery.restoring_ns));
}

}  // namespace frostpipe
