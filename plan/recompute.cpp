#include "plan/recompute.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/enum_words.h"

namespace frostpipe {
namespace {

constexpr EnumWords<RecomputeMode, 3> kWords{
    {{RecomputeMode::attention, "attention"}, {RecomputeMode::layers, "layers"}, {RecomputeMode::stage, "stage"}}};

}  // namespace

std::string_view to_string(RecomputeMode mode) { return word_of(kWords, mode); }

const std::vector<std::string>& recompute_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all;
    for (const RecomputeMode mode : kRecomputeModes) all.emplace_back(to_string(mode));
    return all;
  }();
  return words;
}

Recompute find_recompute(std::string_view word) { return value_of(kWords, word); }

void parse_text(std::string_view text, const std::string& place, RecomputeMode& mode) {
  mode =
      parse_word(kWords, text, place, fmt::format("must be one of {}, or missing", fmt::join(recompute_words(), ", ")));
}

std::string recompute_note(const Recompute& recompute) {
  return recompute ? fmt::format(", recompute {}", to_string(*recompute)) : "";
}

bool is_recomputed(const Recompute& mode, LayerKind kind) {
  if (!mode || kind == LayerKind::head) return false;
  return *mode != RecomputeMode::attention || has_attention(kind);
}

bool joins_segment(const Recompute& mode, bool recomputed, bool before_recomputed) {
  return recomputed == before_recomputed && (!recomputed || *mode == RecomputeMode::stage);
}

std::vector<RecomputeSegment> recompute_segments(const Recompute& mode, const Model& model, LayerRange stage,
                                                 int first_trainable_layer) {
  std::vector<RecomputeSegment> segments;
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
