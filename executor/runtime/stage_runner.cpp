#include "executor/runtime/stage_runner.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "executor/device/memory_meter.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

constexpr std::size_t kReceivesAhead = 2;
constexpr std::size_t kSendsAhead = 2;  // of a stage that gets nothing back
constexpr int kTiedTag = 1 << 20;       // beyond every micro-batch

/// Both directions have a group of their own, so the micro-batch alone tells messages apart.
int tag_of(const Action& action) { return *action.micro_batch; }

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

}  // namespace

/// What lives for one repetition of the body.
struct StageRunner::Iteration {
  const MiniBatch& batch;
  int step = 0;
  IterationUpdate update;
  std::vector<SampleRange> micro_batches{};  // this replica's
  IterationResult result{};
  std::map<int, TouchedGradients> gradients{};  // by layer, from REDUCE_GRAD on
  std::optional<double> reduced_loss{};         // over the replicas, where it is not reduced with the norm
  std::map<int, at::Tensor> outputs{};          // by micro-batch, from F to SEND_F
  std::map<int, at::Tensor> input_gradients{};  // by micro-batch, from B or I to SEND_B
  std::map<int, at::Tensor> received{};         // activations or gradients by micro-batch, from RECV to use
  std::deque<Action> forward_receives{}, backward_receives{};                // not posted yet
  std::deque<std::pair<int, Transfer>> posted_forward{}, posted_backward{};  // micro-batch, transfer
  std::map<int, Transfer> forward_sends{}, backward_sends{};  // by micro-batch, until they are known to have arrived

  SampleRange range_of(int micro_batch) const { return micro_batches[micro_batch]; }
  std::int64_t num_tokens(int micro_batch) const {
    const SampleRange range = range_of(micro_batch);
    return std::accumulate(batch.lengths.begin() + range.begin, batch.lengths.begin() + range.end, std::int64_t{0});
  }

  /// Undefined where nothing is received: at the ends of the pipeline.
  at::Tensor take_received(int micro_batch) {
    const auto found = received.extract(micro_batch);
    return found.empty() ? at::Tensor() : found.mapped();
  }
};

StageRunner::StageRunner(const Model& model, const Phase& phase, int rank, const StageParts& parts,
                         std::int64_t tied_values)
    : model_(model),
      phase_(phase),
      rank_(rank),
      layers_(parts.layers),
      compute_(parts.compute),
      groups_(parts.groups),
      device_(parts.device),
      receives_ahead_(device_.torch_device().is_cpu() ? kReceivesAhead : 0),
      tied_values_(tied_values) {  // NCCL: an early receive can hold up what it waits for
  const std::optional<MeshCoordinate> coordinate = find_coordinate(phase.layout, rank);
  FROSTPIPE_CHECK(coordinate, "idle ranks run no stage");
  coordinate_ = *coordinate;
  const Schedule schedule = schedule_of(phase);
  FROSTPIPE_CHECK(num_stages(schedule) == num_pipeline_ranks(schedule), "one stage per rank");
  body_ = schedule.body[coordinate_.pipeline_rank];
  gets_gradients_ = std::any_of(body_.begin(), body_.end(),
                                [](const Action& action) { return action.kind == ActionKind::recv_backward; });
  if (coordinate_.pipeline_rank > 0) {
    std::vector<int> received;
    for (const Action& action : schedule.body[coordinate_.pipeline_rank - 1]) {
      if (action.kind == ActionKind::recv_backward) received.push_back(*action.micro_batch);
      if (action.kind == ActionKind::send_forward) arrived_before_[*action.micro_batch] = std::exchange(received, {});
    }
  }
  range_ = phase.partition[coordinate_.pipeline_rank];
}

int StageRunner::neighbour(int offset) const {
  return rank_of(phase_.layout, coordinate_.pipeline_rank + offset, coordinate_.replica);
}

