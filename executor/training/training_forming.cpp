#include <fmt/format.h>

#include <algorithm>

#include "executor/communication/hosts.h"
#include "executor/data/data_shards.h"
#include "executor/elastic/seats.h"
#include "executor/training/training_run.h"
#include "plan/memory.h"
#include "profiles/error.h"

namespace frostpipe {

void TrainingRun::join(const Formation& formation) {
  formation_ = formation;
  const RankEnvironment& self = formation.self;
  if (formation.generation == 0 && self.world_size != options_.plan.world_size) {
    throw InvalidInput(options_.plan_source + ": world_size",
                       fmt::format("must equal the number of ranks started ({})", self.world_size),
                       std::to_string(options_.plan.world_size));
  }
  const int seat = formation.seats[self.rank];
  communicator_ = Communicator::connect(self, *device_);
  if (formation.generation == 0 && is_first() && communicator_->talks_through_host())
    callbacks_.note("ranks share a GPU: what they send each other goes through host memory");
  if (options_.emulation && options_.emulation->links)
    communicator_->pace(remaining(*options_.cluster, formation.seats), options_.emulation->shrink);
  nodes_ = options_.num_nodes > 0 ? nodes_of_seats(formation.seats, options_.plan.world_size, options_.num_nodes)
                                  : hosts_of_ranks(*communicator_);
  if (num_shards_ == 0) {
    num_shards_ = options_.num_nodes > 0 ? options_.num_nodes : *std::max_element(nodes_.begin(), nodes_.end()) + 1;
    shards_ = data_shards(dataset_.split.train, num_shards_);
    settings_ = settings_now();
  }
  if (options_.plan.memory_limited && options_.cluster && seat < static_cast<int>(options_.cluster->devices.size())) {
    device_->set_memory_limit(options_.cluster->devices[seat].memory_limit_bytes, fmt::format("rank {}", self.rank));
  }
  const at::TensorOptions compute =
      at::TensorOptions().dtype(layer_types_of(options_.plan.dtype).computed).device(device_->torch_device());
  recorder_.join(*communicator_, formation.seats);
  open_cache(compute);
  factory_ = subject_->make_factory(compute, cache_ ? &cache_->view() : nullptr, seat);
  session_.emplace(model_, *factory_, *communicator_, *device_, options_.plan.optimizer, options_.plan.dtype);
  keeper_ = std::make_unique<CheckpointKeeper>(options_.checkpoints, checkpoints_folder(), formation.generation,
                                               *communicator_, callbacks_.note, std::move(given_up_keeper_));
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
  const Samples& data = *dataset_.samples;
  std::vector<CacheableSample> samples(data.size());
  for (int sample = 0; sample < data.size(); ++sample)
    samples[sample] = {.tokens = data.tokens(sample), .key = data.key(sample)};
  cache_ = std::make_unique<NodeCache>(NodeCacheOptions{.limits = limits,
                                                        .disk_folder = options_.cache_folder,
                                                        .node = node,
                                                        .samples = shards_[node],
                                                        .hidden_size = subject_->hidden_size(),
                                                        .compute = compute},
                                       std::move(samples), *communicator_, std::move(cache_));
  const std::string& lacks = cache_->note();
  if (is_first() && !lacks.empty() && lacks != summary_.cache_note)
    callbacks_.note(fmt::format("activation cache: {}; what it does not hold is computed", lacks));
}

/// Gives up every connection of the forming, and keeps what is whole.
void TrainingRun::leave() {
  if (communicator_) communicator_->sever();
  if (keeper_) {
    keeper_->give_up();
    given_up_keeper_ = std::move(keeper_);
  }
  if (session_ && session_->has_phase()) {  // else: what was held before this forming still is
    holding_ = {};
    const int updates = session_->num_updates();
    known_phases_ = {seated(session_->phase(), formation_.seats, options_.plan.world_size)};
    for (const Phase& phase : upcoming_)
      known_phases_.push_back(seated(phase, formation_.seats, options_.plan.world_size));
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

void TrainingRun::begin() {
  const Nanoseconds connected = steady_now_ns();
  std::string folder;
  if (is_first()) {
    const std::optional<Checkpoint> found = resumed();
    folder = found ? found->folder.string() : "";
    const std::filesystem::path root = checkpoints_folder();
    if (!found) scalars_.begin_anew();
    if (!found || std::filesystem::absolute(found->folder.parent_path()) != std::filesystem::absolute(root)) {
      keep_newest_checkpoints(root, 0, -1);
      found ? recorder_.log().begin_with(std::filesystem::absolute(found->folder).parent_path().parent_path())
            : recorder_.log().begin_anew();
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
    summary_.recoveries.push_back({.step = step_,
                                   .lost_steps = 0,
                                   .world_size = communicator_->world_size(),
                                   .cause = "the run was interrupted and started again",
                                   .source = "checkpoint " + moment.folder.filename().string(),
                                   .restoring_ns = steady_now_ns() - connected});
    if (is_first()) callbacks_.note(fmt::format("goes on with step {} of {}, from {}", step_, num_steps_, folder));
  }
  summary_.start_seconds += static_cast<double>(steady_now_ns() - started_ns_) * 1e-9;
  begin_ns_ = steady_now_ns();
}

void TrainingRun::begin_again(const Formation& formation) {
  const Nanoseconds connected = steady_now_ns();
  const std::filesystem::path root = checkpoints_folder();
  if (!held_) holding_ = {};
  std::vector<Holding> holdings;
  for (const std::string& text : communicator_->gather(to_text(holding_))) holdings.push_back(holding_from_text(text));

  // The newest checkpoint: where the memory of the survivors is not enough, and for parked moments that went with a
  // rank.
  std::string folder;
  if (is_first()) {
    NewestCheckpoint newest = newest_whole_checkpoint(root);
    for (const std::string& reason : newest.passed_over)
      callbacks_.note(fmt::format("a checkpoint is passed over: {}", reason));
    folder = newest.checkpoint ? newest.checkpoint->folder.string() : "";
  }
  folder = communicator_->broadcast(folder, 0);
  const Checkpoint stored = folder.empty() ? beginning() : read_checkpoint(folder);
  const Phase& stored_phase = stored.plan.phases[phase_at(stored.plan, stored.step)];

  const auto source = std::find_if(holdings.begin(), holdings.end(), knows_the_run);
  const bool speaks = source != holdings.end() && source - holdings.begin() == communicator_->rank();
  std::optional<Checkpoint> memory;
  if (source != holdings.end()) {
    const int from = static_cast<int>(source - holdings.begin());
    memory = checkpoint_from_text(communicator_->broadcast(speaks ? to_text(remembered(source->step)) : "", from));
    const int frozen = memory->plan.phases[phase_at(memory->plan, memory->step)].first_trainable_layer;
    std::vector<int> needs_parked;
    const int stored_frozen = folder.empty() ? 0 : stored_phase.first_trainable_layer;
    for (int layer = std::max(memory->plan.phases.front().first_trainable_layer, stored_frozen); layer < frozen;
         ++layer)
      needs_parked.push_back(layer);
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
                    .source = memory           ? "the survivors' memory"
                              : folder.empty() ? "the beginning"
                                               : "checkpoint " + stored.folder.filename().string(),
                    .detection_ns = formation.noticed_ns - formation.lost_ns,
                    .forming_ns = std::max<Nanoseconds>(0, connected - formation.noticed_ns),
                    .lost_work_ns = static_cast<Nanoseconds>(*std::max_element(spent.begin(), spent.end()))};
  if (recovery.lost_steps == 0) recovery.lost_work_ns = 0;
  if (is_first()) remove_checkpoints_behind(root, moment.step);
  // Whoever survived knows of earlier recoveries that a checkpoint does not.
  for (const std::string& text : communicator_->gather(to_json(RunSummary{.recoveries = summary_.recoveries}))) {
    const RunSummary known = run_from_json(text, "survivor/run.json");
    if (known.recoveries.size() > summary_.recoveries.size()) summary_.recoveries = known.recoveries;
  }

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
  summary_.recoveries.push_back(recovery);
  if (begin_ns_ == 0) {
    earlier_wall_seconds_ = moment.run.wall_seconds;
    earlier_evaluation_seconds_ = moment.run.evaluation_seconds;
    begin_ns_ = steady_now_ns();
  }
  last_step_end_ns_ = steady_now_ns();
  if (is_first()) callbacks_.note(describe_recovery(recovery));
}

std::string TrainingRun::describe_recovery(const Recovery& recovery) const {
  const Phase& phase = session_->phase();
  const std::string lost = recovery.lost_steps == 0 ? "no step lost"
                                                    : fmt::format("{} step{} ({}) to do again", recovery.lost_steps,
                                                                  recovery.lost_steps == 1 ? "" : "s",
                                                                  format_duration(recovery.lost_work_ns));
  return fmt::format(
      "goes on with step {} on {} rank{} ({} x {}), from {}: {}; noticed after {}, formed anew in {}, restored in {}",
      recovery.step, recovery.world_size, recovery.world_size == 1 ? "" : "s", phase.layout.pipeline_parallel_size,
      phase.layout.data_parallel_size, recovery.source, lost, format_duration(recovery.detection_ns),
      format_duration(recovery.forming_ns), format_duration(recovery.restoring_ns));
}

}  // namespace frostpipe
