#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "profiles/transformer/read_family.h"

// This file reads rotary positions as transformers 5 writes them (rope_parameters, per kind of layer if there are two)
// and as transformers 4 did (rope_theta and rope_scaling; Gemma 3, ModernBERT and GPT-NeoX have fields of their own).

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;
using Kind = RotaryScaling::Kind;

double given_number(const Json& object, const char* key, double otherwise, const std::string& place) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return otherwise;
  if (!found->is_number() || !(found->get<double>() > 0))
    throw InvalidInput(place + "." + key, "must be a number > 0", found->dump());
  return found->get<double>();
}

std::string kind_name(const Json& object, const std::string& place) {
  for (const char* key : {"rope_type", "type"}) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) continue;
    if (!found->is_string()) throw InvalidInput(place + "." + key, "must be a text", found->dump());
    return found->get<std::string>();
  }
  return "default";
}

Kind kind_named(const std::string& name, const std::string& place) {
  static constexpr std::pair<const char*, Kind> kKinds[] = {{"default", Kind::none},
                                                            {"linear", Kind::linear},
                                                            {"dynamic", Kind::dynamic},
                                                            {"llama3", Kind::llama3},
                                                            {"yarn", Kind::yarn}};
  for (const auto& [known, kind] : kKinds)
    if (name == known) return kind;
  throw InvalidInput(place + ".rope_type", "must be default, linear, dynamic, llama3 or yarn: others are not supported",
                     name);
}

/// Returns the factor by which yarn scales queries and keys.
double yarn_attention_factor(const Json& object, double factor, const std::string& place) {
  const auto magnitude = [&](double by) { return factor <= 1 ? 1.0 : 0.1 * by * std::log(factor) + 1.0; };
  const double given = given_number(object, "attention_factor", 0, place);
  if (given > 0) return given;
  const double scale = given_number(object, "mscale", 0, place),
               scale_all = given_number(object, "mscale_all_dim", 0, place);
  return scale > 0 && scale_all > 0 ? magnitude(scale) / magnitude(scale_all) : magnitude(1);
}

RotaryScaling scaling_from(const Json& object, std::int64_t positions, const std::string& place) {
  RotaryScaling scaling{.kind = kind_named(kind_name(object, place), place)};
  if (scaling.kind == Kind::none) return scaling;
  scaling.factor = given_number(object, "factor", 0, place);
  if (scaling.factor == 0) throw InvalidInput(place + ".factor", "must be given", "missing");
  const char* const original_key = "original_max_position_embeddings";
  const double original = given_number(object, original_key, static_cast<double>(positions), place);
  if (original < 1 || original > static_cast<double>(kMaxConfigNumber))
    throw InvalidInput(fmt::format("{}.{}", place, original_key), fmt::format("must be from 1 to {}", kMaxConfigNumber),
                       fmt::format("{:g}", original));
  scaling.original_positions = static_cast<std::int64_t>(original);
  if (scaling.kind == Kind::llama3) {
    scaling.low_frequency_factor = given_number(object, "low_freq_factor", 1, place);
    scaling.high_frequency_factor = given_number(object, "high_freq_factor", 4, place);
    if (scaling.high_frequency_factor <= scaling.low_frequency_factor)
      throw InvalidInput(place + ".high_freq_factor",
                         fmt::format("must be more than low_freq_factor ({})", scaling.low_frequency_factor),
                         fmt::format("{}", scaling.high_frequency_factor));
  }
  if (scaling.kind == Kind::yarn) {
    scaling.beta_fast = given_number(object, "beta_fast", 32, place);
    scaling.beta_slow = given_number(object, "beta_slow", 1, place);
    scaling.attention_factor = yarn_attention_factor(object, scaling.factor, place);
    scaling.truncates = object.value("truncate", Json(true)) != Json(false);
  }
  return scaling;
}

class RotaryReader {
 public:
  RotaryReader(const ConfigFields& fields, double default_theta, TransformerConfig& config)
      : fields_(fields), default_theta_(default_theta), config_(config) {}

