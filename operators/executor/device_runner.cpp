#include "operators/executor/device_runner.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace frostpipe {

namespace {

/// Takes one step of the optimizer on `values`, all of which are subject to weight decay.
void update_all(const at::Tensor& values, const at::Tensor& gradient, const at::Tensor& momentum,
                const UpdateRule& rule) {
  update({{.weights = values.view(-1),
           .gradients = gradient.view(-1),
           .moments = {.first = momentum.view(-1)},
           .num_decayed = values.numel()}},
         rule);
}

}  // namespace

/// A task's inputs; tensors that it does not read are undefined.
struct DeviceRunner::Inputs {
  at::Tensor gradient;    // incoming gradient (grad_output), summed over the operators that contribute to it
  at::Tensor product;     // output of this layer's convolution
  at::Tensor normalised;  // this layer's output
  at::Tensor activation;  // input of this layer, or the addend of its batch norm, or the scores of the loss
  NormStatistics statistics;
  at::Tensor sums;             // of the batch norm's gradient
  at::Tensor weight_gradient;  // summed over all samples, for the updated part of the weights
};

DeviceRunner::DeviceRunner(const NetShape& net, const OperatorPlan& plan, const OperatorTasks& tasks, int device,
                           TensorExchange& exchange)
    : net_(net),
      plan_(plan),
      tasks_(tasks),
      device_(device),
      exchange_(exchange),
      own_(tasks_of_device(plan, tasks, device)) {
  inputs_.resize(plan.graph.operators.size());
  parts_.resize(plan.graph.operators.size());
  for (std::size_t edge = 0; edge < plan.graph.edges.size(); ++edge)
    inputs_[plan.graph.edges[edge].to].push_back(static_cast<int>(edge));
  for (std::size_t task = 0; task < tasks.tasks.size(); ++task)
    parts_[tasks.tasks[task].op].push_back(static_cast<int>(task));
  needed_ = find_samples_needed();
  last_use_.resize(net.layers.size(), -1);
  for (int place = 0; place < static_cast<int>(own_.order.size()); ++place) {
    const Operator& op = plan.graph.operators[tasks.tasks[own_.order[place]].op];
    if (reads_weights(op.kind)) last_use_[op.layer] = place;
  }
  new_weights_from_.resize(own_.order.size() + 1);
  for (const int transfer : own_.new_weights)
    new_weights_from_[last_use_[layer_of(tasks.transfers[transfer].task)] + 1].push_back(transfer);
}

SampleRange DeviceRunner::find_samples_needed() const {
  int begin = plan_.graph.batch, end = 0;
  for (const int task : own_.order) {
    const OperatorTask& one = tasks_.tasks[task];
    const Operator& op = plan_.graph.operators[one.op];
    const bool reads_pictures = !is_pooling(net_.layers[op.layer]) && net_.layers[op.layer].input < 0 &&
                                (op.kind == OperatorKind::forward || op.kind == OperatorKind::weight_gradient);
    if (!reads_pictures && !is_loss(op)) continue;
    begin = std::min(begin, one.begin);
    end = std::max(end, one.end);
  }
  return begin < end ? SampleRange{begin, end} : SampleRange{};
}

void DeviceRunner::begin_iteration(const NetState& state, const at::Tensor& pictures, const at::Tensor& labels) {
  FROSTPIPE_CHECK(values_.empty() && pending_.empty(), "an iteration begins when the one before has ended");
  state_ = &state;
  pictures_ = pictures;
  labels_ = labels;
  expected_ = 0;
  loss_ = 0;
}

void DeviceRunner::run_task(int place, std::vector<NetMomentum>& momentum, const UpdateRule& rule) {
  place_ = place;
  const int task = own_.order[place];
  const Operator& op = plan_.graph.operators[tasks_.tasks[task].op];
  {
    const Inputs inputs = inputs_of(task);
    if (op.kind == OperatorKind::update)
      update(task, inputs, momentum[op.layer], rule);
    else if (op.kind == OperatorKind::norm_update)
      update_norm(task, inputs, momentum[op.layer], rule);
    else
      keep(task, output_of(task, inputs));
  }
  for (const int read : own_.reads[place]) values_.release(tasks_.tasks[read].op, read);
}

