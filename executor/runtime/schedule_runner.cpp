#include "executor/runtime/schedule_runner.h"

#include <algorithm>
#include <utility>

#include "executor/device/memory_meter.h"
#include "plan/token_slices.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

/// Names the action in errors of the memory meter, for as long as this lives.
class NamedAction {
 public:
  explicit NamedAction(const Action& action) : text_(to_string(action)) { MemoryMeter::set_action(text_.c_str()); }
  ~NamedAction() { MemoryMeter::set_action("between actions"); }
  NamedAction(const NamedAction&) = delete;
  NamedAction& operator=(const NamedAction&) = delete;

 private:
  std::string text_;
};

/// Tensors by stage and what it has computed.
using StageTensors = std::map<std::pair<int, Part>, at::Tensor>;

/// Undefined where there is none: at the ends of the pipeline.
at::Tensor take(StageTensors& tensors, int stage, Part part) {
  const auto found = tensors.extract({stage, part});
  return found.empty() ? at::Tensor() : found.mapped();
}

SampleRange share_of(const std::vector<SampleRange>& micro_batches) {
  return {micro_batches.front().begin, micro_batches.back().end};
}

}  // namespace

/// What lives for one repetition of the body.
struct ScheduleRunner::Iteration {
  int step = 0;
  const std::vector<SampleRange>& micro_batches;  // this replica's
  MessageExchange exchange;
  GradientStep gradient_step;
  StageTensors inputs{}, output_gradients{};  // of a stage, from RECV or the neighbour on this rank to its use
  StageTensors outputs{}, input_gradients{};  // of a stage, until they are sent

  SampleRange range_of(const Action& action) const { return micro_batches[*action.micro_batch]; }
};

ScheduleRunner::ScheduleRunner(const Phase& phase, int rank, const RankParts& parts)
    : phase_(phase), rank_(rank), parts_(parts) {
  const std::optional<MeshCoordinate> coordinate = find_coordinate(phase.layout, rank);
  FROSTPIPE_CHECK(coordinate, "idle ranks run no stage");
  coordinate_ = *coordinate;
  const Schedule schedule = schedule_of(phase);
  body_ = schedule.body[coordinate_.pipeline_rank];
  messages_ = messages_of(schedule, coordinate_.pipeline_rank, pipeline());
}

std::vector<int> ScheduleRunner::pipeline() const {
  std::vector<int> ranks;
  for (int pipeline_rank = 0; pipeline_rank < phase_.layout.pipeline_parallel_size; ++pipeline_rank)
    ranks.push_back(rank_of(phase_.layout, pipeline_rank, coordinate_.replica));
  return ranks;
}

PostedReceives ScheduleRunner::posted_receives() const {
  return parts_.device.torch_device().is_cpu() ? PostedReceives::ahead : PostedReceives::none;
}

std::vector<SampleRange> ScheduleRunner::micro_batches_of(const MiniBatch& batch) const {
  const std::vector<SampleRange> all = cut(batch, phase_.layout.data_parallel_size, phase_.num_micro_batches);
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(coordinate_.replica) * phase_.num_micro_batches;
  return {first, first + phase_.num_micro_batches};
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
  at::Tensor output = compute(stage).forward(part, iteration.range_of(action), take(iteration.inputs, stage, part));
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
  at::Tensor gradient = action.kind == ActionKind::backward ? compute(stage).backward(part, std::move(received))
                                                            : compute(stage).input_gradient(part, std::move(received));
  if (!gradient.defined()) return;
  if (has_stage(stage - 1))
    iteration.output_gradients[{stage - 1, part}] = std::move(gradient);
  else
    iteration.input_gradients[{stage, part}] = std::move(gradient);
}

void ScheduleRunner::perform(Iteration& iteration, const Action& action) try {
  switch (action.kind) {
    case ActionKind::forward:
      return forward(iteration, action);
    case ActionKind::backward:
    case ActionKind::input_gradient:
      return backward(iteration, action);
    case ActionKind::weight_gradient:
      return compute(action.stage).weight_gradient(part_of(action));
    case ActionKind::cache_read:
      return compute(action.stage).cache_read(*action.micro_batch, iteration.range_of(action));
    case ActionKind::cache_write:
      return compute(action.stage).cache_write(*action.micro_batch, iteration.range_of(action));
    case ActionKind::send_forward:
      return iteration.exchange.send(action, take(iteration.outputs, action.stage, part_of(action)));
    case ActionKind::send_backward:
      return iteration.exchange.send(action, take(iteration.input_gradients, action.stage, part_of(action)));
    case ActionKind::recv_forward:
      iteration.inputs[{action.stage, part_of(action)}] = iteration.exchange.receive(action);
      return;
    case ActionKind::recv_backward:
      iteration.output_gradients[{action.stage, part_of(action)}] = iteration.exchange.receive(action);
      return;
    case ActionKind::reduce_gradient:
      return iteration.gradient_step.reduce(action.stage);
    case ActionKind::optimizer_step:
      iteration.gradient_step.update(action.stage);
      if (iteration.gradient_step.is_done()) updates_ = iteration.step + 1;
      return;
    default:
      FROSTPIPE_CHECK(false, "schedules of plans have no other actions");
  }
} catch (const c10::Error& error) {
  throw RuntimeFailure("rank " + std::to_string(rank_) + ": " + to_string(action) + ": " +
                       error.what_without_backtrace());
}

IterationResult ScheduleRunner::run_iteration(const MiniBatch& batch, const MiniBatch* next, int step,
                                              const IterationUpdate& update, Trace& trace) {
  const std::vector<SampleRange> micro_batches = micro_batches_of(batch);
  const auto tokens = [&](const Action& action) {
    return tokens_of(action, batch, micro_batches[*action.micro_batch]);
  };
  const auto is_left_out = [&](const Action& action) { return action.micro_batch && tokens(action) == 0; };
  const auto make = [&](const Action& receive) { return make_activation(tokens(receive)); };
  // The queues are known to suffice for all micro-batches and slices.
  const bool is_whole = std::none_of(body_.begin(), body_.end(), is_left_out);
  const PostedReceives ahead = posted_receives();
  const PostedReceives posted = ahead == PostedReceives::none || is_whole ? ahead : PostedReceives::all;
  Iteration iteration{.step = step,
                      .micro_batches = micro_batches,
                      .exchange = {messages_, parts_.groups, posted, is_left_out, make},
                      .gradient_step = {phase_, rank_, parts_, update}};
  const SampleRange next_share = next ? share_of(micro_batches_of(*next)) : SampleRange{};
  for (auto& [stage, compute] : parts_.stages)
    compute->begin_iteration(batch, share_of(micro_batches), next, next_share);
  std::vector<Action> performed;
  parts_.device.first_mark();
  for (const Action& action : body_) {
    if (is_left_out(action)) continue;
    const NamedAction named(action);
    perform(iteration, action);
    parts_.device.mark();
    performed.push_back(action);
  }
  iteration.exchange.finish();
  parts_.device.synchronize();
  const std::vector<Nanoseconds> marks = parts_.device.marked_ns();
  for (std::size_t i = 0; i < performed.size(); ++i)
    trace.spans.push_back({rank_, step, performed[i], marks[i], marks[i + 1]});
  return std::move(iteration.gradient_step.result());
}

}  // namespace frostpipe
