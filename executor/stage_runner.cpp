#include "executor/stage_runner.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <chrono>
#include <cmath>

#include "executor/memory_meter.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

constexpr std::size_t kReceivesAhead = 2;

Nanoseconds now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

/// Both directions have a group of their own, so the micro-batch alone tells messages apart.
int tag_of(const Action& action) { return *action.micro_batch; }

}  // namespace

/// What lives for one repetition of the body.
struct StageRunner::Iteration {
  const EncodedData& data;
  const MiniBatch& batch;
  UpdateRule rule;
  double gradient_clip = 0;
  bool apply_update = true;
  IterationResult result{};
  std::map<int, InFlight> in_flight{};           // by micro-batch, from F to B
  std::map<int, at::Tensor> outputs{};           // by micro-batch, from F to SEND_F
  std::map<int, at::Tensor> input_gradients{};   // by micro-batch, from B to SEND_B
  std::map<int, at::Tensor> received{};          // activations or gradients by micro-batch, from RECV to use
  std::deque<Action> forward_receives{}, backward_receives{};                // not posted yet
  std::deque<std::pair<int, Transfer>> posted_forward{}, posted_backward{};  // micro-batch, transfer
  std::vector<Transfer> sends{};
};

StageRunner::StageRunner(const EncoderConfig& config, const Model& model, const Phase& phase, int rank,
                         std::map<int, LayerState>& layers, ActiveGroups& groups, ComputeDevice& device, at::ScalarType dtype)
    : config_(config), model_(model), phase_(phase), rank_(rank), layers_(layers), groups_(groups), device_(device), dtype_(dtype),
      receives_ahead_(device.type() == "cpu" ? kReceivesAhead : 0) {  // NCCL: an early receive can hold up what it waits for
  FROSTPIPE_CHECK(find_place(phase.layout, rank, place_), "idle ranks run no stage");
  const Schedule schedule = schedule_of(phase);
  FROSTPIPE_CHECK(num_stages(schedule) == num_positions(schedule), "one stage per rank");
  body_ = schedule.body[place_.position];
  range_ = phase.partition[place_.position];
  first_ = place_.position == 0;
  last_ = place_.position + 1 == phase.layout.pipeline_parallel_size;
  trains_ = place_.position >= schedule.first_trainable_stage;
  sends_backward_ = place_.position > schedule.first_trainable_stage;
}

at::TensorOptions StageRunner::options() const { return at::TensorOptions().dtype(dtype_).device(device_.torch_device()); }

int StageRunner::neighbour(int offset) const { return rank_of(phase_.layout, place_.position + offset, place_.replica); }

SampleRange StageRunner::range_of(const Iteration& iteration, int micro_batch) const {
  return micro_batch_samples(static_cast<int>(iteration.batch.samples.size()), phase_.layout.data_parallel_size,
                             phase_.num_micro_batches, place_.replica, micro_batch);
}

at::Tensor StageRunner::run_layers(at::Tensor activation, const MicroBatch& batch, bool training) const {
  for (int layer = range_.begin; layer < range_.end; ++layer) {
    const bool keeps_graph = training && layer >= phase_.first_trainable_layer;
    const at::AutoGradMode grad_mode(keeps_graph);
    activation = forward_layer(config_, model_.layers[layer], layers_.at(layer).parameters, activation, batch);
  }
  return activation;
}

void StageRunner::forward(Iteration& iteration, const Action& action) {
  const int micro_batch = *action.micro_batch;
  const SampleRange range = range_of(iteration, micro_batch);
  const MicroBatch batch = make_micro_batch(iteration.data, iteration.batch.samples.subspan(range.begin, range.end - range.begin),
                                            iteration.batch.tokens, options());
  InFlight flight;
  if (!first_) {
    flight.input = std::move(iteration.received.at(micro_batch));
    iteration.received.erase(micro_batch);
    if (sends_backward_) flight.input.requires_grad_(true);
  }
  flight.output = run_layers(flight.input, batch, /*training=*/true);
  if (last_) {
    flight.output = loss_sum(flight.output, batch.labels) / static_cast<double>(iteration.batch.samples.size());
    iteration.result.loss += flight.output.item<double>();
  } else {
    iteration.outputs[micro_batch] = flight.output.detach();
  }
  if (trains_) iteration.in_flight[micro_batch] = std::move(flight);
}