std::vector<SampleRange> StageRunner::micro_batches_of(const MiniBatch& batch) const {
  const std::vector<SampleRange> all = cut(batch, phase_.layout.data_parallel_size, phase_.num_micro_batches);
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(coordinate_.replica) * phase_.num_micro_batches;
  return {first, first + phase_.num_micro_batches};
}

void StageRunner::forward(Iteration& iteration, const Action& action) {
  const int micro_batch = *action.micro_batch;
  at::Tensor output =
      compute_.forward(micro_batch, iteration.range_of(micro_batch), iteration.take_received(micro_batch));
  if (output.defined()) iteration.outputs[micro_batch] = std::move(output);
}

void StageRunner::backward(Iteration& iteration, const Action& action) {
  const int micro_batch = *action.micro_batch;
  at::Tensor received = iteration.take_received(micro_batch);
  at::Tensor gradient = action.kind == ActionKind::backward ? compute_.backward(micro_batch, std::move(received))
                                                            : compute_.input_gradient(micro_batch, std::move(received));
  if (gradient.defined()) iteration.input_gradients[micro_batch] = std::move(gradient);
}

void StageRunner::send(Iteration& iteration, const Action& action) {
  const int micro_batch = *action.micro_batch;
  const bool is_forward = action.kind == ActionKind::send_forward;
  auto& source = is_forward ? iteration.outputs : iteration.input_gradients;
  Group& group = is_forward ? groups_.forward : groups_.backward;
  auto& sends = is_forward ? iteration.forward_sends : iteration.backward_sends;
  if (is_forward && !gets_gradients_ && sends.size() >= kSendsAhead) finish_send(sends, sends.begin()->first);
  sends.emplace(micro_batch,
                group.send(source.at(micro_batch), neighbour(is_forward ? 1 : -1), tag_of(action), to_string(action)));
  source.erase(micro_batch);
}

void StageRunner::finish_send(std::map<int, Transfer>& sends, int micro_batch) {
  if (auto found = sends.extract(micro_batch); !found.empty()) found.mapped().wait();
}

void StageRunner::post_receives(Iteration& iteration, bool is_forward, std::size_t up_to) {
  auto& waiting = is_forward ? iteration.forward_receives : iteration.backward_receives;
  auto& posted = is_forward ? iteration.posted_forward : iteration.posted_backward;
  Group& group = is_forward ? groups_.forward : groups_.backward;
  while (!waiting.empty() && posted.size() < up_to) {
    const Action action = waiting.front();
    waiting.pop_front();
    at::Tensor into = compute_.make_activation(iteration.num_tokens(*action.micro_batch));
    posted.emplace_back(*action.micro_batch,
                        group.receive(into, neighbour(is_forward ? -1 : 1), tag_of(action), to_string(action)));
  }
}

void StageRunner::receive(Iteration& iteration, const Action& action) {
  const bool is_forward = action.kind == ActionKind::recv_forward;
  auto& posted = is_forward ? iteration.posted_forward : iteration.posted_backward;
  post_receives(iteration, is_forward, 1);
  FROSTPIPE_CHECK(!posted.empty() && posted.front().first == *action.micro_batch,
                  "receives are posted in the order of their use");
  Transfer transfer = std::move(posted.front().second);
  posted.pop_front();
  transfer.wait();
  iteration.received[*action.micro_batch] = transfer.tensor();
  if (is_forward) {
    for (const int micro_batch : arrived_before_[*action.micro_batch])
      finish_send(iteration.backward_sends, micro_batch);
  } else {
    finish_send(iteration.forward_sends, *action.micro_batch);
  }
  post_receives(iteration, is_forward, receives_ahead_);
}

std::map<int, TouchedGradients> StageRunner::touched_gradients() const {
  std::map<int, TouchedGradients> gradients;
  for (int layer = range_.begin; layer < range_.end; ++layer) {
    if (!layers_.at(layer).trains()) continue;
    gradients.emplace(layer,
                      TouchedGradients(layers_.at(layer), layer == 0 ? compute_.looked_up_rows() : at::Tensor()));
  }
  return gradients;
}

