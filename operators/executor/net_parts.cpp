#include "operators/executor/net_parts.h"

#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "operators/executor/device_tasks.h"

namespace frostpipe {
namespace {

bool holds(const std::vector<int>& devices, int device) { return std::ranges::binary_search(devices, device); }

}  // namespace

std::vector<NetMomentum> no_momentum(const NetState& state) {
  std::vector<NetMomentum> momentum;
  for (const auto& layer : state)
    momentum.push_back({.weights = layer.weights.defined() ? at::zeros_like(layer.weights) : at::Tensor(),
                        .norm = layer.norm.defined() ? at::zeros_like(layer.norm) : at::Tensor()});
  return momentum;
}

std::vector<LayerHolders> holders_by_layer(const OperatorPlan& plan) {
  std::vector<LayerHolders> holders(num_layers(plan.graph));
  const auto of_updates = holders_of(plan.graph, plan.placement);
  for (std::size_t op = 0; op < plan.graph.operators.size(); ++op) {
    const Operator& one = plan.graph.operators[op];
    LayerHolders& layer = holders[one.layer];
    if (one.kind == OperatorKind::update) layer.updates = of_updates[op];
    if (one.kind == OperatorKind::norm_update) layer.norm_updates = of_updates[op];
    for (const auto& range : plan.placement[op]) {
      if (reads_weights(one.kind)) layer.weights.push_back(range.device);
      if (reads_norm(one.kind)) layer.norm.push_back(range.device);
    }
  }
  for (LayerHolders& layer : holders)
    for (auto* devices : {&layer.weights, &layer.norm}) {
      std::ranges::sort(*devices);
      devices->erase(std::unique(devices->begin(), devices->end()), devices->end());
    }
  return holders;
}

NetState held_by(int device, const std::vector<LayerHolders>& holders, const NetState& whole) {
  NetState held(whole.size());
  for (std::size_t layer = 0; layer < whole.size(); ++layer) {
    if (holds(holders[layer].norm, device)) held[layer] = whole[layer];
    held[layer].weights = holds(holders[layer].weights, device) ? whole[layer].weights : at::Tensor();
  }
  return held;
}

std::vector<NetMomentum> held_by(int device, const std::vector<LayerHolders>& holders,
                                 const std::vector<NetMomentum>& whole) {
  std::vector<NetMomentum> held(whole.size());
  for (std::size_t layer = 0; layer < whole.size(); ++layer) {
    const auto& [weights, norm, updates, norm_updates] = holders[layer];
    if (holds(norm_updates, device)) held[layer].norm = whole[layer].norm;
    if (!holds(updates, device)) continue;
    const std::int64_t part = std::ranges::find(updates, device) - updates.begin();
    const std::int64_t count = whole[layer].weights.numel(), begin = part_begin(count, part, std::ssize(updates));
    held[layer].weights =
        whole[layer].weights.narrow(0, begin, part_begin(count, part + 1, std::ssize(updates)) - begin);
  }
  return held;
}

}  // namespace frostpipe