void DeviceRunner::send_outputs() {
  for (const Outgoing& one : outgoing_) exchange_.send(one.transfer, one.tensor);
  outgoing_.clear();
}

double DeviceRunner::end_iteration(NetState& state) {
  expect_new_weights(static_cast<int>(own_.order.size()));
  for (const int transfer : own_.new_weights) exchange_.take(transfer);
  exchange_.end_iteration();
  for (const NewWeights& fresh : pending_) {
    NetLayerState& layer = state[fresh.layer];
    if (fresh.weights.defined()) layer.weights.narrow(0, fresh.begin, fresh.weights.size(0)).copy_(fresh.weights);
    if (!fresh.norm.defined()) continue;
    layer.norm.copy_(fresh.norm);
    update_running(layer, fresh.statistics);
  }
  pending_.clear();
  FROSTPIPE_CHECK(values_.empty(), "all that was read is dropped");
  return std::exchange(loss_, 0);
}

/// Posts the receives of the new weights of layers whose old weights no task from `place` on reads. The new weights
/// overwrite the old ones.
void DeviceRunner::expect_new_weights(int place) {
  for (const int transfer : new_weights_from_[place]) {
    const int task = tasks_.transfers[transfer].task;
    exchange_.expect(transfer, part_of((*state_)[layer_of(task)].weights, task));
  }
}

/// Posts the receives of kTasksAhead tasks, beginning with this one, and of new weights that may arrive now, and waits
/// for those of this task.
void DeviceRunner::wait_for(int place) {
  expect_new_weights(place);
  for (; expected_ < std::min(place + kTasksAhead, static_cast<int>(own_.order.size())); ++expected_)
    for (const int transfer : own_.transfers_for[expected_]) {
      const TaskTransfer& one = tasks_.transfers[transfer];
      const auto into = empty_for(transfer);
      exchange_.expect(transfer, into);
      values_.add(tasks_.tasks[one.task].op,
                  {.task = one.task,
                   .begin = one.begin,
                   .end = one.end,
                   .tensor = into,
                   .num_readers = static_cast<int>(tasks_.transfer_readers[transfer].size())});
    }
  for (const int transfer : own_.transfers_for[place]) exchange_.take(transfer);
}

void DeviceRunner::keep(int task, const at::Tensor& output) {
  const OperatorTask& one = tasks_.tasks[task];
  const OperatorKind kind = plan_.graph.operators[one.op].kind;
  for (const int transfer : tasks_.transfers_of[task]) {
    const TaskTransfer& what = tasks_.transfers[transfer];
    if (what.begin < what.end)
      outgoing_.push_back({transfer, output.narrow(0, what.begin - one.begin, what.end - what.begin).contiguous()});
    else if (kind == OperatorKind::weight_gradient)
      outgoing_.push_back({transfer, part_of(output, tasks_.transfer_readers[transfer].front())});
    else
      outgoing_.push_back({transfer, output});
  }
  values_.add(one.op, {.task = task,
                       .begin = one.begin,
                       .end = one.end,
                       .tensor = output,
                       .num_readers = static_cast<int>(tasks_.local_readers[task].size())});
}

