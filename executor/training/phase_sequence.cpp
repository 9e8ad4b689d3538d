#include "executor/training/phase_sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "executor/training/policy/restore_source.h"

namespace frostpipe {
namespace {

FreezeController controller_of(const RunContext& run) {
  return FreezeController(run.options.freeze, num_blocks(run.model), run.num_steps);
}

/// Removes the first phase that freezes more than the current one, which is phases.front(), and all phases after it.
void leave_freezes_to_rule(std::vector<Phase>& phases) {
  const int frozen = phases.front().first_trainable_layer;
  const auto freezes = [&](const Phase& phase) { return phase.first_trainable_layer > frozen; };
  phases.erase(std::ranges::find_if(phases, freezes), phases.end());
}

/// Returns the same layout with more frozen layers; the cache keeps its contents.
Phase with_more_frozen(Phase phase, int first_trainable_layer, int from_step) {
  phase.first_trainable_layer = first_trainable_layer;
  phase.from_step = from_step;
  return phase;
}

}  // namespace

PhaseSequence::PhaseSequence(const RunContext& run) : run_(run), controller_(controller_of(run)) {}

std::optional<Phase> PhaseSequence::next(int step, RendezvousRound& round, const RunRecorder& recorder,
                                         std::vector<Decision>& decisions) {
  if (run_.options.freeze.rule != FreezePolicy::Rule::plan) {
    const int frozen = frozen_blocks(run_.model, round.session().phase().first_trainable_layer);
    if (asked_before_ != step && controller_.decides_before(step, frozen)) {
      asked_before_ = step;
      const int more = controller_.decide(step, frozen, round.communicator());
      if (more != frozen)
        upcoming_ = decided(first_trainable_layer(run_.model, more), step, round, recorder, decisions);
    }
  }
  if (upcoming_.empty() || upcoming_.front().from_step > step) return std::nullopt;
  return upcoming_.front();
}

bool PhaseSequence::changes_at(int step) const { return !upcoming_.empty() && upcoming_.front().from_step <= step; }

/// Returns the phases from `step` on after the rule has decided to freeze the layers before `first_trainable_layer`;
/// the same on all ranks. Adds the decision to `decisions` if it has an explanation.
std::vector<Phase> PhaseSequence::decided(int first_trainable_layer, int step, RendezvousRound& round,
                                          const RunRecorder& recorder, std::vector<Decision>& decisions) const {
  const Nanoseconds measured_ns = recorder.median_iteration_ns();
  std::string explanation;
  std::vector<Phase> phases;
  if (round.is_first()) {
    const Phase& current = round.session().phase();
    if (run_.callbacks.replan) {
      ReplanAnswer answer = run_.callbacks.replan({.current = current,
                                                   .first_trainable_layer = first_trainable_layer,
                                                   .from_step = step,
                                                   .measured_iteration_ns = measured_ns,
                                                   .logical_ranks = round.logical_ranks(),
                                                   .layout_is_lost = !current.layout.vacant.empty()});
      phases = std::move(answer.phases);
      explanation = std::move(answer.explanation);
    }
    if (phases.empty()) phases = {with_more_frozen(current, first_trainable_layer, step)};
    FROSTPIPE_CHECK(phases.front().first_trainable_layer == first_trainable_layer, "what the rule has decided");
  }
  explanation = round.communicator().broadcast(explanation, 0);
  if (!explanation.empty()) decisions.push_back({step, frozen_blocks(run_.model, first_trainable_layer), explanation});
  return broadcast(std::move(phases), step, round);
}

/// Returns rank 0's phases on all ranks. They are sent as a plan that starts with them, so that there is one format.
std::vector<Phase> PhaseSequence::broadcast(std::vector<Phase> phases, int from_step, RendezvousRound& round) const {
  TrainingPlan carrier = run_.options.plan;
  carrier.phases = std::move(phases);
  for (Phase& phase : carrier.phases) phase.from_step -= from_step;
  const std::string text = round.communicator().broadcast(round.is_first() ? to_json(carrier) : "", 0);
  phases = plan_from_json(text, "decision of rank 0").phases;
  for (Phase& phase : phases) phase.from_step += from_step;
  return phases;
}

void PhaseSequence::go_back(const State& state) {
  controller_.restore(state.freeze_rule, "state of this round");
  upcoming_ = state.upcoming;
  asked_before_ = state.asked_before;
}

Phase PhaseSequence::restore(const Checkpoint& snapshot, RendezvousRound& round) {
  const std::string place = snapshot.folder.empty() ? "survivor" : (snapshot.folder / "checkpoint.json").string();
  controller_ = controller_of(run_);
  asked_before_.reset();
  if (snapshot.freeze_rule == to_string(run_.options.freeze.rule) && !snapshot.freeze_state.empty()) {
    controller_.restore(snapshot.freeze_state, place);
    if (snapshot.freeze_is_decided) asked_before_ = snapshot.step;
  }
  choice_after_loss_.clear();
  upcoming_ = restored(snapshot, round);
  if (run_.options.freeze.rule != FreezePolicy::Rule::plan) leave_freezes_to_rule(upcoming_);
  Phase phase = upcoming_.front();
  begin_next();
  phase.from_step = snapshot.step;
  return phase;
}

std::vector<Phase> PhaseSequence::restored(const Checkpoint& snapshot, RendezvousRound& round) {
  const std::vector<Phase> phases = phases_after(snapshot, run_.options, round.communicator().world_size());
  std::vector<Phase> result;
  for (const Phase& phase : phases) {
    std::optional<Phase> here = round.with_ranks(phase);
    if (!here) return with_another_layout(phases, snapshot.step, round);
    result.push_back(std::move(*here));
  }
  return result;
}

/// Returns phases that replace `lost`, whose layouts need lost ranks. Throws on all ranks if no layout fits:
/// RuntimeFailure with the reason, but PeerLost on ranks that need not report it.
std::vector<Phase> PhaseSequence::with_another_layout(const std::vector<Phase>& lost, int step,
                                                      RendezvousRound& round) {
  std::vector<Phase> phases;
  std::string failure;  // set on rank 0; all ranks fail with it
  if (round.is_first()) {
    ReplanRequest request{.current = lost.front(),
                          .first_trainable_layer = lost.front().first_trainable_layer,
                          .from_step = step,
                          .logical_ranks = round.logical_ranks(),
                          .layout_is_lost = true};
    // Without a planner that can be asked again, the layout stays the same whatever the rule freezes.
    if (run_.options.freeze.rule == FreezePolicy::Rule::plan || !run_.callbacks.replan) {
      request.forecast.emplace();
      for (std::size_t i = 1; i < lost.size(); ++i)
        request.forecast->push_back({lost[i].from_step, frozen_blocks(run_.model, lost[i].first_trainable_layer)});
    }
    try {
      ReplanAnswer answer = run_.callbacks.recover(request);
      if (answer.phases.empty()) failure = answer.explanation;
      phases = std::move(answer.phases);
      choice_after_loss_ = std::move(answer.explanation);
    } catch (const InvalidInput& error) {
      failure = error.what();
    }
  }
  failure = round.communicator().broadcast(failure, 0);
  if (!failure.empty()) {
    const std::size_t count = round.logical_ranks().size();
    const std::string sentence =
        fmt::format("no layout for the {} rank{} left: {}", count, count == 1 ? " that is" : "s that are", failure);
    if (round.is_first() || !round.is_watched_by_launcher()) throw RuntimeFailure(sentence);
    throw PeerLost(sentence);  // frostpipe's launcher lets only rank 0 report it
  }
  choice_after_loss_ = round.communicator().broadcast(choice_after_loss_, 0);
  return broadcast(std::move(phases), step, round);
}

}  // namespace frostpipe
