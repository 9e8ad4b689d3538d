#include "executor/runtime/reconfigure.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>

#include "executor/device/memory_meter.h"
#include "executor/models/shards.h"
#include "plan/stages.h"

namespace frostpipe {
namespace {

/// Received values to be copied into a layer's flat tensor.
struct Arrival {
  const LayerState* state;
  at::Tensor flat, values;
  ShardOfLayer part;
};

std::vector<at::Tensor> moved_tensors(const LayerState& state, bool with_moments) {
  std::vector<at::Tensor> tensors{state.weights.detach()};
  if (with_moments) std::ranges::copy(defined_tensors(state.moments), std::back_inserter(tensors));
  return tensors;
}

bool is_all_of(const ShardOfLayer& part, const LayerState& state) {
  return part.with_whole && part.slice == state.slice;
}

at::Tensor held_values(const LayerState& state, const at::Tensor& flat, const ShardOfLayer& part) {
  return is_all_of(part, state) ? flat : taken(state.whole, flat, state.slice, part);
}

/// Copies the values that both states have of a layer from `held` to `into`.
void keep_common_part(const LayerState& held, const LayerState& into) {
  const ShardOfLayer part{.slice = common_part(held.slice, into.slice).value_or(TensorSlice{0, 0, 1})};
  const std::vector<at::Tensor> from = moved_tensors(held, into.trains()), to = moved_tensors(into, into.trains());
  for (std::size_t i = 0; i < to.size(); ++i)
    put(into.whole, to[i], into.slice, taken(held.whole, from[i], held.slice, part), part);
}

/// Makes the layers that this rank needs in the phase and does not have, and those of which it needs another part;
/// values that it has already are filled in.
std::map<int, LayerState> layers_to_make(const Phase& after, const StageFactory& factory, int rank,
                                         const std::map<int, LayerState>& layers) {
  std::map<int, LayerState> made;
  const std::optional<MeshCoordinate> coordinate = find_coordinate(after.layout, rank);
  if (!coordinate) return made;
  const TensorSlice slice = slice_of(coordinate->tensor, after.layout.tensor_parallel_size);
  for (const LayerRange& range : layers_on(after, coordinate->pipeline_rank))
    for (int layer = range.begin; layer < range.end; ++layer) {
      const auto held = layers.find(layer);
      if (held != layers.end() && held->second.slice == slice) continue;
      LayerState state = factory.make_layer(layer, layer >= after.first_trainable_layer, slice);
      if (held != layers.end()) keep_common_part(held->second, state);
      made.emplace(layer, std::move(state));
    }
  return made;
}

/// Excludes the weights of removed layers from the counted memory. On a CPU, offloaded weights are the frozen layer's
/// tensor, and count as device memory only while this rank has the layer.
void stop_counting_removed_weights(const std::map<int, LayerState>& layers,
                                   const std::map<int, OffloadedMoments>& offloaded) {
  for (const auto& [layer, moments] : offloaded) {
    const auto held = layers.find(layer);
    if (held == layers.end() || !moments.weights.is_alias_of(held->second.weights))
      MemoryMeter::stop_counting(moments.weights.storage().data_ptr());
  }
}

}  // namespace

void freeze_before(int first_trainable_layer, std::map<int, LayerState>& layers,
                   std::map<int, OffloadedMoments>& offloaded) {
  for (auto& [layer, state] : layers) {
    if (layer >= first_trainable_layer || !state.trains()) continue;
    const OffloadedMoments moments = freeze(state);
    if (moments.weights.defined()) offloaded[layer] = moments;
  }
}

void carry_out(const std::vector<TensorMove>& moves, const Phase& after, const StageFactory& factory,
               Communicator& communicator, std::map<int, LayerState>& layers,
               const std::map<int, OffloadedMoments>& offloaded) {
  const at::NoGradGuard no_grad;
  const int self = communicator.rank();
  const std::optional<MeshCoordinate> coordinate = find_coordinate(after.layout, self);
  std::map<int, LayerState> arriving = layers_to_make(after, factory, self, layers);
  // Every rank processes the moves in the same order, so that both ends of each pair issue theirs in the same order.
  std::vector<Transfer> transfers;
  std::vector<Arrival> arrivals;
  for (const TensorMove& move : moves) {
    const bool gives = move.from_rank == self, takes = move.to_rank == self;
    if (!gives && !takes) continue;
    const LayerState& state = gives ? layers.at(move.layer) : arriving.at(move.layer);
    const ShardOfLayer part{.slice = move.slice, .with_whole = move.with_whole};
    const std::int64_t count = count_of(state.whole, part);
    if (count == 0) continue;
    int tag = move.layer * 4;
    const std::string what = fmt::format("moving layer {}", move.layer);
    for (const at::Tensor& flat : moved_tensors(state, move.with_moments)) {
      Group& group = communicator.weight_transfer_group();
      if (gives) {
        transfers.push_back(group.send(held_values(state, flat, part), move.to_rank, tag++, what));
      } else {
        const at::Tensor values = is_all_of(part, state) ? flat : at::empty({count}, flat.options());
        transfers.push_back(group.receive(values, move.from_rank, tag++, what));
        if (!is_all_of(part, state)) arrivals.push_back({&state, flat, values, part});
      }
    }
  }
  for (Transfer& transfer : transfers) transfer.wait();
  for (const Arrival& arrival : arrivals)
    put(arrival.state->whole, arrival.flat, arrival.state->slice, arrival.values, arrival.part);
  for (auto& [layer, state] : arriving) layers.insert_or_assign(layer, std::move(state));
  std::erase_if(layers, [&](const auto& entry) {
    if (!coordinate) return true;
    const std::vector<LayerRange> needed = layers_on(after, coordinate->pipeline_rank);
    return std::none_of(needed.begin(), needed.end(),
                        [&](const LayerRange& range) { return range.begin <= entry.first && entry.first < range.end; });
  });
  stop_counting_removed_weights(layers, offloaded);
}

void reconfigure(const Reconfiguration& reconfiguration, const Phase& after, const StageFactory& factory,
                 Communicator& communicator, std::map<int, LayerState>& layers,
                 std::map<int, OffloadedMoments>& offloaded) {
  freeze_before(after.first_trainable_layer, layers, offloaded);
  carry_out(reconfiguration.moves, after, factory, communicator, layers, offloaded);
}

}  // namespace frostpipe
