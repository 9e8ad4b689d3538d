#include <fmt/format.h>

#include "base/error.h"
#include "profiles/transformer/read_family.h"

namespace frostpipe {
namespace {

/// Reads the experts of config.json. `defaults` are those of transformers.
void read_experts(const ConfigFields& fields, const char* count_key, const Experts& defaults, const char* size_key,
                  TransformerConfig& config) {
  Experts& experts = config.experts;
  experts.count = fields.positive(count_key, defaults.count);
  experts.per_token = fields.positive("num_experts_per_tok", defaults.per_token);
  experts.intermediate_size = fields.positive(size_key, defaults.intermediate_size);
  if (experts.per_token > experts.count)
    throw InvalidInput(fields.place("num_experts_per_tok"),
                       fmt::format("must be at most {} ({})", count_key, experts.count),
                       std::to_string(experts.per_token));
}

}  // namespace

void read_mixtral(const ConfigFields& fields, TransformerConfig& config) {
  read_decoder(fields, config);
  read_experts(fields, "num_local_experts", {.count = 8, .per_token = 2}, "intermediate_size", config);
}

void read_qwen3_moe(const ConfigFields& fields, TransformerConfig& config) {
  read_decoder(fields, config);
  const char* const count_key = fields.given("num_local_experts").is_null() ? "num_experts" : "num_local_experts";
  read_experts(fields, count_key, {.count = 128, .per_token = 8, .intermediate_size = 768}, "moe_intermediate_size",
               config);
}

void read_olmoe(const ConfigFields& fields, TransformerConfig& config) {
  config.query_key_norm = QueryKeyNorm::whole;
  read_decoder(fields, config);
  read_experts(fields, "num_experts", {.count = 64, .per_token = 8}, "intermediate_size", config);
}

void read_deepseek(const ConfigFields& fields, TransformerConfig& config) {
  read_decoder(fields, config);
  read_experts(fields, "n_routed_experts", {.count = 256, .per_token = 8, .intermediate_size = 2048},
               "moe_intermediate_size", config);
  config.experts.shared_size = fields.non_negative("n_shared_experts", 1) * config.experts.intermediate_size;
  config.experts.first_dense_blocks = fields.non_negative("first_k_dense_replace", 3);
  config.experts.has_router_bias = true;
  config.latent = {.query_rank = fields.is_null("q_lora_rank") ? 0 : fields.non_negative("q_lora_rank", 1536),
                   .key_value_rank = fields.positive("kv_lora_rank", 512),
                   .rotary_size = fields.positive("qk_rope_head_dim", 64),
                   .value_size = fields.positive("v_head_dim", 128)};
  config.head_size = fields.positive("qk_nope_head_dim", 128) + config.latent.rotary_size;
}

}  // namespace frostpipe
