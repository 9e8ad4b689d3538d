#include "profiles/estimates/known_models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ranges>

namespace frostpipe {
namespace {

// The values come from the config.json with which each model was published on the Hugging Face Hub
// (openai-community/gpt2*, google-bert/bert-*-uncased, FacebookAI/roberta-*, google/vit-*-patch16-224, meta-llama,
// Qwen, mistralai, google/gemma-*, HuggingFaceTB/SmolLM2-135M, EleutherAI, deepseek-ai, answerdotai/ModernBERT-base).
// Tests compare the resulting numbers of parameters with the published ones.
constexpr KnownModel kModels[] = {
    {"gpt2", 0, R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257})"},
    {"gpt2-medium", 0, R"({"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16, "vocab_size": 50257})"},
    {"gpt2-large", 0, R"({"model_type": "gpt2", "n_embd": 1280, "n_layer": 36, "n_head": 20, "vocab_size": 50257})"},
    {"gpt2-xl", 0, R"({"model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25, "vocab_size": 50257})"},
    {"bert-base", 0, R"({"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
      "intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2})"},
    // Question answering on texts of 384 tokens, as He et al. 2021 train it.
    {"bert-large", 384, R"({"model_type": "bert", "architectures": ["BertForQuestionAnswering"], "hidden_size": 1024,
      "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 30522,
      "max_position_embeddings": 512, "type_vocab_size": 2})"},
    {"roberta-base", 0, R"({"model_type": "roberta", "hidden_size": 768, "num_hidden_layers": 12,
      "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 50265, "max_position_embeddings": 514,
      "type_vocab_size": 1, "pad_token_id": 1})"},
    {"roberta-large", 0, R"({"model_type": "roberta", "hidden_size": 1024, "num_hidden_layers": 24,
      "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 50265, "max_position_embeddings": 514,
      "type_vocab_size": 1, "pad_token_id": 1})"},
    {"modernbert-base", 0, R"({"model_type": "modernbert", "hidden_size": 768, "num_hidden_layers": 22,
      "num_attention_heads": 12, "intermediate_size": 1152, "vocab_size": 50368, "max_position_embeddings": 8192,
      "global_attn_every_n_layers": 3, "local_attention": 128})"},
    {"vit-b16", 0, R"({"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
      "intermediate_size": 3072, "image_size": 224, "patch_size": 16, "num_labels": 1000})"},
    {"vit-l16", 0, R"({"model_type": "vit", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
      "intermediate_size": 4096, "image_size": 224, "patch_size": 16, "num_labels": 1000})"},
    {"llama-2-7b", 0, R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 32000, "max_position_embeddings": 4096})"},
    {"llama-3-8b", 0, R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
      "max_position_embeddings": 8192, "rope_theta": 500000})"},
    {"llama-3-70b", 0, R"({"model_type": "llama", "hidden_size": 8192, "num_hidden_layers": 80,
      "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 128256,
      "max_position_embeddings": 8192, "rope_theta": 500000})"},
    {"llama-3.2-1b", 0, R"({"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16,
      "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192,
      "vocab_size": 128256, "max_position_embeddings": 131072, "rope_theta": 500000, "tie_word_embeddings": true})"},
    {"qwen2.5-0.5b", 0, R"({"model_type": "qwen2", "hidden_size": 896, "num_hidden_layers": 24,
      "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864, "vocab_size": 151936,
      "max_position_embeddings": 32768, "rope_theta": 1000000, "tie_word_embeddings": true})"},
    {"qwen2.5-7b", 0, R"({"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28,
      "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064,
      "max_position_embeddings": 131072, "rope_theta": 1000000})"},
    {"qwen3-0.6b", 0, R"({"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28,
      "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072,
      "vocab_size": 151936, "max_position_embeddings": 40960, "rope_theta": 1000000, "tie_word_embeddings": true})"},
    {"qwen3-8b", 0, R"({"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36,
      "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288,
      "vocab_size": 151936, "max_position_embeddings": 40960, "rope_theta": 1000000})"},
    {"mistral-7b", 0, R"({"model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32768,
      "max_position_embeddings": 32768, "rope_theta": 1000000, "sliding_window": null})"},
    {"gemma-2-2b", 0, R"({"model_type": "gemma2", "hidden_size": 2304, "num_hidden_layers": 26,
      "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 9216,
      "vocab_size": 256000, "max_position_embeddings": 8192, "sliding_window": 4096, "attn_logit_softcapping": 50.0,
      "final_logit_softcapping": 30.0})"},
    {"gemma-3-1b", 0, R"({"model_type": "gemma3_text", "hidden_size": 1152, "num_hidden_layers": 26,
      "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 6912,
      "vocab_size": 262144, "max_position_embeddings": 32768, "sliding_window": 512})"},
    {"smollm2-135m", 0, R"({"model_type": "llama", "hidden_size": 576, "num_hidden_layers": 30,
      "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1536, "vocab_size": 49152,
      "max_position_embeddings": 8192, "rope_theta": 100000, "tie_word_embeddings": true})"},
    {"pythia-1.4b", 0, R"({"model_type": "gpt_neox", "hidden_size": 2048, "num_hidden_layers": 24,
      "num_attention_heads": 16, "intermediate_size": 8192, "vocab_size": 50304, "max_position_embeddings": 2048})"},
    {"pythia-6.9b", 0, R"({"model_type": "gpt_neox", "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "intermediate_size": 16384, "vocab_size": 50432, "max_position_embeddings": 2048})"},
    {"gpt-neox-20b", 0, R"({"model_type": "gpt_neox", "hidden_size": 6144, "num_hidden_layers": 44,
      "num_attention_heads": 64, "intermediate_size": 24576, "vocab_size": 50432, "max_position_embeddings": 2048,
      "hidden_act": "gelu_fast"})"},
    {"mixtral-8x7b", 0, R"({"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "num_local_experts": 8,
      "num_experts_per_tok": 2, "vocab_size": 32000, "max_position_embeddings": 32768, "rope_theta": 1000000,
      "sliding_window": null})"},
    {"qwen3-30b-a3b", 0, R"({"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48,
      "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144,
      "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "vocab_size": 151936,
      "max_position_embeddings": 40960, "rope_theta": 1000000})"},
    {"deepseek-v3", 0, R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
      "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432, "n_routed_experts": 256,
      "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, "first_k_dense_replace": 3,
      "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "vocab_size": 129280, "max_position_embeddings": 163840})"},
};

}  // namespace

std::span<const KnownModel> known_models() { return kModels; }

std::string known_model_names() {
  return fmt::format("{}", fmt::join(kModels | std::views::transform(&KnownModel::name), ", "));
}

}  // namespace frostpipe
