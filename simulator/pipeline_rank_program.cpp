#include "simulator/pipeline_rank_program.h"

#include <algorithm>
#include <utility>

namespace frostpipe {
namespace {

/// The actions that have been recorded for a unit (micro-batch, slice) of a stage.
enum Fact : std::uint8_t {
  kForward = 1,
  kGradient = 2,  // I or B
  kBackward = 4,  // B or W, which computes the weight gradient
  kReceivedForward = 8,
  kReceivedBackward = 16,
  kCacheRead = 32,
  kSent = 64,
  kWritten = 128,
};

class Compiler {
 public:
  explicit Compiler(const Schedule& schedule)
      : schedule_(schedule),
        units_(schedule.num_micro_batches * schedule.num_slices),
        stages_(num_stages(schedule)),
        facts_(static_cast<std::size_t>(num_stages(schedule)) * units_),
        sent_backward_(facts_.size()),
        expected_(num_stages(schedule)),
        done_(num_stages(schedule)),
        reduced_(num_stages(schedule)) {}

  std::optional<std::vector<PipelineRankProgram>> run() {
    std::vector<PipelineRankProgram> programs(num_pipeline_ranks(schedule_));
    for (int pipeline_rank = 0; pipeline_rank < num_pipeline_ranks(schedule_); ++pipeline_rank) {
      for (const Action& action : schedule_.body[pipeline_rank]) {
        if (!is_known(action)) return std::nullopt;
        if (action.kind == ActionKind::backward || action.kind == ActionKind::weight_gradient)
          ++expected_[action.stage];
      }
    }
    for (int pipeline_rank = 0; pipeline_rank < num_pipeline_ranks(schedule_); ++pipeline_rank) {
      PipelineRankProgram& program = programs[pipeline_rank];
      program.steps.reserve(schedule_.body[pipeline_rank].size());
      std::vector<int> destinations;
      for (const Action& action : schedule_.body[pipeline_rank]) {
        if (!enter(action, pipeline_rank)) return std::nullopt;
        program.steps.push_back(step_of(action, destinations));
      }
      program.num_links = static_cast<int>(destinations.size());
    }
    return programs;
  }

 private:
  bool is_known(const Action& action) const {
    return action.stage >= 0 && action.stage < stages_ &&
           action.micro_batch.value_or(0) < schedule_.num_micro_batches &&
           action.slice.value_or(0) < schedule_.num_slices && action.iteration_offset == 0;
  }
  std::size_t unit_of(const Action& action, int stage) const {
    return static_cast<std::size_t>(stage) * units_ + *action.micro_batch * schedule_.num_slices +
           action.slice.value_or(0);
  }
  bool lives_on(int stage, int pipeline_rank) const {
    return stage >= 0 && stage < stages_ && schedule_.pipeline_rank_of_stage[stage] == pipeline_rank;
  }

  /// Records the action. Returns true if all that it needs on its own pipeline rank has been recorded before.
  bool enter(const Action& action, int pipeline_rank) {
    const int stage = action.stage, last = stages_ - 1;
    if (schedule_.pipeline_rank_of_stage[stage] != pipeline_rank) return false;
    if (action.kind == ActionKind::reduce_gradient)
      return done_[stage] == expected_[stage] && !std::exchange(reduced_[stage], true);
    if (action.kind == ActionKind::optimizer_step) return reduced_[stage];
    if (!action.micro_batch) return true;  // UNSHARD, RESHARD
    const std::size_t unit = unit_of(action, stage);
    std::uint8_t& facts = facts_[unit];
    const auto has = [&](Fact fact) { return (facts & fact) != 0; };
    const auto add = [&](int added) { return (facts & added) == 0 && (facts |= added, true); };
    switch (action.kind) {
      case ActionKind::forward: {
        if (action.slice.value_or(0) > 0 && !(facts_[unit - 1] & kForward)) return false;
        if (stage == 0) return (!schedule_.reads_cache || has(kCacheRead)) && add(kForward);
        const bool input =
            lives_on(stage - 1, pipeline_rank) ? facts_[unit_of(action, stage - 1)] & kForward : has(kReceivedForward);
        return input && add(kForward);
      }
      case ActionKind::backward:
      case ActionKind::input_gradient: {
        const bool sliced = action.slice && *action.slice + 1 < schedule_.num_slices;
        if (!has(kForward) || (sliced && !(facts_[unit + 1] & kGradient))) return false;
        if (stage < last && !(lives_on(stage + 1, pipeline_rank) ? facts_[unit_of(action, stage + 1)] & kGradient
                                                                 : has(kReceivedBackward)))
          return false;
        const bool whole = action.kind == ActionKind::backward;
        done_[stage] += whole;
        return add(whole ? kGradient | kBackward : kGradient);
      }
      case ActionKind::weight_gradient:
        ++done_[stage];
        return has(kGradient) && add(kBackward);
      case ActionKind::send_forward:
        return has(kForward) && stage < last && add(kSent);
      case ActionKind::send_backward:
        return has(kGradient) && stage > 0 && !std::exchange(sent_backward_[unit], true);
      case ActionKind::recv_forward:
        return stage > 0 && add(kReceivedForward);
      case ActionKind::recv_backward:
        return stage < last && add(kReceivedBackward);
      case ActionKind::cache_read:
        return add(kCacheRead);
      case ActionKind::cache_write:
        return has(kForward) && add(kWritten);
      case ActionKind::recompute:
        return has(kForward);
      default:
        return true;
    }
  }

  Step step_of(const Action& action, std::vector<int>& destinations) const {
    if (is_compute(action.kind)) return {.kind = StepKind::compute};
    const bool sends = is_send(action.kind);
    if (!sends && !is_receive(action.kind)) return {.kind = StepKind::other};
    const bool forwards = action.kind == ActionKind::send_forward || action.kind == ActionKind::recv_forward;
    // A message is identified by its micro-batch and slice, the lower of its two stages, and its direction.
    const int lower = forwards == sends ? action.stage : action.stage - 1;
    const auto message = static_cast<std::uint32_t>(2 * unit_of(action, lower) + forwards);
    if (!sends) return {.kind = StepKind::receive, .message = message};
    const int to = schedule_.pipeline_rank_of_stage[forwards ? action.stage + 1 : action.stage - 1];
    const auto place = std::find(destinations.begin(), destinations.end(), to);
    const auto link = static_cast<std::uint16_t>(place - destinations.begin());
    if (place == destinations.end()) destinations.push_back(to);
    return {.kind = StepKind::send, .link = link, .message = message};
  }

  const Schedule& schedule_;
  int units_, stages_;
  std::vector<std::uint8_t> facts_;  // [stage][unit], bits of Fact
  std::vector<std::uint8_t> sent_backward_;
  std::vector<int> expected_, done_;  // backwards per stage
  std::vector<std::uint8_t> reduced_;
};

}  // namespace

std::optional<std::vector<PipelineRankProgram>> pipeline_rank_programs(const Schedule& lowered) {
  if (!lowered.prologue.empty() || !lowered.epilogue.empty()) return std::nullopt;
  if (!lowered.pipeline_rank_of_micro_batch.empty()) return std::nullopt;
  return Compiler(lowered).run();
}

std::size_t num_messages(const std::vector<PipelineRankProgram>& programs) {
  std::size_t most = 0;
  for (const PipelineRankProgram& program : programs) {
    for (const Step& step : program.steps) most = std::max<std::size_t>(most, step.message + std::size_t{1});
  }
  return most;
}

}  // namespace frostpipe