void StageRunner::reduce_gradient(Iteration& iteration) {
  iteration.gradients = touched_gradients();
  std::vector<at::Tensor> gradients;
  for (const auto& [layer, touched] : iteration.gradients)
    gradients.insert(gradients.end(), touched.tensors().begin(), touched.tensors().end());
  // Without a pipeline no other reduction follows: the loss, which every rank is to know, goes with the gradients.
  at::Tensor loss;
  if (phase_.layout.pipeline_parallel_size == 1 && !gradients.empty()) {
    loss = at::full({1}, compute_.loss(), gradients.front().options());
    gradients.push_back(loss);
  }
  groups_.replicas.all_reduce_sum(std::move(gradients), "REDUCE_GRAD");
  if (loss.defined() && phase_.layout.data_parallel_size > 1) iteration.reduced_loss = loss.item<double>();
  for (const auto& [layer, touched] : iteration.gradients) touched.put_back();
  reduce_tied();
  if (tied_values_ > 0 && range_.begin == 0)  // the head's part has no rows of zeros
    iteration.gradients.at(0) = TouchedGradients(layers_.at(0), at::Tensor());
}

void StageRunner::reduce_tied() {
  const int last_pipeline_rank = phase_.layout.pipeline_parallel_size - 1,
            last_layer = static_cast<int>(model_.layers.size()) - 1;
  const bool is_first = coordinate_.pipeline_rank == 0, is_last = coordinate_.pipeline_rank == last_pipeline_rank;
  if (tied_values_ == 0 || !(is_first || is_last)) return;
  if (is_first && is_last) {
    tied_gradient(0).add_(tied_gradient(last_layer));
    tied_gradient(last_layer).copy_(tied_gradient(0));
    return;
  }
  // Both add the same two numbers: sums are equal to the bit.
  const at::Tensor own = tied_gradient(is_first ? 0 : last_layer);
  const int peer = rank_of(phase_.layout, is_first ? last_pipeline_rank : 0, coordinate_.replica);
  const std::string what = "REDUCE_GRAD: tied embeddings";
  Transfer sending = (is_first ? groups_.forward : groups_.backward).send(own, peer, kTiedTag, what);
  Transfer receiving =
      (is_first ? groups_.backward : groups_.forward).receive(at::empty_like(own), peer, kTiedTag, what);
  receiving.wait();
  sending.wait();  // the message is read from where the sum will stand
  own.add_(receiving.tensor());
}

void StageRunner::optimizer_step(Iteration& iteration) {
  // [0, blocks): per block; then all layers together; last: the loss. Replica 0 stands for its replicas, whose
  // gradients are equal.
  const int blocks = num_blocks(model_);
  at::Tensor squares = at::zeros({blocks + 2}, at::kDouble);
  double* const values = squares.data_ptr<double>();
  values[blocks + 1] = iteration.reduced_loss.value_or(compute_.loss());
  if (coordinate_.replica == 0 || groups_.norm.ranks().size() < 2) {
    for (const auto& [layer, touched] : iteration.gradients) {
      double square_sum = touched.square_sum();
      if (tied_values_ > 0 && layer + 1 == static_cast<int>(model_.layers.size()))
        square_sum -= at::dot(tied_gradient(layer), tied_gradient(layer))
                          .to(at::kDouble)
                          .item<double>();  // counted in the embedding
      if (model_.layers[layer].block) values[*model_.layers[layer].block] += square_sum;
      values[blocks] += square_sum;
    }
  }
  squares = squares.to(device_.torch_device());
  groups_.norm.all_reduce_sum({squares}, "OPTIMIZER_STEP: gradient norm");
  squares = squares.to(at::kCPU);
  iteration.result.block_square_sums.assign(squares.data_ptr<double>(), squares.data_ptr<double>() + blocks);
  iteration.result.loss = squares.data_ptr<double>()[blocks + 1];
  const double norm = std::sqrt(squares.data_ptr<double>()[blocks]);
  if (!std::isfinite(norm)) {
    throw RuntimeFailure(
        "rank " + std::to_string(rank_) +
        ": OPTIMIZER_STEP: the gradient norm is not finite: training has diverged. Try a lower --learning-rate.");
  }
  auto& [rule, gradient_clip, applied] = iteration.update;
  if (!applied) return;
  rule.gradient_scale = gradient_clip > 0 && norm > gradient_clip ? gradient_clip / norm : 1;
  compute_.update(rule);
  for (const auto& [layer, touched] : iteration.gradients) touched.clear();
  updates_ = iteration.step + 1;
}

