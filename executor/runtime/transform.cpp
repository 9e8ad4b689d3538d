#include "executor/runtime/transform.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "profiles/error.h"

namespace frostpipe {

void carry_out(const std::vector<TensorMove>& moves, const Phase& after, const StageFactory& factory,
               Communicator& communicator, std::map<int, LayerState>& layers) {
  const at::NoGradGuard no_grad;
  // Every rank goes through the moves in the same order, so that both ends of each pair issue theirs alike.
  std::vector<Transfer> transfers;
  for (const TensorMove& move : moves) {
    const bool gives = move.from_rank == communicator.rank(), takes = move.to_rank == communicator.rank();
    if (!gives && !takes) continue;
    if (takes) {
      LayerState arriving = factory.make_layer(move.layer, move.layer >= after.first_trainable_layer);
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
      transfers.push_back(gives ? communicator.movers().send(tensors[i], move.to_rank, tag, what)
                                : communicator.movers().receive(tensors[i], move.from_rank, tag, what));
    }
  }
  for (Transfer& transfer : transfers) transfer.wait();
  const std::optional<Place> place = find_place(after.layout, communicator.rank());
  std::erase_if(layers, [&](const auto& entry) {
    if (!place) return true;
    const LayerRange range = after.partition[place->position];
    return entry.first < range.begin || entry.first >= range.end;
  });
}

void transform(const Transformation& transformation, const Phase& after, const StageFactory& factory,
               Communicator& communicator, std::map<int, LayerState>& layers, std::map<int, ParkedMoments>& parked) {
  for (const int layer : transformation.newly_frozen) {
    const auto held = layers.find(layer);
    if (held == layers.end()) continue;
    const ParkedMoments moments = freeze(held->second);
    if (moments.first_moment.defined()) parked[layer] = moments;
  }
  carry_out(transformation.moves, after, factory, communicator, layers);
}

}  // namespace frostpipe
