#pragma once
// Implementation header: JSON keys of Model, for model.cpp and profile_json.cpp. Include it from .cpp files only.
#include "base/json_reader.h"
#include "profiles/model.h"

namespace frostpipe {

void parse_text(std::string_view text, const std::string& place, LayerKind& kind);

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Layer>& layer) {
  archive("name", layer.name);
  archive("kind", layer.kind);
  archive("block", layer.block, json::at_least(0));
  archive("parameter_count", layer.parameter_count, json::between(0, json::kMaxParameters));
  archive("whole_parameter_count", layer.whole_parameter_count, json::MayBeMissing{});
  archive("expert_parameter_count", layer.expert_parameter_count, json::MayBeMissing{});
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Edge>& edge) {
  archive("from", edge.from, json::at_least(0));
  archive("to", edge.to, json::at_least(0));
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Model>& model) {
  archive("name", model.name);
  archive("hidden_size", model.hidden_size, json::between(1, 1 << 24));
  archive("layers", model.layers);
  archive("edges", model.edges);
  archive("tied_parameter_count", model.tied_parameter_count, json::MayBeMissing{});
  archive("vocab_size", model.vocab_size, json::MayBeMissing{});
  archive("is_causal", model.is_causal, json::MayBeMissing{});
  archive("expert_parallel_size", model.expert_parallel_size, json::Otherwise{1});
}

}  // namespace frostpipe
