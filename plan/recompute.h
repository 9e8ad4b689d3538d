#pragma once
#include <optional>
#include <string>
#include <vector>

#include "plan/partition.h"
#include "profiles/model.h"

namespace frostpipe {

/// Which activations are not kept from forward to backward but computed again in the backward, from the input of their
/// segment (checkpointing). No mode = all are kept. The head's are always kept: its backward follows at once.
///   attention: those of attention layers, which are most of the bytes for long samples and little of the time
///   layers:    those of every layer; the layers' inputs are kept
///   stage:     all of a stage, of which only the input is kept; in a backward one micro-batch's activations of the
///   whole stage live at once
using Recompute = std::optional<std::string>;

const std::vector<std::string>& recompute_modes();

/// Trainable layer of that kind: is its forward done twice?
bool is_recomputed(const Recompute& mode, LayerKind kind);

/// Is a layer kept, or computed again, together with the one before it?
bool joins_segment(const Recompute& mode, bool recomputed, bool before_recomputed);

/// Neighbouring layers that are kept or computed again together.
struct CheckpointSegment {
  LayerRange range;
  bool recomputed = false;
  bool operator==(const CheckpointSegment&) const = default;
};

/// The trainable layers of a stage, in order; empty for a stage that is frozen as a whole.
std::vector<CheckpointSegment> checkpoint_segments(const Recompute& mode, const Model& model, LayerRange stage,
                                                   int first_trainable_layer);

}  // namespace frostpipe