DeviceRunner::Inputs DeviceRunner::inputs_of(int task) const {
  const OperatorTask& one = tasks_.tasks[task];
  const Operator& op = plan_.graph.operators[one.op];
  Inputs inputs;
  for (const int edge_index : inputs_[one.op]) {
    const OperatorEdge& edge = plan_.graph.edges[edge_index];
    const Operator& from = plan_.graph.operators[edge.from];
    if (edge.kind == OperatorEdgeKind::weight_gradient) {
      inputs.weight_gradient = weight_gradient_from(edge.from, task);
    } else if (from.kind == OperatorKind::statistics) {
      inputs.statistics = statistics_from(edge.from);
    } else if (from.kind == OperatorKind::statistics_gradient) {
      inputs.sums = sum_from(edge.from);
    } else {
      const auto samples = values_.samples(edge.from, one.begin, one.end);
      if (is_gradient(from))
        inputs.gradient = inputs.gradient.defined() ? inputs.gradient + samples : samples;
      else if (from.layer == op.layer && from.kind == OperatorKind::forward && !is_loss(op))
        inputs.product = samples;
      else if (from.layer == op.layer && from.kind == OperatorKind::normalise)
        inputs.normalised = samples;
      else
        inputs.activation = samples;
    }
  }
  const bool reads_pictures = !inputs.activation.defined() && net_.layers[op.layer].input < 0 &&
                              (op.kind == OperatorKind::forward || op.kind == OperatorKind::weight_gradient);
  if (reads_pictures) inputs.activation = pictures_.narrow(0, one.begin - needed_.begin, one.end - one.begin);
  if (!inputs.statistics.mean.defined() && op.kind == OperatorKind::normalise)
    inputs.statistics = running((*state_)[op.layer]);
  return inputs;
}

/// Computes the output of a task that is no update. For a layer with a ReLU and without batch norm, the input gradient
/// and the weight gradient have the layer's product as an input, only to mask the incoming gradient by it.
at::Tensor DeviceRunner::output_of(int task, const Inputs& in) {
  const OperatorTask& one = tasks_.tasks[task];
  const Operator& op = plan_.graph.operators[one.op];
  const NetLayer& layer = net_.layers[op.layer];
  const NetLayerState& state = (*state_)[op.layer];
  const auto unmasked = [&] { return in.product.defined() ? masked(layer, in.gradient, in.product) : in.gradient; };
  switch (op.kind) {
    case OperatorKind::forward:
      return product(layer, state, in.activation);
    case OperatorKind::statistics:
      return partial_statistics(in.product);
    case OperatorKind::normalise:
      return normalise(layer, state, in.statistics, in.product, in.activation);
    case OperatorKind::elementwise: {
      if (!is_loss(op)) return pool(layer, in.activation);
      const auto part = cross_entropy(in.activation, labels_.narrow(0, one.begin - needed_.begin, one.end - one.begin),
                                      plan_.graph.batch);
      loss_ += part.loss;
      return part.gradient;
    }
    case OperatorKind::elementwise_gradient:
      if (is_pooling(layer)) return pool_gradient(layer, in.gradient, in.activation);
      return in.normalised.defined() ? masked(layer, in.gradient, in.normalised) : in.gradient;
    case OperatorKind::statistics_gradient:
      return partial_norm_gradient(layer, in.statistics, in.product,
                                   before_relu(layer, state, in.statistics, in.product, in.gradient));
    case OperatorKind::normalise_gradient:
      return normalise_gradient(layer, state, in.statistics, in.product,
                                before_relu(layer, state, in.statistics, in.product, in.gradient), in.sums);
    case OperatorKind::input_gradient:
      return input_gradient(layer, state, unmasked()).reshape(shape_of(one.op, one.end - one.begin));
    case OperatorKind::weight_gradient:
      return weight_gradient(layer, in.activation, unmasked());
    default:
      break;
  }
  FROSTPIPE_CHECK(false, "updates have no output of samples");
}

/// Updates the weights in place if no later task reads them; otherwise end_iteration() writes them.
void DeviceRunner::update(int task, const Inputs& inputs, NetMomentum& momentum, const UpdateRule& rule) {
  const auto weights = part_of((*state_)[layer_of(task)].weights, task);
  const bool in_place = place_ > last_use_[layer_of(task)];
  auto fresh = in_place ? weights : weights.clone();
  update_all(fresh, inputs.weight_gradient, momentum.weights, rule);
  for (const int transfer : tasks_.transfers_of[task]) outgoing_.push_back({transfer, fresh});
  if (!in_place) pending_.push_back({.layer = layer_of(task), .begin = part_begin(task), .weights = std::move(fresh)});
}

