#include "profiles/transformer/parameters.h"

#include <cmath>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "profiles/transformer/families.h"

namespace frostpipe {
namespace {

using Share = ParameterSpec::Share;
using Start = ParameterSpec::Start;

/// Returns the number of head groups that can be distributed over tensor ranks: key and value heads with their queries,
/// or, if all queries share one of them, the queries alone.
std::int64_t num_head_groups(const TransformerConfig& c) {
  return c.key_value_heads() > 1 ? c.key_value_heads() : c.num_attention_heads;
}

/// Returns the number of query values in such a group.
std::int64_t group_size(const TransformerConfig& c) { return c.query_size() / num_head_groups(c); }

class SpecOfRole {
 public:
  SpecOfRole(const TransformerConfig& config, int layer)
      : c_(config), head_(head_of(config)), kind_(kind_of_layer(config, layer)), names_(row_of(config.family).names) {
    prefix_ = head_.prefix ? head_.prefix : row_of(config.family).prefix;
    if (kind_ != LayerKind::embedding && kind_ != LayerKind::head)
      block_ = prefix_ + names_.block + std::to_string(block_of_layer(config, layer)) + ".";
  }

  ParameterSpec spec(Role role) const {
    switch (kind_) {
      case LayerKind::embedding:
        return embedding(role);
      case LayerKind::attention:
        return attention(role);
      case LayerKind::mlp:
        return mlp(role);
      case LayerKind::block:
        return role >= Role::up && role <= Role::shared_output ? mlp(role) : attention(role);
      default:
        return head(role);
    }
  }

 private:
  static ParameterSpec table(std::string name, std::int64_t rows, std::int64_t size) {
    return {.names = {std::move(name)}, .shape = {rows, size}, .matrix = true};
  }
  static ParameterSpec matrix(std::vector<std::string> names, std::int64_t out, std::int64_t in) {
    return {.names = std::move(names), .shape = {out, in}, .matrix = true, .projects = true};
  }
  static ParameterSpec bias(std::vector<std::string> names, std::int64_t size) {
    return {.names = std::move(names), .shape = {size}, .start = Start::zero};
  }
  ParameterSpec scale(std::string name, std::int64_t size) const {
    return {.names = {std::move(name)}, .shape = {size}, .start = c_.norm_adds_one ? Start::zero : Start::one};
  }
  static ParameterSpec by_rows(ParameterSpec spec, std::int64_t stacked = 1, std::int64_t unit = 1) {
    spec.share = Share::rows;
    spec.stacked = stacked;
    spec.unit = unit;
    return spec;
  }
  static ParameterSpec by_columns(ParameterSpec spec, std::int64_t unit = 1) {
    spec.share = Share::columns;
    spec.unit = unit;
    return spec;
  }

  /// Returns the names of weights or biases (`ending`) of modules of this block, without null ones.
  std::vector<std::string> of_block(std::initializer_list<const char*> modules, const char* ending) const {
    std::vector<std::string> names;
    for (const char* const module : modules)
      if (module) names.push_back(block_ + module + ending);
    return names;
  }
  std::string in_base(const char* module, const char* ending) const { return prefix_ + module + ending; }
  ParameterSpec in_block(ParameterSpec matrix) const {
    matrix.transposed = names_.matrices_are_transposed;
    return matrix;
  }
  /// Returns a matrix whose output is added to the residual stream.
  ParameterSpec adding(ParameterSpec matrix) const {
    if (c_.scales_residual_start)
      matrix.deviation_factor = 1 / std::sqrt(2.0 * static_cast<double>(c_.num_hidden_layers));
    return in_block(std::move(matrix));
  }

