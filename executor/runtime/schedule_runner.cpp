#include "executor/runtime/schedule_runner.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "executor/device/memory_meter.h"
#include "executor/runtime/schedule_iteration.h"
#include "plan/token_slices.h"

namespace frostpipe {
namespace {

/// While this object lives, the memory meter's errors name the action.
class NamedAction {
 public:
  explicit NamedAction(const Action& action) : text_(to_string(action)) { MemoryMeter::set_action(text_.c_str()); }
  ~NamedAction() { MemoryMeter::set_action("between actions"); }
  NamedAction(const NamedAction&) = delete;
  NamedAction& operator=(const NamedAction&) = delete;

 private:
  std::string text_;
};

/// Removes and returns a tensor; undefined if there is none, at the ends of the pipeline.
at::Tensor take(StageTensors& tensors, int stage, Part part) {
  const auto found = tensors.extract({stage, part});
  return found.empty() ? at::Tensor() : found.mapped();
}

/// Returns the parts for iterations with the other set of stages.
RankParts other(const RankParts& parts) {
  return {parts.model,  parts.layers, parts.other_stages ? *parts.other_stages : parts.stages,
          parts.groups, parts.device, parts.tied_values};
}

}  // namespace

ScheduleRunner::ScheduleRunner(const Phase& phase, int rank, const RankParts& parts)
    : phase_(phase),
      rank_(rank),
      parts_{parts, other(parts)},
      ahead_(static_cast<std::size_t>(phase.num_micro_batches) * num_slices(phase)) {
  const ParallelLayout lists = layout_of_lists(phase.layout);
  const std::optional<MeshCoordinate> place = find_coordinate(lists, rank);
  FROSTPIPE_CHECK(place, "idle ranks run no stage");
  place_ = *place;
  const int pipeline_rank = place_.pipeline_rank;
  const Schedule schedule = schedule_of(phase);
  num_micro_batches_ = schedule.num_micro_batches;
  body_ = schedule.body[pipeline_rank];
  if (parts.uses_graphs) {
    graphs_ = std::make_unique<IterationGraphs>(parts.device);
    captures_update_ = captures_update(phase, parts.optimizer);
    if (std::ranges::none_of(body_, [this](const Action& action) { return is_captured(action); })) graphs_.reset();
  }
  overlaps_ = !schedule.epilogue.empty();
  if (overlaps_) {
    FROSTPIPE_CHECK(parts.other_stages, "iterations that overlap need stages each");
    prologue_ = schedule.prologue[pipeline_rank];
    epilogue_ = schedule.epilogue[pipeline_rank];
  }
  // The order of an iteration's own actions does not depend on overlap with other iterations.
  const Schedule flat = flushed(schedule);
  std::set<int> runs;
  for (const Action& action : flat.body[pipeline_rank])
    if (action.micro_batch) runs.insert(*action.micro_batch);
  first_micro_batch_ = *runs.begin();
  last_micro_batch_ = *runs.rbegin();
  messages_ =
      messages_of(flat, pipeline_rank, pipeline_of(lists, place_.replica, place_.tensor), part_of_messages(parts));
}

/// Returns the part of messages to other nodes that this tensor rank sends. With one tensor rank, or with sequence
/// parallelism, in which each tensor rank sends only its own tokens anyway, messages are sent whole.
PartOfMessages ScheduleRunner::part_of_messages(const RankParts& parts) const {
  const int t = phase_.layout.tensor_parallel_size;
  PartOfMessages part{.slice = slice_of(place_.tensor, t)};
  if (t == 1 || phase_.layout.sequence_parallel || !parts.communicator || parts.communicator->nodes().empty())
    return part;
  const std::vector<int>& nodes = parts.communicator->nodes();
  const std::vector<int> ranks = pipeline_of(layout_of_lists(phase_.layout), place_.replica);
  for (const int other : ranks)
    part.is_on_another_node.push_back(nodes.at(other) != nodes.at(ranks[place_.pipeline_rank]));
  return part;
}

ScheduleRunner::ScheduleRunner(ScheduleRunner&&) noexcept = default;
ScheduleRunner::~ScheduleRunner() = default;

PostedReceives ScheduleRunner::posted_receives() const {
  const bool go_through_host =
      parts().device.torch_device().is_cpu() || (parts().communicator && parts().communicator->uses_host_staging());
  return go_through_host ? PostedReceives::ahead : PostedReceives::none;
}

std::vector<SampleRange> ScheduleRunner::micro_batches_of(const MiniBatch& batch) const {
  const std::vector<SampleRange> all = cut(batch, phase_.layout.data_parallel_size, phase_.num_micro_batches);
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(place_.replica) * num_micro_batches_;
  return {first, first + num_micro_batches_};
}

SampleRange ScheduleRunner::share_of(const std::vector<SampleRange>& micro_batches) const {
  return {micro_batches[first_micro_batch_].begin, micro_batches[last_micro_batch_].end};
}

std::int64_t ScheduleRunner::tokens_of(const Action& action, const MiniBatch& batch, SampleRange range) const {
  const TokenRange of_each = tokens_of_slice(phase_, part_of(action).slice);
  std::int64_t tokens = 0;
  for (int sample = range.begin; sample < range.end; ++sample) tokens += of_each.of(batch.lengths[sample]).count();
  return tokens;
}

void ScheduleRunner::forward(Iteration& iteration, const Action& action) {
  const int stage = action.stage;
  const Part part = part_of(action);
  at::Tensor output =
      iteration.compute(stage).forward(part, iteration.range_of(action), take(iteration.inputs, stage, part));
  if (!output.defined()) return;
  if (has_stage(stage + 1))
    iteration.inputs[{stage + 1, part}] = std::move(output);
  else
    iteration.outputs[{stage, part}] = std::move(output);
}

void ScheduleRunner::backward(Iteration& iteration, const Action& action) {
  const int stage = action.stage;
  const Part part = part_of(action);
  at::Tensor received = take(iteration.output_gradients, stage, part);
  at::Tensor gradient = action.kind == ActionKind::backward
                            ? iteration.compute(stage).backward(part, std::move(received))
                            : iteration.compute(stage).input_gradient(part, std::move(received));
  if (!gradient.defined()) return;
  if (has_stage(stage - 1))
    iteration.output_gradients[{stage - 1, part}] = std::move(gradient);
  else
    iteration.input_gradients[{stage, part}] = std::move(gradient);
}

void ScheduleRunner::require_whole() {
  parts().device.synchronize();
  if (parts().communicator) parts().communicator->require_whole();
}

void ScheduleRunner::issue(Iteration& iteration, const Action& action) {
  switch (action.kind) {
    case ActionKind::forward:
      return forward(iteration, action);
    case ActionKind::backward:
    case ActionKind::input_gradient:
      return backward(iteration, action);
    case ActionKind::weight_gradient:
      return iteration.compute(action.stage).weight_gradient(part_of(action));
    case ActionKind::cache_read:
      return iteration.compute(action.stage).cache_read(*action.micro_batch, iteration.range_of(action));
    case ActionKind::cache_write: {
      StageCompute& compute = iteration.compute(action.stage);
      const SampleRange range = iteration.range_of(action);
      // Cache entries outlive a loss, so they must not be computed from data that has not arrived. Without an entry to
      // write the host need not wait.
      if (!parts().device.torch_device().is_cpu() && compute.has_to_write(*action.micro_batch, range)) require_whole();
      return compute.cache_write(*action.micro_batch, range);
    }
    case ActionKind::send_forward:
      return iteration.exchange->send(action, take(iteration.outputs, action.stage, part_of(action)));
    case ActionKind::send_backward:
      return iteration.exchange->send(action, take(iteration.input_gradients, action.stage, part_of(action)));
    case ActionKind::recv_forward:
      iteration.inputs[{action.stage, part_of(action)}] = iteration.exchange->receive(action);
      return;
    case ActionKind::recv_backward:
      iteration.output_gradients[{action.stage, part_of(action)}] = iteration.exchange->receive(action);
      return;
    case ActionKind::reduce_gradient:
      return iteration.gradient_step->reduce(action.stage);
    case ActionKind::optimizer_step:
      return iteration.gradient_step->update(action.stage);
    default:
      FROSTPIPE_CHECK(false, "schedules of plans have no other actions");
  }
}

void ScheduleRunner::perform(Iteration& iteration, const Action& action) try {
  is_captured(action) ? issue_captured(iteration, action) : issue(iteration, action);
  if (action.kind != ActionKind::optimizer_step) return;
  has_whole_weights_ = parts().device.torch_device().is_cpu();
  if (!iteration.gradient_step->is_done()) return;
  updates_ = iteration.step + 1;
  if (has_whole_weights_) gradient_norm_ = iteration.gradient_step->gradient_norm();
} catch (const PeerLost&) {
  if (action.kind == ActionKind::optimizer_step) interrupted_update_ = iteration.gradient_step->interrupted();
  throw;
} catch (const c10::Error& error) {
  throw RuntimeFailure("rank " + std::to_string(rank_) + ": " + to_string(action) + ": " +
                       error.what_without_backtrace());
}

std::unique_ptr<ScheduleRunner::Iteration> ScheduleRunner::begin(const MiniBatch& batch, const MiniBatch* next,
                                                                 int step) {
  const int which = overlaps_ ? step % 2 : 0;
  auto iteration = std::make_unique<Iteration>(
      Iteration{.step = step, .batch = batch, .parts = parts_[which], .micro_batches = micro_batches_of(batch)});
  const auto tokens = [this, of = iteration.get()](const Action& action) {
    return tokens_of(action, of->batch, of->range_of(action));
  };
  const auto is_left_out = [&](const Action& action) { return action.micro_batch && tokens(action) == 0; };
  const auto make = [this, tokens](const Action& receive) { return make_received(receive, tokens(receive)); };
  // ReceiveQueue::ahead suffices only if no micro-batch or slice is left out.
  const bool is_whole = std::none_of(body_.begin(), body_.end(), is_left_out);
  const PostedReceives ahead = posted_receives();
  const PostedReceives posted = ahead == PostedReceives::none || is_whole ? ahead : PostedReceives::all;
  iteration->exchange.emplace(messages_, which * num_tags(messages_), parts().groups, ahead_,
                              MessageExchange::Receives{posted, is_left_out, make});
  const SampleRange next_share = next ? share_of(micro_batches_of(*next)) : SampleRange{};
  for (auto& [stage, compute] : iteration->parts.stages)
    compute->begin_iteration(iteration->batch, share_of(iteration->micro_batches), next, next_share);
  return iteration;
}

IterationResult ScheduleRunner::run_iteration(const MiniBatch& batch, const MiniBatch* next, int step,
                                              const IterationUpdate& update, Trace& trace, bool drains) {
  std::unique_ptr<Iteration> now = std::move(begun_), coming;
  std::vector<Action> actions;
  if (graphs_ && !graphs_->begin(batch.lengths)) graph_tensors_ = std::make_unique<GraphTensors>();
  if (!now) {
    now = begin(batch, overlaps_ ? nullptr : next, step);
    actions = prologue_;
  }
  FROSTPIPE_CHECK(now->step == step, "iterations follow each other");
  const bool goes_on = overlaps_ && next && !drains;
  if (goes_on) {
    coming = begin(*next, nullptr, step + 1);
    for (auto& [stage, compute] : coming->parts.stages) compute->use_newest_weights();
  }
  begin_gradient_step(*now, update);
  const std::vector<Action>& others = overlaps_ && !goes_on ? epilogue_ : body_;
  actions.insert(actions.end(), others.begin(), others.end());
  std::vector<Action> performed;
  parts().device.first_mark();
  for (const Action& action : actions) {
    Iteration& iteration = action.iteration_offset == 0 ? *now : *coming;
    if (action.micro_batch && tokens_of(action, iteration.batch, iteration.range_of(action)) == 0) continue;
    const NamedAction named(action);
    Action of_iteration = action;
    of_iteration.iteration_offset = 0;
    perform(iteration, of_iteration);
    parts().device.mark();
    performed.push_back(action);
  }
  now->exchange->finish();
  if (!next) finish_sends();
  begun_ = std::move(coming);
  now->gradient_step->bring_result();
  require_whole();
  has_whole_weights_ = true;
  const std::vector<Nanoseconds> marks = parts().device.marked_ns();
  for (std::size_t i = 0; i < performed.size(); ++i)
    trace.spans.push_back({rank_, step, performed[i], marks[i], marks[i + 1]});
  const IterationResult result = now->gradient_step->result();
  if (graphs_ && captures_update_) graph_tensors_->gradient_step.emplace(std::move(*now->gradient_step));
  return result;
}

}  // namespace frostpipe
