#include "plan/recompute.h"

#include <algorithm>

namespace frostpipe {

const std::vector<std::string>& recompute_modes() {
  static const std::vector<std::string> modes = {"attention", "layers", "stage"};
  return modes;
}

bool is_recomputed(const Recompute& mode, LayerKind kind) {
  if (!mode || kind == LayerKind::head) return false;
  return *mode != "attention" || kind == LayerKind::attention;
}

bool joins_segment(const Recompute& mode, bool recomputed, bool before_recomputed) {
  return recomputed == before_recomputed && (!recomputed || *mode == "stage");
}

std::vector<CheckpointSegment> checkpoint_segments(const Recompute& mode, const Model& model, LayerRange stage,
                                                   int first_trainable_layer) {
  std::vector<CheckpointSegment> segments;
  for (int layer = std::max(stage.begin, first_trainable_layer); layer < stage.end; ++layer) {
    const bool again = is_recomputed(mode, model.layers.at(layer).kind);
    if (!segments.empty() && joins_segment(mode, again, segments.back().recomputed)) {
      segments.back().range.end = layer + 1;
    } else {
      segments.push_back({.range = {layer, layer + 1}, .recomputed = again});
    }
  }
  return segments;
}

}  // namespace frostpipe