  ParameterSpec embedding(Role role) const {
    const std::int64_t h = c_.hidden_size, p = c_.patch_size;
    switch (role) {
      case Role::words:
        return by_rows(table(in_base(names_.words, ".weight"), c_.vocab_size, c_.table_size()));
      case Role::positions: {
        if (!c_.reads_pictures)
          return table(in_base(names_.positions, ".weight"), c_.max_position_embeddings + c_.position_offset,
                       c_.table_size());
        ParameterSpec positions = table(in_base(names_.positions, ""), image_tokens(c_), h);
        positions.stored_shape = {1, image_tokens(c_), h};
        return positions;
      }
      case Role::types:
        return table(in_base(names_.types, ".weight"), c_.type_vocab_size, c_.table_size());
      case Role::class_token: {
        ParameterSpec tokens = table(prefix_ + "embeddings.cls_token", c_.num_class_tokens, h);
        if (c_.num_class_tokens > 1) tokens.names.push_back(prefix_ + "embeddings.distillation_token");
        tokens.stored_shape = {1, 1, h};
        return tokens;
      }
      case Role::patches: {
        ParameterSpec patches = matrix({in_base(names_.projection, ".weight")}, h, c_.num_channels * p * p);
        patches.stored_shape = {h, c_.num_channels, p, p};
        return patches;
      }
      case Role::patches_bias:
      case Role::projection_bias:
        return bias({in_base(names_.projection, ".bias")}, h);
      case Role::projection:
        return matrix({in_base(names_.projection, ".weight")}, h, c_.embedding_size);
      case Role::norm:
        return scale(in_base(names_.embedding_norm, ".weight"), c_.table_size());
      default:
        return bias({in_base(names_.embedding_norm, ".bias")}, c_.table_size());
    }
  }

  /// Returns the parameter of latent attention with this role; output and norms are those of other attention.
  ParameterSpec latent(Role role) const {
    const std::int64_t h = c_.hidden_size, rank = c_.latent.key_value_rank, query_rank = c_.latent.query_rank;
    switch (role) {
      case Role::query_latent:
        return matrix({}, query_rank, h);
      case Role::query_latent_norm:
        return scale("", query_rank);
      case Role::key_value_latent:
        return matrix({}, rank + c_.latent.rotary_size, h);
      case Role::key_value_latent_norm:
        return scale("", rank);
      case Role::query:
        return by_rows(matrix({}, c_.query_size(), query_rank > 0 ? query_rank : h), 1, c_.size_of_head());
      default: {
        const std::int64_t size = c_.size_of_head() - c_.latent.rotary_size + c_.latent.value_size;
        return by_rows(matrix({}, c_.num_attention_heads * size, rank), 1, size);
      }
    }
  }

  ParameterSpec attention(Role role) const {
    if (c_.latent.key_value_rank > 0 && role != Role::output && role != Role::norm) return latent(role);
    const std::int64_t h = c_.hidden_size, q = c_.query_size(), kv = c_.key_value_size(), size = c_.size_of_head();
    /// Marks rows of a tensor of the file, if the file has query, key and value in one tensor.
    const auto stored_in = [&](ParameterSpec spec, std::int64_t begin, std::int64_t rows) {
      if (!names_.query_key_value) return spec;
      spec.stored_begin = begin;
      spec.stored_rows = rows;
      return spec;
    };
    const auto shared_keys = [&](ParameterSpec spec) {
      return c_.key_value_heads() > 1 ? by_rows(std::move(spec), 2, size) : spec;
    };
    const auto all = {names_.query_key_value, names_.query, names_.key, names_.value};
    const auto by_head = [&](ParameterSpec spec) {
      spec.stored_heads = names_.rows_are_by_head ? c_.num_attention_heads : 0;
      return by_rows(std::move(spec), 3, size);
    };
    switch (role) {
      case Role::query_key_value:
        return by_head(in_block(matrix(of_block(all, ".weight"), 3 * q, h)));
      case Role::query_key_value_bias:
        return by_head(bias(of_block(all, ".bias"), 3 * q));
      case Role::query:
        return by_rows(
            stored_in(matrix(of_block({names_.query_key_value, names_.query}, ".weight"), q, h), 0, q + 2 * kv), 1,
            group_size(c_));
      case Role::query_bias:
        return by_rows(bias(of_block({names_.query}, ".bias"), q), 1, group_size(c_));
      case Role::key_value:
        return shared_keys(stored_in(
            matrix(of_block({names_.query_key_value, names_.key, names_.value}, ".weight"), 2 * kv, h), q, q + 2 * kv));
      case Role::key_value_bias:
        return shared_keys(bias(of_block({names_.key, names_.value}, ".bias"), 2 * kv));
      case Role::output:
        return by_columns(adding(matrix(of_block({names_.attention_output}, ".weight"), h, c_.context_size())),
                          group_size(c_));
      case Role::output_bias:
        return bias(of_block({names_.attention_output}, ".bias"), h);
      case Role::query_norm:
        return scale(block_ + names_.query_norm + ".weight", c_.query_key_norm == QueryKeyNorm::whole ? q : size);
      case Role::key_norm:
        return scale(block_ + names_.key_norm + ".weight", c_.query_key_norm == QueryKeyNorm::whole ? kv : size);
      default:
        return norm_of_half(role, names_.attention_norm, names_.attention_output_norm, names_.attention_layer_scale);
    }
  }

