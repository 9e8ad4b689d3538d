#pragma once
#include "profiles/config_fields.h"
#include "profiles/transformer/transformer_config.h"

// Implementation header: reads config.json of each family, as transformers 4 and 5 write it. Each function completes
// the family's description and throws InvalidInput that names file, field, rule and value.

namespace frostpipe {

/// Reads BERT and families with its fields: RoBERTa, XLM-RoBERTa, CamemBERT and ELECTRA.
void read_bert(const ConfigFields& fields, TransformerConfig& config);
void read_distilbert(const ConfigFields& fields, TransformerConfig& config);
void read_modernbert(const ConfigFields& fields, TransformerConfig& config);
/// Reads ViT, DeiT and DINOv2.
void read_vit(const ConfigFields& fields, TransformerConfig& config);
void read_gpt2(const ConfigFields& fields, TransformerConfig& config);
void read_gpt_neox(const ConfigFields& fields, TransformerConfig& config);
/// Reads Llama and families with its fields: Mistral, SmolLM3, Qwen 2 and 3, Gemma 1 to 3, OLMo 2 and 3, and Phi 3.
void read_decoder(const ConfigFields& fields, TransformerConfig& config);
void read_granite(const ConfigFields& fields, TransformerConfig& config);
void read_starcoder2(const ConfigFields& fields, TransformerConfig& config);
/// These four functions read decoders with experts, which are only counted.
void read_mixtral(const ConfigFields& fields, TransformerConfig& config);
void read_qwen3_moe(const ConfigFields& fields, TransformerConfig& config);
void read_olmoe(const ConfigFields& fields, TransformerConfig& config);
void read_deepseek(const ConfigFields& fields, TransformerConfig& config);

/// Reads the rotary positions of config.json into `rotaries`, and the window and the rotary positions of each block, by
/// layer_types or its older equivalents, into `patterns`. `default_theta` is used if none is given. Requires family,
/// head size, number of blocks and max_position_embeddings.
void read_rotary_patterns(const ConfigFields& fields, double default_theta, TransformerConfig& config);

}  // namespace frostpipe