void StageRunner::perform(Iteration& iteration, const Action& action) try {
  switch (action.kind) {
    case ActionKind::forward:
      return forward(iteration, action);
    case ActionKind::backward:
    case ActionKind::input_gradient:
      return backward(iteration, action);
    case ActionKind::weight_gradient:
      return compute_.weight_gradient(*action.micro_batch);
    case ActionKind::cache_read:
      return compute_.cache_read(*action.micro_batch, iteration.range_of(*action.micro_batch));
    case ActionKind::cache_write:
      return compute_.cache_write(*action.micro_batch, iteration.range_of(*action.micro_batch));
    case ActionKind::send_forward:
    case ActionKind::send_backward:
      return send(iteration, action);
    case ActionKind::recv_forward:
    case ActionKind::recv_backward:
      return receive(iteration, action);
    case ActionKind::reduce_gradient:
      return reduce_gradient(iteration);
    case ActionKind::optimizer_step:
      return optimizer_step(iteration);
    default:
      FROSTPIPE_CHECK(false, "runnable schedules have no other actions");
  }
} catch (const c10::Error& error) {
  throw RuntimeFailure("rank " + std::to_string(rank_) + ": " + to_string(action) + ": " +
                       error.what_without_backtrace());
}

IterationResult StageRunner::run_iteration(const MiniBatch& batch, const MiniBatch* next, int step,
                                           const IterationUpdate& update, Trace& trace) {
  Iteration iteration{.batch = batch, .step = step, .update = update, .micro_batches = micro_batches_of(batch)};
  const auto is_empty = [&](const Action& action) {
    if (!action.micro_batch) return false;
    const SampleRange range = iteration.range_of(*action.micro_batch);
    return range.begin == range.end;
  };
  for (const Action& action : body_) {
    if (is_empty(action)) continue;
    if (action.kind == ActionKind::recv_forward) iteration.forward_receives.push_back(action);
    if (action.kind == ActionKind::recv_backward) iteration.backward_receives.push_back(action);
  }
  post_receives(iteration, true, receives_ahead_);
  post_receives(iteration, false, receives_ahead_);
  const auto share_of = [](const std::vector<SampleRange>& micro_batches) {
    return SampleRange{micro_batches.front().begin, micro_batches.back().end};
  };
  compute_.begin_iteration(batch, share_of(iteration.micro_batches), next,
                           next ? share_of(micro_batches_of(*next)) : SampleRange{});
  std::vector<Action> performed;
  device_.first_mark();
  for (const Action& action : body_) {
    if (is_empty(action)) continue;
    const NamedAction named(action);
    perform(iteration, action);
    device_.mark();
    performed.push_back(action);
  }
  for (auto* const sends : {&iteration.forward_sends, &iteration.backward_sends})
    for (auto& [micro_batch, transfer] : *sends) transfer.wait();
  device_.synchronize();
  const std::vector<Nanoseconds> marks = device_.marked_ns();
  for (std::size_t i = 0; i < performed.size(); ++i)
    trace.spans.push_back({rank_, step, performed[i], marks[i], marks[i + 1]});
  return std::move(iteration.result);
}

}  // namespace frostpipe