void DeviceRunner::update_norm(int task, const Inputs& inputs, NetMomentum& momentum, const UpdateRule& rule) {
  const int layer = layer_of(task);
  auto norm = (*state_)[layer].norm.clone();
  update_all(norm, inputs.sums.flip(0), momentum.norm, rule);  // `sums` has shift first, `norm` has scale first
  pending_.push_back({.layer = layer, .norm = std::move(norm), .statistics = inputs.statistics});
}

NormStatistics DeviceRunner::statistics_from(int op) const {
  const NetLayer& layer = net_.layers[plan_.graph.operators[op].layer];
  std::vector<at::Tensor> parts;
  std::vector<std::int64_t> counts;
  for (const int task : parts_[op]) {
    const OperatorTask& one = tasks_.tasks[task];
    parts.push_back(values_.of_task(op, task));
    counts.push_back(std::int64_t{one.end - one.begin} * layer.out_size * layer.out_size);
  }
  return merged(parts, counts);
}

at::Tensor DeviceRunner::sum_from(int op) const {
  at::Tensor sum;
  for (const int task : parts_[op]) sum = sum.defined() ? sum + values_.of_task(op, task) : values_.of_task(op, task);
  return sum;
}

at::Tensor DeviceRunner::weight_gradient_from(int op, int update_task) const {
  at::Tensor sum;
  for (const int task : parts_[op]) {
    const auto& piece = values_.of_task(op, task);
    const auto part = tasks_.tasks[task].device == device_ ? part_of(piece, update_task) : piece;
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

int DeviceRunner::layer_of(int task) const { return plan_.graph.operators[tasks_.tasks[task].op].layer; }

/// Returns the first parameter of the part that an update task changes.
std::int64_t DeviceRunner::part_begin(int task) const { return begin_of(task, tasks_.tasks[task].begin); }

at::Tensor DeviceRunner::part_of(const at::Tensor& weights, int update_task) const {
  const std::int64_t begin = part_begin(update_task);
  return weights.narrow(0, begin, begin_of(update_task, tasks_.tasks[update_task].end) - begin);
}

std::int64_t DeviceRunner::begin_of(int update_task, int part) const {
  return frostpipe::part_begin(num_weights(net_.layers[layer_of(update_task)]), part,
                               std::ssize(parts_[tasks_.tasks[update_task].op]));
}

bool DeviceRunner::is_loss(const Operator& op) const {
  return op.kind == OperatorKind::elementwise && !is_pooling(net_.layers[op.layer]);
}

bool DeviceRunner::is_gradient(const Operator& op) const {
  return is_loss(op) || op.kind == OperatorKind::elementwise_gradient || op.kind == OperatorKind::input_gradient ||
         op.kind == OperatorKind::normalise_gradient;
}

/// Returns the shape of an operator's output for `num_samples` samples.
std::vector<std::int64_t> DeviceRunner::shape_of(int op, int num_samples) const {
  const Operator& one = plan_.graph.operators[op];
  const NetLayer& layer = net_.layers[one.layer];
  const bool of_input =
      one.kind == OperatorKind::input_gradient || (one.kind == OperatorKind::elementwise_gradient && is_pooling(layer));
  if (!of_input) return {num_samples, layer.out_channels, layer.out_size, layer.out_size};
  const NetLayer& before = net_.layers[layer.input];
  return {num_samples, before.out_channels, before.out_size, before.out_size};
}

at::Tensor DeviceRunner::empty_for(int transfer) const {
  const TaskTransfer& what = tasks_.transfers[transfer];
  const int op = tasks_.tasks[what.task].op;
  const Operator& one = plan_.graph.operators[op];
  const auto empty = [&](const std::vector<std::int64_t>& shape) { return at::empty(shape, pictures_.options()); };
  const auto size_of_part = [&](int update_task) {
    return begin_of(update_task, tasks_.tasks[update_task].end) - part_begin(update_task);
  };
  switch (one.kind) {
    case OperatorKind::statistics:
    case OperatorKind::statistics_gradient:
      return empty({2, net_.layers[one.layer].out_channels});
    case OperatorKind::weight_gradient:
      return empty({size_of_part(tasks_.transfer_readers[transfer].front())});
    default:
      return empty(shape_of(op, what.end - what.begin));
  }
}

}  // namespace frostpipe
