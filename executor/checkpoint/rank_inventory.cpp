#include "executor/checkpoint/rank_inventory.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "plan/layout.h"
#include "plan/stages.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

bool contains(const std::vector<int>& values, int value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

bool knows_the_run(const RankInventory& inventory) {
  return inventory.step >= 0 && !inventory.trainable.empty() && inventory.num_recorded >= inventory.step;
}

std::string to_text(const RankInventory& inventory) {
  return nlohmann::json{inventory.step,   inventory.phase_from, inventory.num_recorded,
                        inventory.layers, inventory.trainable,  inventory.offloaded}
      .dump();
}

RankInventory inventory_from_text(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  return {json.at(0), json.at(1), json.at(2), json.at(3), json.at(4), json.at(5)};
}

std::optional<int> common_step(const std::vector<RankInventory>& inventories, int num_layers, int first_trainable_layer,
                               const std::vector<int>& needs_moments) {
  const RankInventory* first = nullptr;
  std::vector<bool> held(num_layers, false);
  for (const RankInventory& inventory : inventories) {
    if (inventory.step < 0) continue;
    for (const int layer : inventory.layers) {
      held[layer] = true;
      if (layer >= first_trainable_layer && !contains(inventory.trainable, layer)) return std::nullopt;
    }
    if (inventory.trainable.empty()) continue;  // frozen layers do not change with the steps
    if (!first) first = &inventory;
    if (inventory.step != first->step || inventory.phase_from != first->phase_from) return std::nullopt;
  }
  if (!first || std::find(held.begin(), held.end(), false) != held.end()) return std::nullopt;
  for (const int layer : needs_moments) {
    const auto has = [&](const RankInventory& inventory) {
      return inventory.step >= 0 && (contains(inventory.offloaded, layer) || contains(inventory.trainable, layer));
    };
    if (std::none_of(inventories.begin(), inventories.end(), has)) return std::nullopt;
  }
  return first->step;
}

std::vector<TensorMove> moves_to_restore(const std::vector<RankInventory>& inventories, const Phase& phase) {
  std::vector<TensorMove> moves;
  for (int stage = 0; stage < num_stages(phase); ++stage) {
    const LayerRange range = phase.partition[stage];
    for (int layer = range.begin; layer < range.end; ++layer) {
      std::vector<int> sources;
      for (std::size_t rank = 0; rank < inventories.size(); ++rank) {
        if (inventories[rank].step >= 0 && contains(inventories[rank].layers, layer))
          sources.push_back(static_cast<int>(rank));
      }
      FROSTPIPE_CHECK(!sources.empty(), "every layer is with a survivor");
      const bool with_moments = layer >= phase.first_trainable_layer;
      std::vector<int> takers = replicas_of_stage(phase, stage);
      std::sort(takers.begin(), takers.end());
      std::size_t next = 0;
      for (const int rank : takers) {
        if (!contains(sources, rank)) moves.push_back({layer, sources[next++ % sources.size()], rank, with_moments, 0});
      }
    }
  }
  return moves;
}

}  // namespace frostpipe
