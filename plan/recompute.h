#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/partition.h"
#include "profiles/model.h"

namespace frostpipe {

/// Selects the activations that are not kept from forward to backward but recomputed in the backward from the input of
/// their segment (activation checkpointing). The head's activations are always kept, since its backward follows at
/// once.
enum class RecomputeMode {
  attention,  // layers with attention only: most of the bytes for long samples, little of the time
  layers,     // every layer; only the layers' inputs are kept
  stage,      // every stage; only its input is kept, but in a backward one micro-batch's activations of the whole stage
              // live at once
};
inline constexpr std::array kRecomputeModes{RecomputeMode::attention, RecomputeMode::layers, RecomputeMode::stage};

/// None = all activations are kept.
using Recompute = std::optional<RecomputeMode>;

/// Returns the word of options and files, such as "attention".
std::string_view to_string(RecomputeMode mode);
/// Returns the words of all modes.
const std::vector<std::string>& recompute_words();
/// Returns none if there is no such mode.
Recompute find_recompute(std::string_view word);
/// Throws InvalidInput ("PLACE: must be one of attention, layers, stage, or missing, is ...").
void parse_text(std::string_view text, const std::string& place, RecomputeMode& mode);

/// Returns ", recompute layers", to follow a schedule; "" if all activations are kept.
std::string recompute_note(const Recompute& recompute);

/// Returns whether the forward of a trainable layer of this kind is computed twice.
bool is_recomputed(const Recompute& mode, LayerKind kind);

/// Returns whether a layer belongs to the same segment as the layer before it. `recomputed` and `before_recomputed` say
/// whether each of the two is recomputed.
bool joins_segment(const Recompute& mode, bool recomputed, bool before_recomputed);

/// Neighbouring layers whose activations are kept, or recomputed together.
struct RecomputeSegment {
  LayerRange range;
  bool recomputed = false;
  bool operator==(const RecomputeSegment&) const = default;
};

/// Returns the segments of the trainable layers of a stage, in order; empty if the whole stage is frozen.
std::vector<RecomputeSegment> recompute_segments(const Recompute& mode, const Model& model, LayerRange stage,
                                                 int first_trainable_layer);

}  // namespace frostpipe
