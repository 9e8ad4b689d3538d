#include "profiles/transformer/families.h"

#include <algorithm>

#include "profiles/error.h"
#include "profiles/transformer/read_family.h"

namespace frostpipe {
namespace {

using enum Task;

constexpr HeadNames kBertHeads[] = {
    {.task = sequence_classification,
     .class_suffix = "ForSequenceClassification",
     .classes = "classifier",
     .dense = "bert.pooler.dense"},
    {.task = question_answering, .class_suffix = "ForQuestionAnswering", .classes = "qa_outputs"}};

constexpr HeadNames kRobertaHeads[] = {
    {.task = sequence_classification,
     .class_suffix = "ForSequenceClassification",
     .classes = "classifier.out_proj",
     .dense = "classifier.dense"},
    {.task = question_answering, .class_suffix = "ForQuestionAnswering", .classes = "qa_outputs"}};

constexpr HeadNames kElectraHeads[] = {
    {.task = sequence_classification,
     .class_suffix = "ForSequenceClassification",
     .classes = "classifier.out_proj",
     .dense = "classifier.dense",
     .dense_activation = Activation::gelu},
    {.task = question_answering, .class_suffix = "ForQuestionAnswering", .classes = "qa_outputs"}};

constexpr HeadNames kDistilbertHeads[] = {
    {.task = sequence_classification,
     .class_suffix = "ForSequenceClassification",
     .classes = "classifier",
     .dense = "pre_classifier",
     .dense_activation = Activation::relu},
    {.task = question_answering, .class_suffix = "ForQuestionAnswering", .classes = "qa_outputs"}};

constexpr HeadNames kModernbertHeads[] = {{.task = sequence_classification,
                                           .class_suffix = "ForSequenceClassification",
                                           .classes = "classifier",
                                           .dense = "head.dense",
                                           .dense_activation = Activation::gelu,
                                           .dense_norm = "head.norm"},
                                          {.task = question_answering,
                                           .class_suffix = "ForQuestionAnswering",
                                           .classes = "classifier",
                                           .dense = "head.dense",
                                           .dense_activation = Activation::gelu,
                                           .dense_norm = "head.norm"}};

constexpr HeadNames kVitHeads[] = {
    {.task = image_classification, .class_suffix = "ForImageClassification", .classes = "classifier"}};

constexpr HeadNames kGpt2Heads[] = {
    {.task = causal_language_modeling, .class_suffix = "LMHeadModel", .classes = "lm_head", .classes_has_bias = false},
    {.task = sequence_classification,
     .class_suffix = "ForSequenceClassification",
     .classes = "score",
     .classes_has_bias = false},
    {.task = question_answering, .class_suffix = "ForQuestionAnswering", .classes = "qa_outputs"}};

constexpr HeadNames kDecoderHeads[] = {
    {.task = causal_language_modeling, .class_suffix = "ForCausalLM", .classes = "lm_head", .classes_has_bias = false},
    {.task = sequence_classification,
     .class_suffix = "ForSequenceClassification",
     .classes = "score",
     .classes_has_bias = false},
    {.task = question_answering, .class_suffix = "ForQuestionAnswering", .classes = "qa_outputs"}};

/// As kDecoderHeads, but the base model under a head for questions has another prefix.
constexpr HeadNames kLlamaHeads[] = {kDecoderHeads[0],
                                     kDecoderHeads[1],
                                     {.task = question_answering,
                                      .class_suffix = "ForQuestionAnswering",
                                      .classes = "qa_outputs",
                                      .prefix = "transformer."}};

constexpr HeadNames kGemma3Heads[] = {kDecoderHeads[0],
                                      {.task = sequence_classification,
                                       .class_suffix = "TextForSequenceClassification",
                                       .classes = "score",
                                       .classes_has_bias = false}};

constexpr ModuleNames kBertNames{.words = "embeddings.word_embeddings",
                                 .positions = "embeddings.position_embeddings",
                                 .types = "embeddings.token_type_embeddings",
                                 .embedding_norm = "embeddings.LayerNorm",
                                 .projection = "embeddings_project",
                                 .block = "encoder.layer.",
                                 .query = "attention.self.query",
                                 .key = "attention.self.key",
                                 .value = "attention.self.value",
                                 .attention_output = "attention.output.dense",
                                 .attention_norm = "attention.output.LayerNorm",
                                 .up = "intermediate.dense",
                                 .down = "output.dense",
                                 .mlp_norm = "output.LayerNorm"};

constexpr ModuleNames kDistilbertNames{.words = "embeddings.word_embeddings",
                                       .positions = "embeddings.position_embeddings",
                                       .embedding_norm = "embeddings.LayerNorm",
                                       .block = "transformer.layer.",
                                       .query = "attention.q_lin",
                                       .key = "attention.k_lin",
                                       .value = "attention.v_lin",
                                       .attention_output = "attention.out_lin",
                                       .attention_norm = "sa_layer_norm",
                                       .up = "ffn.lin1",
                                       .down = "ffn.lin2",
                                       .mlp_norm = "output_layer_norm"};

constexpr ModuleNames kModernbertNames{.words = "embeddings.tok_embeddings",
                                       .embedding_norm = "embeddings.norm",
                                       .block = "layers.",
                                       .query_key_value = "attn.Wqkv",
                                       .attention_output = "attn.Wo",
                                       .attention_norm = "attn_norm",
                                       .up = "mlp.Wi",
                                       .down = "mlp.Wo",
                                       .mlp_norm = "mlp_norm",
                                       .final_norm = "final_norm"};

constexpr ModuleNames kVitNames{.positions = "embeddings.position_embeddings",
                                .projection = "embeddings.patch_embeddings.projection",
                                .block = "encoder.layer.",
                                .query = "attention.attention.query",
                                .key = "attention.attention.key",
                                .value = "attention.attention.value",
                                .attention_output = "attention.output.dense",
                                .attention_norm = "layernorm_before",
                                .up = "intermediate.dense",
                                .down = "output.dense",
                                .mlp_norm = "layernorm_after",
                                .final_norm = "layernorm"};

constexpr ModuleNames kGpt2Names{.words = "wte",
                                 .positions = "wpe",
                                 .block = "h.",
                                 .query_key_value = "attn.c_attn",
                                 .attention_output = "attn.c_proj",
                                 .attention_norm = "ln_1",
                                 .up = "mlp.c_fc",
                                 .down = "mlp.c_proj",
                                 .mlp_norm = "ln_2",
                                 .final_norm = "ln_f",
                                 .matrices_are_transposed = true};

constexpr ModuleNames kLlamaNames{.words = "embed_tokens",
                                  .block = "layers.",
                                  .query = "self_attn.q_proj",
                                  .key = "self_attn.k_proj",
                                  .value = "self_attn.v_proj",
                                  .attention_output = "self_attn.o_proj",
                                  .query_norm = "self_attn.q_norm",
                                  .key_norm = "self_attn.k_norm",
                                  .attention_norm = "input_layernorm",
                                  .attention_output_norm = "post_attention_layernorm",
                                  .gate = "mlp.gate_proj",
                                  .up = "mlp.up_proj",
                                  .down = "mlp.down_proj",
                                  .mlp_norm = "post_attention_layernorm",
                                  .mlp_output_norm = "post_feedforward_layernorm",
                                  .final_norm = "norm"};

constexpr ModuleNames with_mlp_norm(ModuleNames names, const char* mlp_norm) {
  names.mlp_norm = mlp_norm;
  return names;
}

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

constexpr ModuleNames kGemma2Names = with_mlp_norm(kLlamaNames, "pre_feedforward_layernorm");

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
    {Family::qwen2, "qwen2", "Qwen2", "model.", kLlamaNames, kLlamaHeads, qwen2, read_decoder},
    {Family::qwen3, "qwen3", "Qwen3", "model.", kLlamaNames, kLlamaHeads, qwen3, read_decoder},
    {Family::gemma, "gemma", "Gemma", "model.", kLlamaNames, std::span(kDecoderHeads, 2), gemma, read_decoder},
    {Family::gemma2, "gemma2", "Gemma2", "model.", kGemma2Names, std::span(kDecoderHeads, 2), gemma2, read_decoder},
    {Family::gemma3_text, "gemma3_text", "Gemma3", "model.", kGemma2Names, kGemma3Heads, gemma3, read_decoder},
    {Family::olmo2, "olmo2", "Olmo2", "model.", kLlamaNames, std::span(kDecoderHeads, 2), olmo2, read_decoder},
    {Family::mixtral, "mixtral", "Mixtral", "model.", kLlamaNames, std::span(kDecoderHeads, 1), llama, read_mixtral,
     true},
    {Family::qwen3_moe, "qwen3_moe", "Qwen3Moe", "model.", kLlamaNames, std::span(kDecoderHeads, 1), qwen3,
     read_qwen3_moe, true},
    {Family::olmoe, "olmoe", "Olmoe", "model.", kLlamaNames, std::span(kDecoderHeads, 1), llama, read_olmoe, true},
    {Family::deepseek_v3, "deepseek_v3", "DeepseekV3", "model.", kLlamaNames, std::span(kDecoderHeads, 1), llama,
     read_deepseek, true},
};

}  // namespace

const char* to_string(Family family) { return row_of(family).model_type; }

const char* to_string(Task task) {
  static constexpr const char* kNames[] = {"sequence classification", "question answering", "image classification",
                                           "causal language modeling"};
  return kNames[static_cast<int>(task)];
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