  /// Returns the parameter of experts with this role. Tensor ranks split each expert; the router is whole on each.
  ParameterSpec experts(Role role) const {
    const std::int64_t h = c_.hidden_size, count = c_.experts.count, f = c_.experts.intermediate_size,
                       shared = c_.experts.shared_size, stacked = c_.has_gate ? 2 : 1;
    switch (role) {
      case Role::router:
        return matrix({}, count, h);
      case Role::router_bias:
        return bias({}, count);
      case Role::experts_up:
        return by_rows(matrix({}, count * stacked * f, h), count * stacked);
      case Role::experts_output:
        return by_columns(matrix({}, count * h, f));
      case Role::shared_up:
        return by_rows(matrix({}, stacked * shared, h), stacked);
      default:
        return by_columns(matrix({}, h, shared));
    }
  }

  ParameterSpec mlp(Role role) const {
    if (role >= Role::router && role <= Role::shared_output) return experts(role);
    const std::int64_t h = c_.hidden_size, f = c_.intermediate_size, stacked = c_.has_gate ? 2 : 1;
    const bool is_gated = c_.has_gate && names_.gated_up;
    const char *const up = is_gated ? names_.gated_up : names_.up, *const down =
                                                                       is_gated ? names_.gated_down : names_.down;
    switch (role) {
      case Role::up:
        return by_rows(in_block(matrix(of_block({names_.gate, up}, ".weight"), stacked * f, h)), stacked);
      case Role::up_bias:
        return by_rows(bias(of_block({names_.gate, up}, ".bias"), stacked * f), stacked);
      case Role::down:
        return by_columns(adding(matrix(of_block({down}, ".weight"), h, f)));
      case Role::down_bias:
        return bias(of_block({down}, ".bias"), h);
      default:
        return norm_of_half(role, names_.mlp_norm, names_.mlp_output_norm, names_.mlp_layer_scale);
    }
  }

  ParameterSpec norm_of_half(Role role, const char* norm, const char* output_norm, const char* layer_scale) const {
    switch (role) {
      case Role::norm:
      case Role::mlp_norm:
        return scale(block_ + norm + ".weight", c_.hidden_size);
      case Role::norm_bias:
      case Role::mlp_norm_bias:
        return bias({block_ + norm + ".bias"}, c_.hidden_size);
      case Role::layer_scale:
        return scale(block_ + layer_scale, c_.hidden_size);
      case Role::output_norm:
        return scale(block_ + output_norm + ".weight", c_.hidden_size);
      default:
        return bias({block_ + output_norm + ".bias"}, c_.hidden_size);
    }
  }

