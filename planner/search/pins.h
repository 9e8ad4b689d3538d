#pragma once
#include <vector>

#include "plan/partition.h"
#include "planner/search/chain_partition.h"

namespace frostpipe {

/// Requires a layer to be on a stage.
struct LayerPin {
  int layer = 0;
  int stage = 0;
  bool operator==(const LayerPin&) const = default;
};

/// Returns whether some layer of `range` is pinned to another stage.
bool breaks_a_pin(const std::vector<LayerPin>& pins, int stage, LayerRange range);

/// Returns whether no layer outside `range` is pinned to `stage`.
bool holds_its_pins(const std::vector<LayerPin>& pins, int stage, LayerRange range);

/// Returns whether every pin is kept.
bool keeps_pins(const std::vector<LayerPin>& pins, const Partition& partition);

/// Returns whether layers [0, num_layers) can be cut into `num_stages` stages with every pin kept.
bool can_keep_pins(const std::vector<LayerPin>& pins, int num_layers, int num_stages);

/// Restricts a sweep for cut_chain to the stages that keep the pins.
template <class Sweep>
auto keeping_pins(const std::vector<LayerPin>& pins, const Sweep& sweep) {
  return [&pins, &sweep](int stage, int begin, int first, auto&& visit) {
    if (pins.empty()) return sweep(stage, begin, first, visit);
    sweep(stage, begin, first, [&](int end, Nanoseconds value, Nanoseconds floor) {
      if (breaks_a_pin(pins, stage, {begin, end})) return kNoLonger;
      return visit(end, holds_its_pins(pins, stage, {begin, end}) ? value : kNotAllowed, floor);
    });
  };
}

}  // namespace frostpipe
