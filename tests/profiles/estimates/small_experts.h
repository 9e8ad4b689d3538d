#pragma once
#include "profiles/estimates/estimated_model.h"
#include "profiles/transformer/families.h"

namespace frostpipe::test {

/// Returns a block with two heads, hidden size 8, and two of four experts for each token.
inline EstimatedModel small_experts() {
  TransformerConfig config = described(Family::mixtral);
  config.hidden_size = 8;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.intermediate_size = 32;
  config.experts = {.count = 4, .per_token = 2, .intermediate_size = 32};
  config.vocab_size = 100;
  return {"small", config, 1000};
}

}  // namespace frostpipe::test
