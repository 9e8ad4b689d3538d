#include "profiles/import/config_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "profiles/computed_fields.h"
#include "profiles/error.h"
#include "profiles/files.h"
#include "profiles/import/foreign_json.h"
#include "profiles/model_source.h"

namespace frostpipe {
namespace {

constexpr int kMostBlocks = 4096, kMostVocabulary = 1 << 26;

/// What an estimate multiplies stays within 64 bits, and within what a profile may hold.
void require_possible(const TransformerShape& shape, std::string_view source) {
  const auto require = [&](std::string_view what, double value, double most) {
    if (value > most)
      throw InvalidInput(std::string(source), fmt::format("{} must be at most {:g}", what, most),
                         fmt::format("{:g}", value));
  };
  const double tokens = shape.tokens, hidden = shape.hidden, widest = std::max(shape.intermediate, shape.hidden);
  require("the embeddings' parameters", static_cast<double>(shape.embedding_parameters), 1e13);
  require("a layer's parameters", hidden * std::max(4 * hidden, 2 * widest), 1e13);
  require("heads x tokens^2, the values of attention's probabilities in a layer,", shape.heads * tokens * tokens, 1e13);
  require("tokens x the widest of a layer", tokens * widest, 1e13);
  require("tokens x outputs", tokens * static_cast<double>(shape.outputs), 1e13);
}

class Config {
 public:
  Config(const foreign::Value& root, int tokens) : root_(root), tokens_(tokens) {}

  TransformerShape shape() const {
    const std::string type = root_["model_type"].text();
    if (type == "bert") return bert();
    if (type == "vit") return vit();
    if (type == "gpt2") return gpt2();
    throw InvalidInput(root_["model_type"].place(), "must be bert, vit or gpt2", fmt::format("\"{}\"", type));
  }

 private:
  /// The default is more than any size of a layer that there is.
  int positive(std::string_view name, int most = 1 << 20) const {
    const foreign::Value value = root_[name];
    if (value.integer() < 1) throw InvalidInput(value.place(), "must be >= 1", std::to_string(value.integer()));
    if (value.integer() > most)
      throw InvalidInput(value.place(), fmt::format("must be <= {}", most), std::to_string(value.integer()));
    return value.integer();
  }
  int labels(int otherwise) const {
    if (root_.has("id2label")) return static_cast<int>(root_["id2label"].members().size());
    return root_.has("num_labels") && root_["num_labels"].is_number() ? positive("num_labels") : otherwise;
  }

  int tokens_up_to(int longest, std::string_view name) const {
    if (tokens_ > longest)
      throw InvalidInput("--tokens", fmt::format("must be at most {} ({})", longest, name), std::to_string(tokens_));
    return tokens_ > 0 ? tokens_ : longest;
  }

  TransformerShape bert() const {
    const int h = positive("hidden_size"), longest = positive("max_position_embeddings"),
              tokens = tokens_up_to(longest, "max_position_embeddings");
    const std::int64_t vocabulary = positive("vocab_size", kMostVocabulary);
    return {.name = "bert",
            .blocks = positive("num_hidden_layers", kMostBlocks),
            .hidden = h,
            .intermediate = positive("intermediate_size"),
            .heads = positive("num_attention_heads"),
            .tokens = tokens,
            .embedding_parameters = (vocabulary + longest + positive("type_vocab_size") + 2) * h,
            .vocabulary = vocabulary,
            .embedding_flops = 20.0 * tokens * h,
            .outputs = labels(2)};
  }

  TransformerShape vit() const {
    const int h = positive("hidden_size"), patch = positive("patch_size"),
              side = positive("image_size", 1 << 15) / patch;
    if (side < 1)
      throw InvalidInput(root_["image_size"].place(), "must be at least patch_size",
                         std::to_string(root_["image_size"].integer()));
    const std::int64_t pixels = std::int64_t{patch} * patch * positive("num_channels", 1 << 10);
    const int tokens = side * side + 1;
    if (tokens_ > 0 && tokens_ != tokens)
      throw InvalidInput("--tokens", fmt::format("must be {} (patches and class token)", tokens),
                         std::to_string(tokens_));
    return {.name = "vit",
            .blocks = positive("num_hidden_layers", kMostBlocks),
            .hidden = h,
            .intermediate = positive("intermediate_size"),
            .heads = positive("num_attention_heads"),
            .tokens = tokens,
            .embedding_parameters = (pixels + 2 + tokens) * h,
            .embedding_flops = 2.0 * (tokens - 1) * static_cast<double>(pixels) * h,
            .outputs = labels(1000)};
  }

  TransformerShape gpt2() const {
    const int h = positive("n_embd"), longest = positive("n_positions"), tokens = tokens_up_to(longest, "n_positions"),
              vocabulary = positive("vocab_size", kMostVocabulary);
    const bool has_inner = root_.has("n_inner") && root_["n_inner"].is_number();
    return {.name = "gpt2",
            .blocks = positive("n_layer", kMostBlocks),
            .hidden = h,
            .intermediate = has_inner ? positive("n_inner") : 4 * h,
            .heads = positive("n_head"),
            .tokens = tokens,
            .embedding_parameters = (std::int64_t{vocabulary} + longest) * h,
            .vocabulary = vocabulary,
            .embedding_flops = 2.0 * tokens * h,
            .outputs = vocabulary,
            .head_on_every_token = true,
            .is_causal = true};
  }

  const foreign::Value& root_;
  int tokens_;
};

}  // namespace

TransformerShape shape_from_config(std::string_view json, std::string_view source, int tokens) {
  const foreign::File file(json, source);
  require_computed_fields(json, std::string(source), ConfigUse::counting);
  const foreign::Value root = file.root();
  const TransformerShape shape = Config(root, tokens).shape();
  require_possible(shape, source);
  return shape;
}

TransformerShape find_shape(const std::string& name_or_file, int tokens) {
  const auto& shapes = known_shapes();
  const auto known =
      std::find_if(shapes.begin(), shapes.end(), [&](const TransformerShape& one) { return one.name == name_or_file; });
  if (known != shapes.end()) return *known;
  if (!std::filesystem::exists(name_or_file)) {
    std::vector<std::string> names;
    for (const TransformerShape& one : shapes) names.push_back(one.name);
    throw InvalidInput(
        name_or_file,
        fmt::format("must be {}, or a config.json or its folder{}", fmt::join(names, ", "), how_to_fetch(name_or_file)),
        "neither");
  }
  const std::string file = std::filesystem::is_directory(name_or_file)
                               ? (std::filesystem::path(name_or_file) / "config.json").string()
                               : name_or_file;
  return shape_from_config(read_text_file(file), file, tokens);
}

}  // namespace frostpipe
