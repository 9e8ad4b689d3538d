#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/partition.h"
#include "profiles/model.h"

namespace frostpipe {

/// Which activations are not kept from forward to backward but computed again in the backward, from the input of their
/// segment (checkpointing). The head's are always kept: its backward follows at once.
enum class RecomputeMode {
  attention,  // those of attention layers, which are most of the bytes for long samples and little of the time
  layers,     // those of every layer; the layers' inputs are kept
  stage,      // all of a stage, of which only the input is kept; in a backward one micro-batch's activations of the
              // whole stage live at once
};
inline constexpr std::array kRecomputeModes{RecomputeMode::attention, RecomputeMode::layers, RecomputeMode::stage};

/// None: all are kept.
using Recompute = std::optional<RecomputeMode>;

/// "attention", as in options and files.
std::string_view to_string(RecomputeMode mode);
/// The words of all modes.
const std::vector<std::string>& recompute_words();
/// None if there is no such mode.
Recompute find_recompute(std::string_view word);
/// Throws InvalidInput ("PLACE: must be one of attention, layers, stage, or missing, is ...").
void parse_text(std::string_view text, const std::string& place, RecomputeMode& mode);

/// Trainable layer of that kind: is its forward done twice?
bool is_recomputed(const Recompute& mode, LayerKind kind);

/// Is a layer kept, or computed again, together with the one before it?
bool joins_segment(const Recompute& mode, bool recomputed, bool before_recomputed);

/// Neighbouring layers that are kept or computed again together.
struct RecomputeSegment {
  LayerRange range;
  bool recomputed = false;
  bool operator==(const RecomputeSegment&) const = default;
};

/// The trainable layers of a stage, in order; empty for a stage that is frozen as a whole.
std::vector<RecomputeSegment> recompute_segments(const Recompute& mode, const Model& model, LayerRange stage,
                                                 int first_trainable_layer);

}  // namespace frostpipe