  void read() {
    read_patterns();
    const Json parameters = fields_.object("rope_parameters");
    if (parameters.contains("full_attention") || parameters.contains("sliding_attention")) {
      const auto of = [&](const char* kind, double theta) {
        const auto found = parameters.find(kind);
        return rotary(found == parameters.end() ? Json::object() : *found, theta, place("rope_parameters.") + kind);
      };
      config_.rotaries = {of("full_attention", theta()), of("sliding_attention", local_theta())};
    } else if (!parameters.empty()) {
      if (has_local_theta())
        throw InvalidInput(place("rope_parameters"),
                           "must have full_attention or sliding_attention, whose positions differ in this family",
                           parameters.dump());
      config_.rotaries = {rotary(parameters, theta(), place("rope_parameters"))};
      leave_windows_unscaled();
    } else {
      read_before_version_5();
    }
    const bool has_two = config_.rotaries.size() > 1;
    for (std::size_t block = 0; block < config_.patterns.size(); ++block) {
      AttentionPattern& pattern = config_.patterns[block];
      pattern.rotary = !rotates(static_cast<std::int64_t>(block)) ? -1 : has_two && pattern.window > 0 ? 1 : 0;
    }
  }

 private:
  std::string place(const char* key) const { return fields_.place(key); }

  bool is_modernbert() const { return config_.family == Family::modernbert; }

  /// Returns whether blocks with a window have a base of their own.
  bool has_local_theta() const { return is_modernbert() || config_.family == Family::gemma3_text; }

  /// Returns the base of the frequencies if rope_parameters do not give one.
  double theta() const {
    return fields_.number(is_modernbert()                      ? "global_rope_theta"
                          : config_.family == Family::gpt_neox ? "rotary_emb_base"
                                                               : "rope_theta",
                          default_theta_);
  }

