#include "operators/training/layer_mover.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "operators/executor/device_tasks.h"

namespace frostpipe {
namespace {

constexpr int kTag = 1 << 24;  // tag of messages that are not transfers of a plan

/// Packs scale, shift, running statistics and the number of mini-batches of a batch norm into one row of doubles.
at::Tensor packed(const NetLayerState& state) {
  const auto count = at::full({1}, static_cast<double>(state.num_batches), at::kDouble);
  return at::cat({state.norm.reshape(-1).to(at::kDouble), state.running_mean.to(at::kDouble),
                  state.running_variance.to(at::kDouble), count});
}

void unpack(const at::Tensor& row, int channels, at::ScalarType type, NetLayerState& state) {
  state.norm = row.narrow(0, 0, 2 * channels).view({2, channels}).to(type);
  state.running_mean = row.narrow(0, 2 * channels, channels).to(type);
  state.running_variance = row.narrow(0, 3 * channels, channels).to(type);
  state.num_batches = static_cast<std::int64_t>(row[4 * channels].item<double>());
}

}  // namespace

LayerMover::LayerMover(const NetShape& net, Group& group, at::ScalarType type)
    : net_(net), group_(group), type_(type) {}

at::Tensor LayerMover::copy_of(const at::Tensor& values) const {
  return values.to(type_, /*non_blocking=*/false, /*copy=*/true);
}

at::Tensor LayerMover::move(const at::Tensor& tensor, std::int64_t size, int from, int to, const std::string& what) {
  const int self = group_.self();
  if (self != from && self != to) return {};
  const auto values = self == from ? tensor.reshape(-1).to(at::kDouble) : at::empty({size}, at::kDouble);
  if (from == to) return values;
  if (self == from)
    group_.send(values, to, kTag, what).wait();
  else
    group_.receive(values, from, kTag, what).wait();
  return self == to ? values : at::Tensor();
}

WholeLayer LayerMover::collect(int layer, const LayerHolders& holders, const NetState& state,
                               const std::vector<NetMomentum>& momentum, bool with_momentum) {
  const NetLayer& shape = net_.layers[layer];
  const bool leads = group_.self() == 0;
  const std::string what = fmt::format("collecting layer {}", shape.name);
  WholeLayer whole;
  if (is_pooling(shape)) return whole;
  const auto weights = move(state[layer].weights, num_weights(shape), holders.weights.front(), 0, what);
  if (leads) whole.state.weights = copy_of(weights);
  if (shape.batch_norm) {
    const int from = holders.norm.front();
    const auto row =
        move(group_.self() == from ? packed(state[layer]) : at::Tensor(), 4 * shape.out_channels + 1, from, 0, what);
    if (leads) unpack(row, shape.out_channels, type_, whole.state);
  }
  if (!with_momentum) return whole;
  if (leads) whole.momentum.weights = at::zeros({num_weights(shape)}, type_);
  if (leads && shape.batch_norm) whole.momentum.norm = at::zeros({2, shape.out_channels}, type_);
  const std::int64_t num_parts = std::ssize(holders.updates);
  for (std::int64_t part = 0; part < num_parts; ++part) {
    const std::int64_t begin = part_begin(num_weights(shape), part, num_parts);
    const std::int64_t size = part_begin(num_weights(shape), part + 1, num_parts) - begin;
    const auto values = move(momentum[layer].weights, size, holders.updates[part], 0, what);
    if (leads) whole.momentum.weights.narrow(0, begin, size).copy_(values);
  }
  if (!holders.norm_updates.empty()) {
    const auto values = move(momentum[layer].norm, 2 * shape.out_channels, holders.norm_updates.front(), 0, what);
    if (leads) whole.momentum.norm.copy_(values.view({2, shape.out_channels}));
  }
  return whole;
}

void LayerMover::give(int layer, const LayerHolders& holders, const WholeLayer& whole, NetState& state,
                      std::vector<NetMomentum>& momentum) {
  const NetLayer& shape = net_.layers[layer];
  const bool leads = group_.self() == 0;
  const std::string what = fmt::format("distributing layer {}", shape.name);
  state[layer] = {};
  momentum[layer] = {};
  if (is_pooling(shape)) return;
  for (const int to : holders.weights) {
    const auto values = move(whole.state.weights, num_weights(shape), 0, to, what);
    if (values.defined()) state[layer].weights = copy_of(values);
  }
  for (const int to : holders.norm) {
    const auto row = move(leads ? packed(whole.state) : at::Tensor(), 4 * shape.out_channels + 1, 0, to, what);
    if (row.defined()) unpack(row, shape.out_channels, type_, state[layer]);
  }
  const std::int64_t num_parts = std::ssize(holders.updates);
  for (std::int64_t part = 0; part < num_parts; ++part) {
    const std::int64_t begin = part_begin(num_weights(shape), part, num_parts);
    const std::int64_t size = part_begin(num_weights(shape), part + 1, num_parts) - begin;
    const int to = holders.updates[part];
    const auto values = move(leads ? whole.momentum.weights.narrow(0, begin, size) : at::Tensor(), size, 0, to, what);
    if (values.defined()) momentum[layer].weights = copy_of(values);
  }
  for (const int to : holders.norm_updates) {
    const auto values = move(whole.momentum.norm, 2 * shape.out_channels, 0, to, what);
    if (values.defined()) momentum[layer].norm = copy_of(values).view({2, shape.out_channels});
  }
}

}  // namespace frostpipe