  ParameterSpec head(Role role) const {
    const std::int64_t h = c_.hidden_size;
    const auto of_head = [](const char* module, const char* ending) { return std::string(module) + ending; };
    switch (role) {
      case Role::dense:
        return matrix({of_head(head_.dense, ".weight")}, h, h);
      case Role::dense_bias:
        return bias({of_head(head_.dense, ".bias")}, h);
      case Role::dense_norm:
        return scale(of_head(head_.dense_norm, ".weight"), h);
      case Role::dense_norm_bias:
        return bias({of_head(head_.dense_norm, ".bias")}, h);
      case Role::classes: {
        ParameterSpec classes =
            matrix({of_head(head_.classes, ".weight")}, num_outputs(c_), c_.pools_patches ? 2 * h : h);
        return c_.task == Task::causal_language_modeling ? by_rows(std::move(classes)) : classes;
      }
      case Role::classes_bias:
        return bias({of_head(head_.classes, ".bias")}, num_outputs(c_));
      case Role::norm:
        return scale(in_base(names_.final_norm, ".weight"), h);
      default:
        return bias({in_base(names_.final_norm, ".bias")}, h);
    }
  }

  const TransformerConfig& c_;
  const HeadNames& head_;
  LayerKind kind_;
  const ModuleNames& names_;
  std::string prefix_, block_;
};

}  // namespace

std::int64_t ParameterSpec::count() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<ParameterSpec> parameters_of(const TransformerConfig& config, int layer) {
  const SpecOfRole of(config, layer);
  std::vector<ParameterSpec> specs;
  for (const Role role : roles_of(config, layer)) {
    specs.push_back(of.spec(role));
    specs.back().role = role;
  }
  return specs;
}

std::int64_t tied_parameter_count(const TransformerConfig& config) {
  return config.ties_embeddings && config.task == Task::causal_language_modeling
             ? config.vocab_size * config.hidden_size
             : 0;
}

std::int64_t num_outputs(const TransformerConfig& config) {
  if (config.task == Task::causal_language_modeling) return config.vocab_size;
  return config.task == Task::question_answering ? 2 : config.num_labels;
}

Model model_of(const TransformerConfig& config, std::string name) {
  Model model{.name = std::move(name),
              .hidden_size = static_cast<int>(config.hidden_size),
              .layers = {},
              .edges = {},
              .tied_parameter_count = tied_parameter_count(config),
              .vocab_size = config.reads_pictures || config.embedding_size > 0 ? 0 : config.vocab_size,
              .is_causal = config.is_causal && config.task == Task::causal_language_modeling};
  for (int i = 0; i < num_layers(config); ++i) {
    Layer layer{.name = i == 0 ? "embedding" : "head", .kind = kind_of_layer(config, i)};
    if (layer.kind != LayerKind::embedding && layer.kind != LayerKind::head) {
      layer.block = block_of_layer(config, i);
      layer.name = "block." + std::to_string(*layer.block);
      if (layer.kind != LayerKind::block) layer.name += layer.kind == LayerKind::attention ? ".attention" : ".mlp";
    }
    for (const ParameterSpec& parameter : parameters_of(config, i)) {
      layer.parameter_count += parameter.count();
      if (parameter.role == Role::experts_up || parameter.role == Role::experts_output)
        layer.expert_parameter_count += parameter.count();
      if (parameter.share == Share::whole) layer.whole_parameter_count += parameter.count();
    }
    model.layers.push_back(std::move(layer));
    if (i > 0) model.edges.push_back({i - 1, i});
  }
  return model;
}

std::int64_t max_tensor_ranks(const TransformerConfig& config) {
  return config.query_key_norm == QueryKeyNorm::whole ? 1 : num_head_groups(config);
}

std::int64_t image_tokens(const TransformerConfig& config) { return config.num_patches() + config.num_class_tokens; }

}  // namespace frostpipe