  /// Does the same for blocks with a window.
  double local_theta() const {
    if (!has_local_theta()) return theta();
    return fields_.number(is_modernbert() ? "local_rope_theta" : "rope_local_base_freq", 10'000);
  }

  Rotary rotary(const Json& object, double default_theta, const std::string& at) const {
    static const FieldNames kKnown{"rope_type",        "type",
                                   "rope_theta",       "partial_rotary_factor",
                                   "factor",           "original_max_position_embeddings",
                                   "low_freq_factor",  "high_freq_factor",
                                   "beta_fast",        "beta_slow",
                                   "attention_factor", "mscale",
                                   "mscale_all_dim",   "truncate",
                                   "finetuned"};  // the last is a note
    if (!object.is_object() && !object.is_null()) throw InvalidInput(at, "must be a JSON object", object.dump());
    kind_named(kind_name(object, at), at);  // before the parameters, of which those of other kinds are unknown
    require_known_parameters(object, kKnown, at + ".");
    const bool is_neox = config_.family == Family::gpt_neox;
    const char* const before_version_5 = is_neox ? "rotary_pct" : "partial_rotary_factor";
    const char* const key = "partial_rotary_factor";
    const double fraction = given_number(object, key, fields_.number(before_version_5, is_neox ? 0.25 : 1), at);
    const Rotary rotary{.fraction = fraction};
    if (fraction > 1 || rotary.size(config_.size_of_head()) < 2 || rotary.size(config_.size_of_head()) % 2 != 0)
      throw InvalidInput(
          object.contains(key) ? fmt::format("{}.{}", at, key) : place(before_version_5),
          fmt::format("must be at most 1 and give an even part of a head ({} values)", config_.size_of_head()),
          fmt::format("{}", fraction));
    return {.theta = given_number(object, "rope_theta", default_theta, at),
            .fraction = fraction,
            .scaling = scaling_from(object, config_.max_position_embeddings, at)};
  }

  /// In OLMo 3 only blocks without a window have scaled frequencies. Its config.json may give one set for both.
  void leave_windows_unscaled() {
    if (config_.family != Family::olmo3) return;
    config_.rotaries.push_back(config_.rotaries.front());
    config_.rotaries.back().scaling = {};
  }

  /// Reads rope_scaling, which Gemma 3 uses for blocks without a window and ModernBERT for all.
  void read_before_version_5() {
    const Json scaling = fields_.object("rope_scaling");
    config_.rotaries = {rotary(scaling, theta(), place("rope_scaling"))};
    leave_windows_unscaled();
    if (has_local_theta())
      config_.rotaries.push_back(
          rotary(is_modernbert() ? scaling : Json::object(), local_theta(), place("rope_scaling")));
  }

  bool is_qwen() const {
    return config_.family == Family::qwen2 || config_.family == Family::qwen3 || config_.family == Family::qwen3_moe;
  }

  /// Returns the window of blocks with local attention: a token sees tokens less than this many places away. 0 =
  /// unlimited.
  std::int64_t window() const {
    // In transformers a token of ModernBERT sees half of local_attention on each side.
    if (is_modernbert()) return fields_.positive("local_attention", 128) / 2 + 1;
    const bool has_default =
        config_.family == Family::mistral || config_.family == Family::olmo3 || config_.norm_adds_one;
    const std::int64_t otherwise = has_default ? 4096 : 0;
    if (fields_.is_null("sliding_window") || (is_qwen() && !fields_.flag("use_sliding_window", false))) return 0;
    return fields_.positive("sliding_window", otherwise);
  }

  /// Returns whether a block has rotary positions. In SmolLM3 every fourth has none, unless config.json gives another
  /// interval or a list.
  bool rotates(std::int64_t block) const {
    if (config_.family != Family::smollm3) return true;
    const std::int64_t interval = fields_.positive("no_rope_layer_interval", 4);
    const Json& given = fields_.given("no_rope_layers");  // despite its name, 1 says that a block has them
    if (given.is_null()) return (block + 1) % interval != 0;
    if (!given.is_array() || static_cast<std::int64_t>(given.size()) < config_.num_hidden_layers ||
        (given[block] != 0 && given[block] != 1))
      throw InvalidInput(place("no_rope_layers"),
                         fmt::format("must be a list of 0 or 1 for each of {} layers", config_.num_hidden_layers),
                         given.dump());
    return given[block] == 1;
  }

  bool slides(std::int64_t block) const {
    switch (config_.family) {
      case Family::mistral:
      case Family::starcoder2:
      case Family::phi3:
      case Family::mixtral:
        return true;
      case Family::qwen2:
      case Family::qwen3:
      case Family::qwen3_moe:
        return fields_.flag("use_sliding_window", false) && block >= fields_.non_negative("max_window_layers", 28);
      case Family::smollm3:
        return fields_.flag("use_sliding_window", false) && !rotates(block);
      case Family::olmo3:
        return (block + 1) % 4 != 0;
      case Family::gemma2:
        return block % 2 == 0;
      case Family::gemma3_text:
        return (block + 1) % fields_.positive("sliding_window_pattern", 6) != 0;
      case Family::modernbert:
        return block % fields_.positive("global_attn_every_n_layers", 3) != 0;
      default:
        return false;
    }
  }

  void read_patterns() {
    const Json& given = fields_.given("layer_types");
    const bool is_given = !given.is_null();
    if (is_given && !given.is_array()) throw InvalidInput(place("layer_types"), "must be a list", given.dump());
    if (is_given && static_cast<std::int64_t>(given.size()) != config_.num_hidden_layers)
      throw InvalidInput(place("layer_types"),
                         fmt::format("must name a kind for each of {} layers", config_.num_hidden_layers),
                         std::to_string(given.size()));
    for (std::int64_t block = 0; block < config_.num_hidden_layers; ++block) {
      bool is_sliding = slides(block);
      if (is_given) {
        const Json& kind = given[block];
        if (kind != "full_attention" && kind != "sliding_attention")
          throw InvalidInput(place("layer_types"), "must be full_attention or sliding_attention", kind.dump());
        is_sliding = kind == "sliding_attention";
      }
      config_.patterns.push_back({.window = is_sliding ? window() : 0});
    }
  }

  const ConfigFields& fields_;
  double default_theta_;
  TransformerConfig& config_;
};

}  // namespace

void read_rotary_patterns(const ConfigFields& fields, double default_theta, TransformerConfig& config) {
  RotaryReader(fields, default_theta, config).read();
}

}  // namespace frostpipe
