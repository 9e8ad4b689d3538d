#include "executor/checkpoint/holdings.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "plan/layout.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

bool contains(const std::vector<int>& values, int value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

bool knows_the_run(const Holding& holding) {
  return holding.step >= 0 && !holding.trainable.empty() && holding.num_recorded >= holding.step;
}

std::string to_text(const Holding& holding) {
  return nlohmann::json{holding.step,   holding.phase_from, holding.num_recorded,
                        holding.layers, holding.trainable,  holding.parked}
      .dump();
}

Holding holding_from_text(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  return {json.at(0), json.at(1), json.at(2), json.at(3), json.at(4), json.at(5)};
}

std::optional<int> common_step(const std::vector<Holding>& holdings, int num_layers,
                               const std::vector<int>& needs_parked) {
  const Holding* first = nullptr;
  std::vector<bool> held(num_layers, false);
  for (const Holding& holding : holdings) {
    if (holding.step < 0) continue;
    for (const int layer : holding.layers) held[layer] = true;
    if (holding.trainable.empty()) continue;  // frozen layers do not change with the steps
    if (!first) first = &holding;
    if (holding.step != first->step || holding.phase_from != first->phase_from) return std::nullopt;
  }
  if (!first || std::find(held.begin(), held.end(), false) != held.end()) return std::nullopt;
  for (const int layer : needs_parked) {
    const auto has = [&](const Holding& holding) { return holding.step >= 0 && contains(holding.parked, layer); };
    if (std::none_of(holdings.begin(), holdings.end(), has)) return std::nullopt;
  }
  return first->step;
}

std::vector<TensorMove> moves_to_restore(const std::vector<Holding>& holdings, const Phase& phase) {
  std::vector<TensorMove> moves;
  for (int stage = 0; stage < static_cast<int>(phase.partition.size()); ++stage) {
    const LayerRange range = phase.partition[stage];
    for (int layer = range.begin; layer < range.end; ++layer) {
      std::vector<int> sources;
      for (std::size_t rank = 0; rank < holdings.size(); ++rank) {
        if (holdings[rank].step >= 0 && contains(holdings[rank].layers, layer))
          sources.push_back(static_cast<int>(rank));
      }
      FROSTPIPE_CHECK(!sources.empty(), "every layer is with a survivor");
      const bool with_moments = layer >= phase.first_trainable_layer;
      std::vector<int> takers = replicas_of(phase.layout, stage);
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
