#include <algorithm>
#include <utility>

#include "profiles/transformer/families.h"
#include "profiles/transformer/parameters.h"

namespace frostpipe {
namespace {

/// Returns whether query, key and value are one matrix: they have equally many heads and no norms of their own.
bool is_stacked(const TransformerConfig& c) {
  return c.key_value_heads() == c.num_attention_heads && c.query_key_norm == QueryKeyNorm::none;
}

/// Collects roles in order, without those that a config lacks.
class Roles {
 public:
  Roles& add(Role role, bool is_present = true) {
    if (is_present) roles_.push_back(role);
    return *this;
  }
  Roles& add_norm(const TransformerConfig& c, Role scale, Role bias, bool is_present = true) {
    return add(scale, is_present).add(bias, is_present && c.norm_has_bias);
  }
  std::vector<Role> get() { return std::move(roles_); }

 private:
  std::vector<Role> roles_;
};

std::vector<Role> embedding_roles(const TransformerConfig& c) {
  Roles roles;
  if (c.reads_pictures)
    return roles.add(Role::patches).add(Role::positions).add(Role::class_token).add(Role::patches_bias).get();
  return roles.add(Role::words)
      .add(Role::positions, c.has_position_table)
      .add(Role::types, c.type_vocab_size > 0)
      .add(Role::projection, c.embedding_size > 0)
      .add(Role::projection_bias, c.embedding_size > 0)
      .add_norm(c, Role::norm, Role::norm_bias, c.has_embedding_norm)
      .get();
}

/// Adds the roles of half a block's input norm (`norm`, `norm_bias`), output norm and layer scale, as far as the config
/// has them.
void add_norms_of_half(const TransformerConfig& c, Role norm, Role norm_bias, bool has_norm, Roles& roles) {
  roles.add_norm(c, norm, norm_bias, has_norm && c.norm_place != NormPlace::after)
      .add_norm(c, Role::output_norm, Role::output_norm_bias,
                c.norm_place == NormPlace::after || c.norm_place == NormPlace::before_and_after)
      .add(Role::layer_scale, c.scales_layers);
}

std::vector<Role> latent_attention_roles(const TransformerConfig& c) {
  Roles roles;
  roles.add(Role::query_latent, c.latent.query_rank > 0)
      .add(Role::query_latent_norm, c.latent.query_rank > 0)
      .add(Role::key_value_latent)
      .add(Role::key_value_latent_norm)
      .add(Role::query)
      .add(Role::key_value)
      .add(Role::output);
  add_norms_of_half(c, Role::norm, Role::norm_bias, true, roles);
  return roles.get();
}

std::vector<Role> attention_roles(const TransformerConfig& c, int block) {
  if (c.latent.key_value_rank > 0) return latent_attention_roles(c);
  const bool is_one = is_stacked(c), bias_is_last = c.family == Family::vit;  // as in checkpoints
  Roles roles;
  roles.add(Role::query_key_value, is_one)
      .add(Role::query, !is_one)
      .add(Role::key_value, !is_one)
      .add(Role::output)
      .add(Role::query_key_value_bias, is_one && c.has_qkv_bias && !bias_is_last)
      .add(Role::query_bias, !is_one && c.has_qkv_bias)
      .add(Role::key_value_bias, !is_one && c.has_qkv_bias)
      .add(Role::output_bias, c.has_attention_output_bias)
      .add(Role::query_norm, c.query_key_norm != QueryKeyNorm::none)
      .add(Role::key_norm, c.query_key_norm != QueryKeyNorm::none);
  add_norms_of_half(c, Role::norm, Role::norm_bias, block > 0 || !c.first_block_has_no_norm, roles);
  return roles.add(Role::query_key_value_bias, bias_is_last && c.has_qkv_bias).get();
}

std::vector<Role> expert_roles(const TransformerConfig& c) {
  Roles roles;
  roles.add(Role::router)
      .add(Role::router_bias, c.experts.has_router_bias)
      .add(Role::experts_up)
      .add(Role::experts_output)
      .add(Role::shared_up, c.experts.shared_size > 0)
      .add(Role::shared_output, c.experts.shared_size > 0);
  add_norms_of_half(c, Role::mlp_norm, Role::mlp_norm_bias, true, roles);
  return roles.get();
}

std::vector<Role> mlp_roles(const TransformerConfig& c, int block) {
  if (c.has_experts(block)) return expert_roles(c);
  Roles roles;
  roles.add(Role::up).add(Role::down).add(Role::up_bias, c.has_mlp_bias).add(Role::down_bias, c.has_mlp_bias);
  add_norms_of_half(c, Role::mlp_norm, Role::mlp_norm_bias, true, roles);
  return roles.get();
}

std::vector<Role> parallel_block_roles(const TransformerConfig& c, int block) {
  std::vector<Role> roles = attention_roles(c, block);
  const std::vector<Role> of_mlp = mlp_roles(c, block);
  const auto others = of_mlp.begin() + 2;  // the first two are matrices, and matrices come first
  roles.insert(std::ranges::find(roles, Role::output) + 1, of_mlp.begin(), others);
  roles.insert(roles.end(), others, of_mlp.end());
  return roles;
}

std::vector<Role> head_roles(const TransformerConfig& c) {
  const HeadNames& head = head_of(c);
  const bool bias_is_last = c.has_final_norm && !c.reads_pictures;  // as in checkpoints
  return Roles()
      .add(Role::dense, head.dense)
      .add(Role::classes)
      .add(Role::dense_bias, head.dense && c.has_dense_bias)
      .add_norm(c, Role::dense_norm, Role::dense_norm_bias, head.dense_norm)
      .add(Role::classes_bias, head.classes_has_bias && !bias_is_last)
      .add_norm(c, Role::norm, Role::norm_bias, c.has_final_norm)
      .add(Role::classes_bias, head.classes_has_bias && bias_is_last)
      .get();
}

}  // namespace

int num_layers(const TransformerConfig& config) {
  return static_cast<int>((config.has_parallel_residual ? 1 : 2) * config.num_hidden_layers + 2);
}

LayerKind kind_of_layer(const TransformerConfig& config, int layer) {
  if (layer == 0) return LayerKind::embedding;
  if (layer + 1 >= num_layers(config)) return LayerKind::head;
  if (config.has_parallel_residual) return LayerKind::block;
  return layer % 2 == 1 ? LayerKind::attention : LayerKind::mlp;
}

int block_of_layer(const TransformerConfig& config, int layer) {
  return config.has_parallel_residual ? layer - 1 : (layer - 1) / 2;
}

std::vector<Role> roles_of(const TransformerConfig& config, int layer) {
  switch (kind_of_layer(config, layer)) {
    case LayerKind::embedding:
      return embedding_roles(config);
    case LayerKind::attention:
      return attention_roles(config, block_of_layer(config, layer));
    case LayerKind::mlp:
      return mlp_roles(config, block_of_layer(config, layer));
    case LayerKind::block:
      return parallel_block_roles(config, block_of_layer(config, layer));
    default:
      return head_roles(config);
  }
}

}  // namespace frostpipe