void StageRunner::backward(Iteration& iteration, const Action& action) {
  const int micro_batch = *action.micro_batch;
  InFlight flight = std::move(iteration.in_flight.at(micro_batch));
  iteration.in_flight.erase(micro_batch);
  at::Tensor gradient;
  if (!last_) {
    gradient = std::move(iteration.received.at(micro_batch));
    iteration.received.erase(micro_batch);
  }
  torch::autograd::backward({flight.output}, {gradient});
  if (sends_backward_) iteration.input_gradients[micro_batch] = flight.input.grad();
}

void StageRunner::send(Iteration& iteration, const Action& action) {
  const int micro_batch = *action.micro_batch;
  const bool is_forward = action.kind == ActionKind::send_forward;
  auto& source = is_forward ? iteration.outputs : iteration.input_gradients;
  Group& group = is_forward ? groups_.forward : groups_.backward;
  iteration.sends.push_back(group.send(source.at(micro_batch), neighbour(is_forward ? 1 : -1), tag_of(action), to_string(action)));
  source.erase(micro_batch);
}

void StageRunner::post_receives(Iteration& iteration, bool is_forward, std::size_t up_to) {
  auto& waiting = is_forward ? iteration.forward_receives : iteration.backward_receives;
  auto& posted = is_forward ? iteration.posted_forward : iteration.posted_backward;
  Group& group = is_forward ? groups_.forward : groups_.backward;
  while (!waiting.empty() && posted.size() < up_to) {
    const Action action = waiting.front();
    waiting.pop_front();
    const SampleRange range = range_of(iteration, *action.micro_batch);
    at::Tensor into = at::empty({range.end - range.begin, iteration.batch.tokens, config_.hidden_size}, options());
    posted.emplace_back(*action.micro_batch, group.receive(into, neighbour(is_forward ? -1 : 1), tag_of(action), to_string(action)));
  }
}

void StageRunner::receive(Iteration& iteration, const Action& action) {
  const bool is_forward = action.kind == ActionKind::recv_forward;
  auto& posted = is_forward ? iteration.posted_forward : iteration.posted_backward;
  post_receives(iteration, is_forward, 1);
  FROSTPIPE_CHECK(!posted.empty() && posted.front().first == *action.micro_batch, "receives are posted in the order of their use");
  Transfer transfer = std::move(posted.front().second);
  posted.pop_front();
  transfer.wait();
  iteration.received[*action.micro_batch] = transfer.tensor();
  post_receives(iteration, is_forward, receives_ahead_);
}

void StageRunner::reduce_gradient() {
  std::vector<at::Tensor> gradients;
  for (int layer = range_.begin; layer < range_.end; ++layer) {
    if (layers_.at(layer).trains()) gradients.push_back(layers_.at(layer).gradients);
  }
  groups_.replicas.all_reduce_sum(std::move(gradients), "REDUCE_GRAD");
}

void StageRunner::optimizer_step(Iteration& iteration) {
  // [0, blocks): per block; last: all layers together. Replica 0 speaks for its replicas, whose gradients are equal.
  const int blocks = num_blocks(model_);
  at::Tensor squares = at::zeros({blocks + 1}, at::kDouble);
  double* const values = squares.data_ptr<double>();
  if (place_.replica == 0 || groups_.norm.ranks().size() < 2) {
    for (int layer = range_.begin; layer < range_.end; ++layer) {
      if (!layers_.at(layer).trains()) continue;
      const double square_sum = gradient_square_sum(layers_.at(layer));
      if (model_.layers[layer].block) values[*model_.layers[layer].block] += square_sum;
      values[blocks] += square_sum;
    }
  }
  squares = squares.to(device_.torch_device());
  groups_.norm.all_reduce_sum({squares}, "OPTIMIZER_STEP: gradient norm");
  squares = squares.to(at::kCPU);
  iteration.result.block_square_sums.assign(squares.data_ptr<double>(), squares.data_ptr<double>() + blocks);
  const double norm = std::sqrt(squares.data_ptr<double>()[blocks]);
  if (!std::isfinite(norm)) {
    throw RuntimeFailure("rank " + std::to_string(rank_) + ": OPTIMIZER_STEP: the gradient norm is not finite: training has diverged. Try a lower --learning-rate.");
  }
  if (!iteration.apply_update) return;
  iteration.rule.gradient_scale = iteration.gradient_clip > 0 && norm > iteration.gradient_clip ? iteration.gradient_clip / norm : 1;
  for (int layer = range_.begin; layer < range_.end; ++layer) {
    if (layers_.at(layer).trains()) update(layers_.at(layer), iteration.rule);
  }
}

