#include "planner/search/pins.h"

#include <algorithm>

#include "planner/search/chain_partition.h"

namespace frostpipe {

bool breaks_a_pin(const std::vector<LayerPin>& pins, int stage, LayerRange range) {
  return std::any_of(pins.begin(), pins.end(), [&](const LayerPin& pin) {
    return pin.stage != stage && range.begin <= pin.layer && pin.layer < range.end;
  });
}

bool holds_its_pins(const std::vector<LayerPin>& pins, int stage, LayerRange range) {
  return std::all_of(pins.begin(), pins.end(), [&](const LayerPin& pin) {
    return pin.stage != stage || (range.begin <= pin.layer && pin.layer < range.end);
  });
}

bool keeps_pins(const std::vector<LayerPin>& pins, const Partition& partition) {
  return std::all_of(pins.begin(), pins.end(), [&](const LayerPin& pin) {
    return pin.stage < static_cast<int>(partition.size()) && partition[pin.stage].begin <= pin.layer &&
           pin.layer < partition[pin.stage].end;
  });
}

bool can_keep_pins(const std::vector<LayerPin>& pins, int num_layers, int num_stages) {
  if (pins.empty()) return true;
  if (std::any_of(pins.begin(), pins.end(), [&](const LayerPin& pin) { return pin.stage >= num_stages; })) return false;
  const auto any = [&](int /*stage*/, int /*begin*/, int first, auto&& visit) {
    for (int end = first; end <= num_layers;) end = visit(end, Nanoseconds{0}, Nanoseconds{0});
  };
  return cut_chain(num_layers, num_stages, keeping_pins(pins, any)).has_value();
}

}  // namespace frostpipe
