#pragma once
// Implementation header of families.cpp: names of tensors in files, by family.
#include "profiles/transformer/families.h"

namespace frostpipe {

inline constexpr HeadNames kBertHeads[] = {
    {.task = Task::sequence_classification,
     .class_suffix = "ForSequenceClassification",
     .classes = "classifier",
     .dense = "bert.pooler.dense"},
    {.task = Task::token_classification, .class_suffix = "ForTokenClassification", .classes = "classifier"},
    {.task = Task::question_answering, .class_suffix = "ForQuestionAnswering", .classes = "qa_outputs"}};

inline constexpr HeadNames kRobertaHeads[] = {
    {.task = Task::sequence_classification,
     .class_suffix = "ForSequenceClassification",
     .classes = "classifier.out_proj",
     .dense = "classifier.dense"},
    {.task = Task::token_classification, .class_suffix = "ForTokenClassification", .classes = "classifier"},
    {.task = Task::question_answering, .class_suffix = "ForQuestionAnswering", .classes = "qa_outputs"}};

inline constexpr HeadNames kElectraHeads[] = {
    {.task = Task::sequence_classification,
     .class_suffix = "ForSequenceClassification",
     .classes = "classifier.out_proj",
     .dense = "classifier.dense",
     .dense_activation = Activation::gelu},
    {.task = Task::token_classification, .class_suffix = "ForTokenClassification", .classes = "classifier"},
    {.task = Task::question_answering, .class_suffix = "ForQuestionAnswering", .classes = "qa_outputs"}};

inline constexpr HeadNames kDistilbertHeads[] = {
    {.task = Task::sequence_classification,
     .class_suffix = "ForSequenceClassification",
     .classes = "classifier",
     .dense = "pre_classifier",
     .dense_activation = Activation::relu},
    {.task = Task::token_classification, .class_suffix = "ForTokenClassification", .classes = "classifier"},
    {.task = Task::question_answering, .class_suffix = "ForQuestionAnswering", .classes = "qa_outputs"}};

inline constexpr HeadNames kModernbertHeads[] = {{.task = Task::sequence_classification,
                                                  .class_suffix = "ForSequenceClassification",
                                                  .classes = "classifier",
                                                  .dense = "head.dense",
                                                  .dense_activation = Activation::gelu,
                                                  .dense_norm = "head.norm"},
                                                 {.task = Task::token_classification,
                                                  .class_suffix = "ForTokenClassification",
                                                  .classes = "classifier",
                                                  .dense = "head.dense",
                                                  .dense_activation = Activation::gelu,
                                                  .dense_norm = "head.norm"},
                                                 {.task = Task::question_answering,
                                                  .class_suffix = "ForQuestionAnswering",
                                                  .classes = "classifier",
                                                  .dense = "head.dense",
                                                  .dense_activation = Activation::gelu,
                                                  .dense_norm = "head.norm"}};

inline constexpr HeadNames kVitHeads[] = {
    {.task = Task::image_classification, .class_suffix = "ForImageClassification", .classes = "classifier"}};

inline constexpr HeadNames kGpt2Heads[] = {
    {.task = Task::causal_language_modeling,
     .class_suffix = "LMHeadModel",
     .classes = "lm_head",
     .classes_has_bias = false},
    {.task = Task::sequence_classification,
     .class_suffix = "ForSequenceClassification",
     .classes = "score",
     .classes_has_bias = false},
    {.task = Task::token_classification, .class_suffix = "ForTokenClassification", .classes = "classifier"},
    {.task = Task::question_answering, .class_suffix = "ForQuestionAnswering", .classes = "qa_outputs"}};

inline constexpr HeadNames kDecoderHeads[] = {
    {.task = Task::causal_language_modeling,
     .class_suffix = "ForCausalLM",
     .classes = "lm_head",
     .classes_has_bias = false},
    {.task = Task::sequence_classification,
     .class_suffix = "ForSequenceClassification",
     .classes = "score",
     .classes_has_bias = false},
    {.task = Task::token_classification, .class_suffix = "ForTokenClassification", .classes = "score"},
    {.task = Task::question_answering, .class_suffix = "ForQuestionAnswering", .classes = "qa_outputs"}};

/// These are kDecoderHeads, except that the base model under a question-answering head has another prefix.
inline constexpr HeadNames kLlamaHeads[] = {kDecoderHeads[0],
                                            kDecoderHeads[1],
                                            kDecoderHeads[2],
                                            {.task = Task::question_answering,
                                             .class_suffix = "ForQuestionAnswering",
                                             .classes = "qa_outputs",
                                             .prefix = "transformer."}};

inline constexpr HeadNames kGptNeoxHeads[] = {
    {.task = Task::causal_language_modeling,
     .class_suffix = "ForCausalLM",
     .classes = "embed_out",
     .classes_has_bias = false},
    kDecoderHeads[1],
    {.task = Task::token_classification, .class_suffix = "ForTokenClassification", .classes = "classifier"},
    kDecoderHeads[3]};

inline constexpr HeadNames kGemma3Heads[] = {kDecoderHeads[0],
                                             {.task = Task::sequence_classification,
                                              .class_suffix = "TextForSequenceClassification",
                                              .classes = "score",
                                              .classes_has_bias = false}};

inline constexpr ModuleNames kBertNames{.words = "embeddings.word_embeddings",
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

inline constexpr ModuleNames kDistilbertNames{.words = "embeddings.word_embeddings",
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

inline constexpr ModuleNames kModernbertNames{.words = "embeddings.tok_embeddings",
                                              .embedding_norm = "embeddings.norm",
                                              .block = "layers.",
                                              .query_key_value = "attn.Wqkv",
                                              .attention_output = "attn.Wo",
                                              .attention_norm = "attn_norm",
                                              .up = "mlp.Wi",
                                              .down = "mlp.Wo",
                                              .mlp_norm = "mlp_norm",
                                              .final_norm = "final_norm"};

inline constexpr ModuleNames kVitNames{.positions = "embeddings.position_embeddings",
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

inline constexpr ModuleNames kDinov2Names{.positions = "embeddings.position_embeddings",
                                          .projection = "embeddings.patch_embeddings.projection",
                                          .block = "encoder.layer.",
                                          .query = "attention.attention.query",
                                          .key = "attention.attention.key",
                                          .value = "attention.attention.value",
                                          .attention_output = "attention.output.dense",
                                          .attention_norm = "norm1",
                                          .attention_layer_scale = "layer_scale1.lambda1",
                                          .up = "mlp.fc1",
                                          .down = "mlp.fc2",
                                          .gated_up = "mlp.weights_in",
                                          .gated_down = "mlp.weights_out",
                                          .mlp_norm = "norm2",
                                          .mlp_layer_scale = "layer_scale2.lambda1",
                                          .final_norm = "layernorm"};

inline constexpr ModuleNames kGpt2Names{.words = "wte",
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

inline constexpr ModuleNames kLlamaNames{.words = "embed_tokens",
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

inline constexpr ModuleNames kPhi3Names{.words = "embed_tokens",
                                        .block = "layers.",
                                        .query_key_value = "self_attn.qkv_proj",
                                        .attention_output = "self_attn.o_proj",
                                        .attention_norm = "input_layernorm",
                                        .up = "mlp.gate_up_proj",
                                        .down = "mlp.down_proj",
                                        .mlp_norm = "post_attention_layernorm",
                                        .final_norm = "norm"};

inline constexpr ModuleNames kGptNeoxNames{.words = "embed_in",
                                           .block = "layers.",
                                           .query_key_value = "attention.query_key_value",
                                           .attention_output = "attention.dense",
                                           .attention_norm = "input_layernorm",
                                           .up = "mlp.dense_h_to_4h",
                                           .down = "mlp.dense_4h_to_h",
                                           .mlp_norm = "post_attention_layernorm",
                                           .final_norm = "final_layer_norm",
                                           .rows_are_by_head = true};

constexpr ModuleNames with_mlp_norm(ModuleNames names, const char* mlp_norm) {
  names.mlp_norm = mlp_norm;
  return names;
}

inline constexpr ModuleNames kGemma2Names = with_mlp_norm(kLlamaNames, "pre_feedforward_layernorm");

constexpr ModuleNames with_plain_mlp(ModuleNames names, const char* up, const char* down) {
  names.gate = nullptr;
  names.up = up;
  names.down = down;
  return names;
}

inline constexpr ModuleNames kStarcoder2Names = with_plain_mlp(kLlamaNames, "mlp.c_fc", "mlp.c_proj");

}  // namespace frostpipe