void StageRunner::perform(Iteration& iteration, const Action& action) try {
  switch (action.kind) {
    case ActionKind::forward: return forward(iteration, action);
    case ActionKind::backward: return backward(iteration, action);
    case ActionKind::send_forward:
    case ActionKind::send_backward: return send(iteration, action);
    case ActionKind::recv_forward:
    case ActionKind::recv_backward: return receive(iteration, action);
    case ActionKind::reduce_gradient: return reduce_gradient();
    case ActionKind::optimizer_step: return optimizer_step(iteration);
    default: FROSTPIPE_CHECK(false, "GPipe and 1F1B have no other actions");
  }
} catch (const c10::Error& error) {
  throw RuntimeFailure("rank " + std::to_string(rank_) + ": " + to_string(action) + ": " + error.what_without_backtrace());
}

IterationResult StageRunner::run_iteration(const EncodedData& data, const MiniBatch& batch, int step, UpdateRule rule,
                                           double gradient_clip, Trace& trace, bool apply_update) {
  Iteration iteration{.data = data, .batch = batch, .rule = rule, .gradient_clip = gradient_clip, .apply_update = apply_update};
  const auto is_empty = [&](const Action& action) {
    if (!action.micro_batch) return false;
    const SampleRange range = range_of(iteration, *action.micro_batch);
    return range.begin == range.end;
  };
  for (const Action& action : body_) {
    if (is_empty(action)) continue;
    if (action.kind == ActionKind::recv_forward) iteration.forward_receives.push_back(action);
    if (action.kind == ActionKind::recv_backward) iteration.backward_receives.push_back(action);
  }
  post_receives(iteration, true, receives_ahead_);
  post_receives(iteration, false, receives_ahead_);
  for (const Action& action : body_) {
    if (is_empty(action)) continue;
    const std::string text = to_string(action);
    MemoryMeter::set_action(text.c_str());
    const Nanoseconds begin = now_ns();
    perform(iteration, action);
    if (!is_send(action.kind)) device_.synchronize();
    trace.spans.push_back({rank_, step, action, begin, now_ns()});
    MemoryMeter::set_action("between actions");
  }
  for (Transfer& transfer : iteration.sends) transfer.wait();
  device_.synchronize();
  return std::move(iteration.result);
}

std::vector<int> StageRunner::predict(const EncodedData& data, std::span<const int> samples, int batch_size) {
  std::vector<int> predictions(samples.size(), -1);
  const at::NoGradGuard no_grad;
  std::deque<Transfer> sends;
  const int num_batches = (static_cast<int>(samples.size()) + batch_size - 1) / batch_size;
  for (int index = place_.replica; index < num_batches; index += phase_.layout.data_parallel_size) {
    const MiniBatch mini = mini_batch(data, samples, batch_size, index);
    const MicroBatch batch = make_micro_batch(data, mini.samples, mini.tokens, options());
    at::Tensor activation;
    const std::string what = "evaluation of batch " + std::to_string(index);
    if (!first_) {
      activation = at::empty({batch.size(), mini.tokens, config_.hidden_size}, options());
      groups_.forward.receive(activation, neighbour(-1), index, what).wait();
    }
    activation = run_layers(activation, batch, /*training=*/false);
    if (!last_) {
      sends.push_back(groups_.forward.send(activation, neighbour(1), index, what));
      if (sends.size() > kReceivesAhead) {
        sends.front().wait();
        sends.pop_front();
      }
      continue;
    }
    const at::Tensor labels = activation.argmax(1).to(at::kCPU);
    for (std::int64_t i = 0; i < labels.numel(); ++i) {
      predictions[static_cast<std::size_t>(index) * batch_size + i] = static_cast<int>(labels.data_ptr<std::int64_t>()[i]);
    }
  }
  for (Transfer& transfer : sends) transfer.wait();
  return predictions;
}

}  // namespace frostpipe
