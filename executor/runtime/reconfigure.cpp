#include "executor/runtime/reconfigure.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>

#include "plan/stages.h"
#include "profiles/error.h"

namespace frostpipe {

void freeze_before(int first_trainable_layer, std::map<int, LayerState>& layers,
                   std::map<int, OffloadedMoments>& offloaded) {
  for (auto& [layer, state] : layers) {
    if (layer >= first_trainable_layer || !state.trains()) continue;
    const OffloadedMoments moments = freeze(state);
    if (moments.first_moment.defined()) offloaded[layer] = moments;
  }
}

void carry_out(const std::vector<TensorMove>& moves, const Phase& after, const StageFactory& factory,
               Communicator& communicator, std::map<int, LayerState>& layers) {
  const at::NoGradGuard no_grad;
  // Every rank goes through the moves in the same order, so that both ends of each pair issue theirs alike.
  std::vector<Transfer> transfers;
  const std::optional<MeshCoordinate> coordinate = find_coordinate(after.layout, communicator.rank());
  for (const TensorMove& move : moves) {
    const bool gives = move.from_rank == communicator.rank(), takes = move.to_rank == communicator.rank();
    if (!gives && !takes) continue;
    if (takes) {
      FROSTPIPE_CHECK(coordinate, "idle ranks take no layers");
      LayerState arriving = factory.make_layer(move.layer, move.layer >= after.first_trainable_layer,
                                               slice_of(coordinate->tensor, after.layout.tensor_parallel_size));
      FROSTPIPE_CHECK(layers.emplace(move.layer, std::move(arriving)).second,
                      "a layer moves only to ranks that lack it");
    }
    LayerState& state = layers.at(move.layer);
    std::vector<at::Tensor> tensors{state.weights};
    if (move.with_moments && state.first_moment.defined())
      tensors.insert(tensors.end(), {state.first_moment, state.second_moment});
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const int tag = move.layer * 4 + static_cast<int>(i);
      const std::string what = fmt::format("moving layer {}", move.layer);
      transfers.push_back(gives ? communicator.weight_transfer_group().send(tensors[i], move.to_rank, tag, what)
                                : communicator.weight_transfer_group().receive(tensors[i], move.from_rank, tag, what));
    }
  }
  for (Transfer& transfer : transfers) transfer.wait();
  std::erase_if(layers, [&](const auto& entry) {
    if (!coordinate) return true;
    const std::vector<LayerRange> needed = layers_on(after, coordinate->pipeline_rank);
    return std::none_of(needed.begin(), needed.end(),
                        [&](const LayerRange& range) { return range.begin <= entry.first && entry.first < range.end; });
  });
}

void reconfigure(const Reconfiguration& reconfiguration, const Phase& after, const StageFactory& factory,
                 Communicator& communicator, std::map<int, LayerState>& layers,
                 std::map<int, OffloadedMoments>& offloaded) {
  freeze_before(after.first_trainable_layer, layers, offloaded);
  carry_out(reconfiguration.moves, after, factory, communicator, layers);
}

}  // namespace frostpipe
