#include "executor/checkpoint/rank_inventory.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "plan/layout.h"
#include "plan/stages.h"

namespace frostpipe {
namespace {

bool contains(const std::vector<int>& values, int value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::vector<int> to_numbers(const TensorSlice& slice) { return {slice.begin, slice.end, slice.of}; }

TensorSlice slice_from(const nlohmann::json& json) { return {json.at(0), json.at(1), json.at(2)}; }

/// Returns the ranks with a part of the layer, the lowest first.
std::vector<LayerPart> parts_of(const std::vector<RankInventory>& inventories, int layer) {
  std::vector<LayerPart> parts;
  for (int rank = 0; rank < static_cast<int>(inventories.size()); ++rank)
    if (const RankInventory& inventory = inventories[rank]; inventory.step >= 0 && contains(inventory.layers, layer))
      parts.push_back({.rank = rank, .slice = inventory.slice});
  return parts;
}

/// Returns the ranks with a part of the layer's moments, offloaded or with the layer; the lowest first.
std::vector<LayerPart> moments_of(const std::vector<RankInventory>& inventories, int layer) {
  std::vector<LayerPart> parts;
  for (int rank = 0; rank < static_cast<int>(inventories.size()); ++rank) {
    const RankInventory& inventory = inventories[rank];
    if (inventory.step < 0) continue;
    if (contains(inventory.trainable, layer)) parts.push_back({.rank = rank, .slice = inventory.slice});
    for (const OffloadedLayer& offloaded : inventory.offloaded)
      if (offloaded.layer == layer) parts.push_back({.rank = rank, .slice = offloaded.slice});
  }
  return parts;
}

/// Returns the ranks that need a part of the layer in the phase, the lowest first.
std::vector<LayerPart> receivers_of(const Phase& phase, int layer) {
  const ParallelLayout& layout = phase.layout;
  const int pipeline_rank = find_coordinate(layout, replicas_of_layer(phase, layer).front())->pipeline_rank;
  std::vector<LayerPart> receivers;
  for (int tensor = 0; tensor < layout.tensor_parallel_size; ++tensor)
    for (const int rank : replicas_of(layout, pipeline_rank, tensor))
      receivers.push_back({.rank = rank, .slice = slice_of(tensor, layout.tensor_parallel_size)});
  std::ranges::sort(receivers, {}, &LayerPart::rank);
  return receivers;
}

}  // namespace

bool can_describe_run(const RankInventory& inventory) {
  return inventory.step >= 0 && !inventory.trainable.empty() && inventory.num_recorded >= inventory.step;
}

std::optional<double> norm_of_next_step(const std::vector<RankInventory>& inventories, const RankInventory& own) {
  if (!own.lacks_norm) return std::nullopt;
  for (const RankInventory& other : inventories)
    if (other.step == own.step + 1 && other.phase_from == own.phase_from && can_describe_run(other))
      return other.gradient_norm;
  return std::nullopt;
}

std::vector<RankInventory> with_completed_steps(const std::vector<RankInventory>& inventories) {
  std::vector<RankInventory> completed = inventories;
  for (RankInventory& inventory : completed) {
    const std::optional<double> norm = norm_of_next_step(inventories, inventory);
    if (!norm) continue;
    ++inventory.step;
    inventory.gradient_norm = norm;
    inventory.lacks_norm = false;
  }
  return completed;
}

std::string to_text(const RankInventory& inventory) {
  nlohmann::json offloaded = nlohmann::json::array();
  for (const auto& [layer, slice] : inventory.offloaded) offloaded.push_back({layer, to_numbers(slice)});
  const nlohmann::json norm = inventory.gradient_norm ? nlohmann::json(*inventory.gradient_norm) : nlohmann::json();
  return nlohmann::json{inventory.step,
                        inventory.phase_from,
                        inventory.num_recorded,
                        inventory.layers,
                        inventory.trainable,
                        to_numbers(inventory.slice),
                        offloaded,
                        norm,
                        inventory.lacks_norm}
      .dump();
}

RankInventory inventory_from_text(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  RankInventory inventory{json.at(0), json.at(1), json.at(2), json.at(3), json.at(4), slice_from(json.at(5)), {}};
  for (const nlohmann::json& one : json.at(6))
    inventory.offloaded.push_back({.layer = one.at(0), .slice = slice_from(one.at(1))});
  if (const nlohmann::json& norm = json.at(7); !norm.is_null()) inventory.gradient_norm = norm.get<double>();
  inventory.lacks_norm = json.at(8);
  return inventory;
}

std::vector<RankInventory> consistent_with(const std::vector<RankInventory>& inventories,
                                           const RankInventory& reference, int first_trainable_layer) {
  std::vector<RankInventory> fitting = inventories;
  for (RankInventory& inventory : fitting) {
    const bool is_there = inventory.step == reference.step && inventory.phase_from == reference.phase_from;
    std::erase_if(inventory.layers, [&](int layer) {
      return contains(inventory.trainable, layer) ? !is_there : layer >= first_trainable_layer;
    });
    std::erase_if(inventory.offloaded,
                  [&](const OffloadedLayer& offloaded) { return offloaded.layer >= first_trainable_layer; });
    if (!is_there) inventory.trainable.clear();
  }
  return fitting;
}

bool hold_all_layers(const std::vector<RankInventory>& inventories, int num_layers,
                     const std::vector<int>& needs_moments) {
  for (int layer = 0; layer < num_layers; ++layer)
    if (whole_from(parts_of(inventories, layer)).empty()) return false;
  return std::ranges::none_of(needs_moments,
                              [&](int layer) { return whole_from(moments_of(inventories, layer)).empty(); });
}

std::vector<TensorMove> moves_to_restore(const std::vector<RankInventory>& inventories, const Phase& phase) {
  std::vector<TensorMove> moves;
  for (int layer = 0; layer < phase.partition.back().end; ++layer) {
    const std::vector<LayerPart> held = parts_of(inventories, layer);
    const std::vector<LayerPart> pieces = whole_from(held);
    FROSTPIPE_CHECK(!pieces.empty(), "every layer is with survivors");
    std::map<int, std::size_t> turns;  // index of the piece to use next, by where pieces begin
    for (const LayerPart& receiver : receivers_of(phase, layer)) {
      const auto own = std::ranges::find(held, receiver.rank, &LayerPart::rank);
      bool with_whole = own == held.end();
      for (const LayerPart& piece : pieces) {
        const std::optional<TensorSlice> part = common_part(piece.slice, receiver.slice);
        if (!part || (own != held.end() && is_within(*part, own->slice))) continue;
        std::vector<int> sources;
        for (const LayerPart& source : held)
          if (source.slice == piece.slice) sources.push_back(source.rank);
        moves.push_back({.layer = layer,
                         .from_rank = sources[turns[piece.slice.begin]++ % sources.size()],
                         .to_rank = receiver.rank,
                         .with_moments = layer >= phase.first_trainable_layer,
                         .slice = *part,
                         .with_whole = std::exchange(with_whole, false)});
      }
    }
  }
  return moves;
}

}  // namespace frostpipe
