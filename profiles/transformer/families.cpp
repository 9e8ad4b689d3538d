#include "profiles/transformer/families.h"

#include <algorithm>

#include "base/error.h"
#include "profiles/transformer/family_names.h"
#include "profiles/transformer/read_family.h"

namespace frostpipe {
namespace {

TransformerConfig encoder() { return {}; }

TransformerConfig roberta() { return {.layer_norm_eps = 1e-12, .padding_id = 1, .position_offset = 2}; }

TransformerConfig distilbert() { return {.type_vocab_size = 0}; }

TransformerConfig modernbert() {
  return {.layer_norm_eps = 1e-5,
          .type_vocab_size = 0,
          .has_qkv_bias = false,
          .norm_place = NormPlace::before,
          .norm_has_bias = false,
          .first_block_has_no_norm = true,
          .has_final_norm = true,
          .has_position_table = false,
          .has_attention_output_bias = false,
          .has_mlp_bias = false,
          .has_dense_bias = false,
          .has_gate = true};
}

TransformerConfig vit() {
  return {.type_vocab_size = 0,
          .reads_pictures = true,
          .norm_place = NormPlace::before,
          .has_embedding_norm = false,
          .has_final_norm = true};
}

TransformerConfig deit() {
  TransformerConfig config = vit();
  config.num_class_tokens = 2;
  return config;
}

TransformerConfig dinov2() {
  TransformerConfig config = vit();
  config.layer_norm_eps = 1e-6;
  config.patch_size = 14;
  config.pools_patches = true;
  config.scales_layers = true;
  return config;
}

TransformerConfig gpt2() {
  return {.layer_norm_eps = 1e-5,
          .type_vocab_size = 0,
          .is_causal = true,
          .norm_place = NormPlace::before,
          .has_embedding_norm = false,
          .has_final_norm = true,
          .activation = Activation::gelu_tanh,
          .scales_residual_start = true};
}

TransformerConfig llama() {
  return {.layer_norm_eps = 1e-6,
          .type_vocab_size = 0,
          .has_qkv_bias = false,
          .is_causal = true,
          .norm = NormKind::rms,
          .norm_place = NormPlace::before,
          .norm_has_bias = false,
          .has_embedding_norm = false,
          .has_final_norm = true,
          .has_position_table = false,
          .has_attention_output_bias = false,
          .has_mlp_bias = false,
          .has_gate = true,
          .activation = Activation::silu};
}

/// Phi 3, Mixtral and OLMoE.
TransformerConfig phi3() {
  TransformerConfig config = llama();
  config.layer_norm_eps = 1e-5;
  return config;
}

TransformerConfig starcoder2() {
  TransformerConfig config = phi3();
  config.initializer_range = 0.018042;
  config.norm = NormKind::layer;
  config.norm_has_bias = true;
  config.has_gate = false;
  config.ties_embeddings = true;
  return config;
}

TransformerConfig smollm3() {
  TransformerConfig config = llama();
  config.ties_embeddings = true;
  return config;
}

TransformerConfig qwen2() {
  TransformerConfig config = llama();
  config.has_qkv_bias = true;
  return config;
}

TransformerConfig qwen3() {
  TransformerConfig config = llama();
  config.query_key_norm = QueryKeyNorm::by_head;
  return config;
}

TransformerConfig gemma() {
  TransformerConfig config = llama();
  config.ties_embeddings = true;
  config.norm_adds_one = true;
  config.activation = Activation::gelu_tanh;
  return config;
}

TransformerConfig gemma2() {
  TransformerConfig config = gemma();
  config.norm_place = NormPlace::before_and_after;
  return config;
}

TransformerConfig gemma3() {
  TransformerConfig config = gemma2();
  config.query_key_norm = QueryKeyNorm::by_head;
  return config;
}

TransformerConfig olmo2() {
  TransformerConfig config = llama();
  config.layer_norm_eps = 1e-5;
  config.norm_place = NormPlace::after;
  config.query_key_norm = QueryKeyNorm::whole;
  return config;
}

TransformerConfig gpt_neox() {
  TransformerConfig config = gpt2();
  config.has_position_table = false;
  config.activation = Activation::gelu;
  config.scales_residual_start = false;
  return config;
}

const FamilyRow kFamilies[] = {
    {Family::bert, "bert", "Bert", "bert.", kBertNames, kBertHeads, encoder, read_bert},
    {Family::vit, "vit", "ViT", "vit.", kVitNames, kVitHeads, vit, read_vit},
    {Family::gpt2, "gpt2", "GPT2", "transformer.", kGpt2Names, kGpt2Heads, gpt2, read_gpt2},
    {Family::roberta, "roberta", "Roberta", "roberta.", kBertNames, kRobertaHeads, roberta, read_bert},
    {Family::xlm_roberta, "xlm-roberta", "XLMRoberta", "roberta.", kBertNames, kRobertaHeads, roberta, read_bert},
    {Family::camembert, "camembert", "Camembert", "roberta.", kBertNames, kRobertaHeads, roberta, read_bert},
    {Family::distilbert, "distilbert", "DistilBert", "distilbert.", kDistilbertNames, kDistilbertHeads, distilbert,
     read_distilbert},
    {Family::electra, "electra", "Electra", "electra.", kBertNames, kElectraHeads, encoder, read_bert},
    {Family::modernbert, "modernbert", "ModernBert", "model.", kModernbertNames, kModernbertHeads, modernbert,
     read_modernbert},
    {Family::llama, "llama", "Llama", "model.", kLlamaNames, kLlamaHeads, llama, read_decoder},
    {Family::mistral, "mistral", "Mistral", "model.", kLlamaNames, kDecoderHeads, llama, read_decoder},
    {Family::smollm3, "smollm3", "SmolLM3", "model.", kLlamaNames, kLlamaHeads, smollm3, read_decoder},
    {Family::granite, "granite", "Granite", "model.", kLlamaNames, std::span(kDecoderHeads, 1), llama, read_granite},
    {Family::starcoder2, "starcoder2", "Starcoder2", "model.", kStarcoder2Names, std::span(kDecoderHeads, 3),
     starcoder2, read_starcoder2},
    {Family::qwen2, "qwen2", "Qwen2", "model.", kLlamaNames, kLlamaHeads, qwen2, read_decoder},
    {Family::qwen3, "qwen3", "Qwen3", "model.", kLlamaNames, kLlamaHeads, qwen3, read_decoder},
    {Family::gemma, "gemma", "Gemma", "model.", kLlamaNames, std::span(kDecoderHeads, 3), gemma, read_decoder},
    {Family::gemma2, "gemma2", "Gemma2", "model.", kGemma2Names, std::span(kDecoderHeads, 3), gemma2, read_decoder},
    {Family::gemma3_text, "gemma3_text", "Gemma3", "model.", kGemma2Names, kGemma3Heads, gemma3, read_decoder},
    {Family::olmo2, "olmo2", "Olmo2", "model.", kLlamaNames, std::span(kDecoderHeads, 2), olmo2, read_decoder},
    {Family::olmo3, "olmo3", "Olmo3", "model.", kLlamaNames, std::span(kDecoderHeads, 2), olmo2, read_decoder},
    {Family::phi3, "phi3", "Phi3", "model.", kPhi3Names, std::span(kDecoderHeads, 3), phi3, read_decoder},
    {Family::gpt_neox, "gpt_neox", "GPTNeoX", "gpt_neox.", kGptNeoxNames, kGptNeoxHeads, gpt_neox, read_gpt_neox},
    {Family::deit, "deit", "DeiT", "deit.", kVitNames, kVitHeads, deit, read_vit},
    {Family::dinov2, "dinov2", "Dinov2", "dinov2.", kDinov2Names, kVitHeads, dinov2, read_vit},
    {Family::mixtral, "mixtral", "Mixtral", "model.", kLlamaNames, std::span(kDecoderHeads, 1), phi3, read_mixtral,
     true},
    {Family::qwen3_moe, "qwen3_moe", "Qwen3Moe", "model.", kLlamaNames, std::span(kDecoderHeads, 1), qwen3,
     read_qwen3_moe, true},
    {Family::olmoe, "olmoe", "Olmoe", "model.", kLlamaNames, std::span(kDecoderHeads, 1), phi3, read_olmoe, true},
    {Family::deepseek_v3, "deepseek_v3", "DeepseekV3", "model.", kLlamaNames, std::span(kDecoderHeads, 1), llama,
     read_deepseek, true},
};

}  // namespace

const char* to_string(Family family) { return row_of(family).model_type; }

const char* to_string(Task task) {
  static constexpr const char* kNames[] = {"sequence classification", "question answering", "image classification",
                                           "causal language modeling", "token classification"};
  return kNames[static_cast<int>(task)];
}

const char* to_string(ProblemType problem_type) {
  static constexpr const char* kNames[] = {"single_label_classification", "multi_label_classification", "regression"};
  return kNames[static_cast<int>(problem_type)];
}

std::span<const FamilyRow> family_rows() { return kFamilies; }

const FamilyRow& row_of(Family family) {
  const FamilyRow& row = kFamilies[static_cast<std::size_t>(family)];
  FROSTPIPE_CHECK(row.family == family, "the rows are in the order of the enumeration");
  return row;
}

const FamilyRow* find_family(std::string_view model_type) {
  const auto* const found = std::ranges::find(kFamilies, model_type, &FamilyRow::model_type);
  return found == std::end(kFamilies) ? nullptr : found;
}

const HeadNames* find_head(Family family, Task task) {
  const std::span<const HeadNames> heads = row_of(family).heads;
  const auto found = std::ranges::find(heads, task, &HeadNames::task);
  return found == heads.end() ? nullptr : &*found;
}

const HeadNames& head_of(const TransformerConfig& config) {
  const HeadNames* const head = find_head(config.family, config.task);
  FROSTPIPE_CHECK(head, "a config's task is one that its family has a head for");
  return *head;
}

TransformerConfig described(Family family) {
  TransformerConfig config = row_of(family).described();
  config.family = family;
  config.task = row_of(family).heads.front().task;
  return config;
}

}  // namespace frostpipe
