#include "executor/training/recovery_coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/models/layer_images.h"
#include "executor/training/checkpoints/checkpoint_layers.h"
#include "executor/training/pipeline_session.h"
#include "executor/training/policy/resume_point.h"
#include "executor/training/run_origin.h"
#include "plan/memory.h"
#include "plan/stages.h"

namespace frostpipe {
namespace {

/// Returns "2 x 1" for 2 stages and 1 replica, "2 x 1 x 2" with 2 tensor ranks, or "2 devices" for an operator plan.
std::string layout_text(const Phase& phase) {
  const ParallelLayout& layout = phase.layout;
  if (!phase.operator_plan.empty())
    return fmt::format("{} device{}", layout.data_parallel_size, layout.data_parallel_size == 1 ? "" : "s");
  return fmt::format("{} x {}{}", num_stages(phase), layout.data_parallel_size,
                     layout.tensor_parallel_size > 1 ? fmt::format(" x {}", layout.tensor_parallel_size) : "");
}

}  // namespace

void RecoveryCoordinator::start(const ScalarLog& scalars) {
  const Nanoseconds connected = steady_now_ns();
  Communicator& communicator = round_.communicator();
  const std::optional<Checkpoint> found = find_origin(run_, round_, state_, scalars);
  const Checkpoint snapshot = found ? *found : state_.beginning();
  if (found) keep_checkpoints_until(*found);
  restore_layers(state_.restore(snapshot, round_), snapshot,
                 {.checkpoint = found ? &*found : nullptr, .inventories = {}});
  communicator.control_group().barrier();
  // Virtual time starts now on all ranks; earlier delays are not part of the rehearsal.
  if (VirtualClock* const clock = run_.device->virtual_clock()) clock->synchronize();
  if (found) {
    state_.summary.recoveries.push_back({.step = state_.step,
                                         .lost_steps = 0,
                                         .world_size = communicator.world_size(),
                                         .cause = "the run was interrupted and started again",
                                         .source = "checkpoint " + snapshot.folder.filename().string(),
                                         .restoring_ns = steady_now_ns() - connected});
    if (round_.is_first())
      run_.callbacks.note(
          fmt::format("goes on with step {} of {}, from {}", state_.step, run_.num_steps, snapshot.folder.string()));
  }
  if (round_.is_first() && round_.lacks_ranks())
    run_.callbacks.note(fmt::format("{} of the plan's {} ranks {} present: re-planned for them ({})",
                                    communicator.world_size(), run_.options.plan.world_size,
                                    communicator.world_size() == 1 ? "is" : "are",
                                    layout_text(round_.session().phase())));
  begin_from(found);
  state_.clock.begin_loop(run_.device->now_ns());
}

void RecoveryCoordinator::begin_from(const std::optional<Checkpoint>& found) {
  origin_ = found ? found->folder.string() : "";
  state_.summary.start_seconds += static_cast<double>(steady_now_ns() - run_.started_ns) * 1e-9;
}

/// Returns whether the run has begun: whether a rank, which may be lost now, has completed start(). If not, the run
/// folder may hold another run.
bool RecoveryCoordinator::has_begun(const RendezvousInfo& info) {
  if (!origin_) origin_ = info.begun_from;
  for (const std::string& known : round_.communicator().gather(origin_ ? "from " + *origin_ : ""))
    if (!origin_ && !known.empty()) origin_ = known.substr(5);
  return origin_.has_value();
}

/// Called when the run continues from `stored`: removes later checkpoints of the run.
void RecoveryCoordinator::keep_checkpoints_until(const Checkpoint& stored) {
  const bool is_own = lies_in(checkpoints_folder(run_.options), stored.folder);
  is_own ? round_.checkpoints().set_completed(stored.step) : round_.checkpoints().remove_after(stored.step);
}

void RecoveryCoordinator::recover(const RendezvousInfo& info, const ScalarLog& scalars) {
  const Nanoseconds connected = steady_now_ns();
  VirtualClock* const clock = run_.device->virtual_clock();
  if (clock)
    clock->begin_host_time();  // for a spare, whose clock has had the time of the others only since it is connected;
                               // the host time of survivors has begun already
  Communicator& communicator = round_.communicator();
  const bool begins = !has_begun(info);
  if (begins) forget_layers();
  const std::vector<RankInventory> inventories = gather_inventories();
  const std::vector<SurvivorMemory> memories = memories_of(inventories);
  const auto find_whole = [&](const std::optional<Checkpoint>& stored) {
    return whole_memory(memories, stored, run_.num_layers(), optimizer_moments(run_.options.plan.optimizer));
  };
  // The newest checkpoint is needed if the survivors' memory is incomplete, and for offloaded moments that only a lost
  // rank had. If ranks may be on several hosts, these exchange their shares of it only if necessary.
  std::optional<Checkpoint> stored;
  if (begins)
    stored = find_origin(run_, round_, state_, scalars);
  else if (round_.is_watched_by_launcher() || !find_whole(std::nullopt))
    stored = newest_stored();
  const SurvivorMemory* const whole = find_whole(stored);
  const RestoreSource source = choose_restore_source(inventories, whole, stored);
  const bool from_memory = whole != nullptr;
  Checkpoint snapshot = from_memory ? whole->told : stored ? *stored : state_.beginning();
  if (from_memory) learn_peaks(snapshot.run);

  const Nanoseconds spent_ns = longest_time_since(snapshot.step);
  Recovery recovery{.step = snapshot.step,
                    .lost_steps = source.lost_steps,
                    .world_size = communicator.world_size(),
                    .cause = info.cause,
                    .source = to_string(source, stored),
                    .detection_ns = info.noticed_ns - info.lost_ns,
                    .rendezvous_ns = std::max<Nanoseconds>(0, connected - info.noticed_ns),
                    .lost_work_ns = source.lost_steps == 0 ? 0 : spent_ns};
  from_memory || !stored ? round_.checkpoints().remove_after(snapshot.step) : keep_checkpoints_until(snapshot);
  learn_recoveries();

  LayerSource layers{.checkpoint = from_memory || !stored ? nullptr : &*stored, .inventories = {}};
  if (from_memory) {
    layers.inventories = whole->inventories;
  } else {  // now: old and new layers would not fit together, and a further loss must not find the old ones
    forget_layers();
  }
  restore_layers(state_.restore(snapshot, round_), snapshot, std::move(layers));
  recovery.choice = state_.phases.choice_after_loss();
  if (from_memory && stored) adopt_offloaded(*stored);
  if (clock) clock->end_host_time();
  communicator.control_group().barrier();
  recovery.restoring_ns = steady_now_ns() - connected;
  state_.summary.recoveries.push_back(recovery);
  if (begins) begin_from(stored);
  if (!state_.clock.is_in_loop()) {
    state_.clock.continue_from(snapshot.run.wall_seconds, snapshot.run.evaluation_seconds);
    state_.clock.begin_loop(run_.device->now_ns());
  }
  state_.clock.restart_step(run_.device->now_ns());
  if (round_.is_first()) report(recovery);
}

/// Returns the inventories by rank, after completing updates in which the loss of a rank has left this rank without the
/// gradient norm.
std::vector<RankInventory> RecoveryCoordinator::gather_inventories() {
  if (!held_ && !inventory_.layers.empty()) inventory_ = {};
  std::vector<RankInventory> inventories;
  for (const std::string& text : round_.communicator().gather(to_text(inventory_)))
    inventories.push_back(inventory_from_text(text));
  if (const std::optional<double> norm = norm_of_next_step(inventories, inventory_))
    complete_update(*held_->interrupted, *norm, held_->layers);
  inventories = with_completed_steps(inventories);
  inventory_ = inventories[round_.communicator().rank()];
  return inventories;
}

/// Returns the run's newest intact checkpoint that rank 0 sees, after collecting the shares if ranks may be on several
/// hosts; else the one of another folder from which the run began; nothing if it began without one.
std::optional<Checkpoint> RecoveryCoordinator::newest_stored() {
  Communicator& communicator = round_.communicator();
  const std::filesystem::path root = checkpoints_folder(run_.options);
  if (!round_.is_watched_by_launcher()) bring_checkpoint_together(round_.checkpoint_folder(), root, communicator);
  std::string folder;
  if (round_.is_first()) {
    const NewestCheckpoint newest = newest_checkpoint(root, run_.callbacks.note);
    if (newest.checkpoint)
      folder = newest.checkpoint->folder.string();
    else if (!origin_->empty() && !lies_in(root, *origin_))
      folder = *origin_;
  }
  folder = communicator.broadcast(folder, 0);
  return folder.empty() ? std::nullopt : std::optional(read_checkpoint(folder));
}

/// Returns, on all ranks, a snapshot of the run from each rank in ranks_that_can_describe_run().
std::vector<SurvivorMemory> RecoveryCoordinator::memories_of(const std::vector<RankInventory>& inventories) {
  Communicator& communicator = round_.communicator();
  std::vector<SurvivorMemory> memories;
  for (const int reference : ranks_that_can_describe_run(inventories)) {
    std::string text;
    if (communicator.rank() == reference)
      text = to_text(state_.remembered(inventories[reference].step, round_, known_phases_));
    memories.push_back(
        memory_of(inventories, reference, checkpoint_from_text(communicator.broadcast(text, reference))));
  }
  return memories;
}

/// Returns the maximum over all ranks of the time spent on the steps from `step` on.
Nanoseconds RecoveryCoordinator::longest_time_since(int step) {
  Communicator& communicator = round_.communicator();
  std::vector<double> spent(communicator.world_size(), 0.0);
  spent[communicator.rank()] = static_cast<double>(state_.recorder.time_since(step));
  spent = communicator.sum(std::move(spent));
  return static_cast<Nanoseconds>(*std::max_element(spent.begin(), spent.end()));
}

/// Sets the memory peaks of all ranks in the phase that the loss has ended. The rank that described the run knows only
/// its own.
void RecoveryCoordinator::learn_peaks(RunSummary& run) {
  if (run.phases.empty()) return;
  PhaseSummary& last = run.phases.back();
  const std::vector<double> known = round_.communicator().sum(state_.recorder.own_peak_since(last.from_step));
  for (std::size_t rank = 0; rank < last.measured_peak_memory_bytes.size(); ++rank) {
    Bytes& peak = last.measured_peak_memory_bytes[rank];
    peak = std::max(peak, static_cast<Bytes>(known.at(rank)));
  }
}

/// Replaces the summary's recoveries by the longest list that any rank has, since a checkpoint may lack the latest
/// ones.
void RecoveryCoordinator::learn_recoveries() {
  std::vector<Recovery>& recoveries = state_.summary.recoveries;
  for (const std::string& text : round_.communicator().gather(to_json(RunSummary{.recoveries = recoveries}))) {
    RunSummary known = run_from_json(text, "survivor/run.json");
    if (known.recoveries.size() > recoveries.size()) recoveries = std::move(known.recoveries);
  }
}

void RecoveryCoordinator::take_back_freeze(const AccuracyGate::Baseline& baseline, const std::string& cause) {
  const Nanoseconds begin = steady_now_ns();
  const int steps = state_.step;
  Checkpoint checkpoint = read_checkpoint(round_.checkpoints().path_of(baseline.step));
  delay_changes(checkpoint.plan, baseline.step, steps);
  Recovery recovery{.step = baseline.step,
                    .lost_steps = steps - baseline.step,
                    .world_size = round_.communicator().world_size(),
                    .cause = cause,
                    .source = "checkpoint " + checkpoint.folder.filename().string(),
                    .lost_work_ns = state_.recorder.time_since(baseline.step)};
  round_.checkpoints().set_completed(baseline.step);
  round_.renew_session();
  const Phase phase = state_.restore(checkpoint, round_);
  // This precedes restore_layers(), so that a recovery from a loss during it has the slower freeze rule too.
  state_.gate.close();
  state_.phases.slow_down(steps);
  restore_layers(phase, checkpoint, {.checkpoint = &checkpoint, .inventories = {}});
  round_.checkpoints().release();
  round_.communicator().control_group().barrier();
  recovery.restoring_ns = steady_now_ns() - begin;
  state_.summary.recoveries.push_back(recovery);
  // Replaces the checkpoint of this step, from which a resumed run would freeze again at once.
  round_.checkpoints().write(state_.snapshot(round_), round_.collect_layers());
  state_.clock.restart_step(run_.device->now_ns());
}

void RecoveryCoordinator::keep_layers() {
  if (!round_.has_session() || !round_.session().has_phase())
    return;  // layers that were kept before this round stay kept
  TrainingSession& session = round_.session();
  inventory_ = {};
  known_phases_ = {round_.with_logical_ranks(session.phase())};
  const PhaseSequence::State to_come = state_.phases.state();
  for (const Phase& phase : to_come.upcoming) known_phases_.push_back(round_.with_logical_ranks(phase));
  PipelineSession* const pipeline = session.pipeline();
  if (!pipeline) {  // a net's session keeps no layers after a loss, but reports its step, to count lost steps
    inventory_ = {.step = state_.step, .num_recorded = -1, .trainable = {run_.num_layers() - 1}};
    return;
  }
  const int updates = pipeline->rank().num_updates();
  held_ = pipeline->rank().release();
  if (!held_) return;
  inventory_.step = updates;
  inventory_.phase_from = known_phases_.front().from_step;
  inventory_.num_recorded = state_.recorder.num_steps();
  inventory_.gradient_norm = held_->gradient_norm;
  inventory_.lacks_norm = held_->interrupted.has_value();
  for (const auto& [layer, state] : held_->layers) {
    inventory_.layers.push_back(layer);
    inventory_.slice = state.slice;
    if (state.trains()) inventory_.trainable.push_back(layer);
  }
  for (const auto& [layer, moments] : held_->offloaded)
    inventory_.offloaded.push_back({.layer = layer, .slice = moments.slice});
}

void RecoveryCoordinator::forget_layers() {
  held_.reset();
  inventory_ = {};
}

void RecoveryCoordinator::restore_layers(const Phase& phase, const Checkpoint& snapshot, LayerSource source) {
  if (const auto& baseline = state_.gate.baseline()) round_.checkpoints().hold(baseline->step);
  round_.checkpoints().start_over();
  if (round_.cache()) round_.cache()->forget_boundaries();
  start_session(phase, std::move(source));
  round_.set_cache_boundary();
  state_.recorder.begin_phase(phase, 0, round_.cache_counts());
  if (!state_.clock.is_in_loop() && snapshot.step > 0)
    state_.clock.continue_from(snapshot.run.wall_seconds, snapshot.run.evaluation_seconds);
}

void RecoveryCoordinator::start_session(const Phase& phase, LayerSource source) {
  if (!source.inventories.empty()) {
    const std::vector<TensorMove> moves = moves_to_restore(source.inventories, phase);
    // The layers are taken only now: until the session has them, a further loss must find them complete.
    HeldLayers held = take_held(source.inventories[round_.communicator().rank()]);
    round_.session().pipeline()->start_with(phase, state_.step, state_.embeddings_are_tied, std::move(held), moves);
    return;
  }
  round_.session().start(phase, state_.step,
                         {.checkpoint = source.checkpoint,
                          .embeddings_are_tied = state_.embeddings_are_tied,
                          .keeps_older_weights = state_.keeps_older_weights});
}

/// Returns the layers and moments that this rank has kept, without those that `fitting` does not list.
HeldLayers RecoveryCoordinator::take_held(const RankInventory& fitting) {
  HeldLayers held = std::exchange(held_, std::nullopt).value_or(HeldLayers{});
  std::erase_if(held.layers, [&](const auto& layer) { return std::ranges::count(fitting.layers, layer.first) == 0; });
  std::erase_if(held.offloaded, [&](const auto& moments) {
    return std::ranges::count(fitting.offloaded, moments.first, &OffloadedLayer::layer) == 0;
  });
  return held;
}

/// Reads, on rank 0, the offloaded moments of frozen layers that no rank has any more from the checkpoint.
void RecoveryCoordinator::adopt_offloaded(const Checkpoint& checkpoint) {
  PipelineSession& pipeline = *round_.session().pipeline();
  RankSession& session = pipeline.rank();
  const int first_trainable_layer =
      checkpoint.plan.phases[phase_at(checkpoint.plan, checkpoint.step)].first_trainable_layer;
  const std::vector<std::vector<LayerPart>> offloaded =
      offloaded_parts(session, run_.num_layers(), round_.communicator());
  for (int layer = 0; round_.is_first() && layer < first_trainable_layer; ++layer) {
    if (!whole_from(offloaded[layer]).empty() || layer >= session.phase().first_trainable_layer) continue;
    LayerState state = pipeline.factory().make_layer(layer, /*trains=*/false, TensorSlice{});
    restore_layer(checkpoint, layer, optimizer_moments(run_.options.plan.optimizer), state, session.offloaded());
  }
}

void RecoveryCoordinator::report(const Recovery& recovery) const {
  const std::string lost = recovery.lost_steps == 0 ? "no step lost"
                                                    : fmt::format("{} step{} ({}) to do again", recovery.lost_steps,
                                                                  recovery.lost_steps == 1 ? "" : "s",
                                                                  format_duration(recovery.lost_work_ns));
  run_.callbacks.note(fmt::format(
      "goes on with step {} on {} rank{} ({}), from {}: {}; noticed after {}, reconnected in {}, restored in {}",
      recovery.step, recovery.world_size, recovery.world_size == 1 ? "" : "s", layout_text(round_.session().phase()),
      recovery.source, lost, format_duration(recovery.detection_ns), format_duration(recovery.rendezvous_ns),
      format_duration(recovery.restoring_ns)));
  if (!recovery.choice.empty()) run_.callbacks.note(fmt::format("step {}: {}", recovery.step, recovery.choice));
}

}  // namespace frostpipe
