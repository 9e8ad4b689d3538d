#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace frostpipe {

/// A row of the table of families (families.h), named after Hugging Face's model_type.
enum class Family {
  bert,
  vit,
  gpt2,
  roberta,
  xlm_roberta,
  camembert,
  distilbert,
  electra,
  modernbert,
  llama,
  mistral,
  smollm3,
  granite,
  starcoder2,
  qwen2,
  qwen3,
  gemma,
  gemma2,
  gemma3_text,
  olmo2,
  olmo3,
  phi3,
  gpt_neox,
  deit,
  dinov2,
  mixtral,
  qwen3_moe,
  olmoe,
  deepseek_v3,
};

/// The training task. It determines the head, the loss and how answers are scored.
enum class Task {
  sequence_classification,
  question_answering,
  image_classification,
  causal_language_modeling,
  token_classification,
};

/// The kind of a classifier's prediction for a text, and its loss: transformers' problem_type.
enum class ProblemType {
  single_label,  // one of the labels; cross entropy
  multi_label,   // any number of the labels; binary cross entropy of each
  regression,    // a number; squared error
};

const char* to_string(Family family);
const char* to_string(Task task);
const char* to_string(ProblemType problem_type);  // as in config.json

/// A layer norm subtracts the mean and divides by the standard deviation; an RMS norm only divides by the root mean
/// square.
enum class NormKind { layer, rms };

/// Position of the norms `n` in a half of a block (attention or MLP, `f`): y = n(x + f(x)) as in Vaswani et al. 2017, y
/// = x + f(n(x)) as in GPT-2, y = x + n(f(x)) as in OLMo 2, or y = x + n'(f(n(x))) as in Gemma 2.
enum class NormPlace { after_sum, before, after, before_and_after };

/// gelu uses the error function; gelu_tanh approximates it with tanh.
enum class Activation { gelu, gelu_tanh, silu, relu, tanh };

/// Norms of queries and keys: none, one per head (Qwen 3), or one over all heads (OLMo 2).
enum class QueryKeyNorm { none, by_head, whole };

/// The change of rotary frequencies 1 / theta^(2i / size) for texts longer than those of pretraining.
struct RotaryScaling {
  enum class Kind { none, linear, dynamic, llama3, yarn };
  Kind kind = Kind::none;
  double factor = 1;
  std::int64_t original_positions = 0;                         // in pretraining
  double low_frequency_factor = 1, high_frequency_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;                        // yarn
  double attention_factor = 1;                                 // yarn: queries and keys are multiplied by it
  bool truncates = true;                                       // yarn: the ramp's ends are rounded to integers
  bool operator==(const RotaryScaling&) const = default;
};

/// Rotary positions (Su et al. 2021): pairs of a head's values are rotated by the angle position x frequency.
struct Rotary {
  double theta = 10'000;
  double fraction = 1;  // the fraction of a head's values that are rotated; these are the first ones
  RotaryScaling scaling{};
  /// Returns the number of a head's values that are rotated.
  std::int64_t size(std::int64_t head_size) const {
    return static_cast<std::int64_t>(static_cast<double>(head_size) * fraction);
  }
  bool operator==(const Rotary&) const = default;
};

/// The parts of attention that differ between blocks.
struct AttentionPattern {
  std::int64_t window = 0;  // a token sees tokens less than this many places away; 0 = unlimited
  int rotary = -1;          // index in TransformerConfig::rotaries; -1 = no rotary positions
  bool operator==(const AttentionPattern&) const = default;
};

/// MLP experts, of which a router chooses a few for each token (Shazeer et al. 2017). Counted, not computed.
struct Experts {
  std::int64_t count = 0;               // 0 = none
  std::int64_t per_token = 0;           // experts chosen for a token
  std::int64_t intermediate_size = 0;   // of each expert
  std::int64_t shared_size = 0;         // of all experts that every token goes through, together
  std::int64_t first_dense_blocks = 0;  // leading blocks with an MLP of the config's intermediate_size instead
  bool has_router_bias = false;         // one number per expert, which balances loads
  bool operator==(const Experts&) const = default;
};

/// Latent attention: queries, and keys together with values, are projected from a short vector each (DeepSeek-V2).
/// Counted, not computed.
struct LatentAttention {
  std::int64_t query_rank = 0;      // 0 = queries come from the hidden state
  std::int64_t key_value_rank = 0;  // 0 = no latent attention
  std::int64_t rotary_size = 0;     // per head, with positions; all heads share one such key
  std::int64_t value_size = 0;      // per head
  bool operator==(const LatentAttention&) const = default;
};

/// The description of a Transformer, from which all computations and parameters of its layers follow. Members are named
/// as in config.json where it has them.
struct TransformerConfig {
  Family family = Family::bert;
  Task task = Task::sequence_classification;
  std::int64_t hidden_size = 384;
  std::int64_t num_hidden_layers = 6;
  std::int64_t num_attention_heads = 12;
  std::int64_t intermediate_size = 1536;
  double layer_norm_eps = 1e-12;
  double initializer_range = 0.02;                                   // standard deviation of random initial weights
  std::int64_t vocab_size = 30522;                                   // text models
  std::int64_t max_position_embeddings = 512;                        // longest text, in tokens
  std::int64_t type_vocab_size = 2;                                  // 0 = no token types
  std::int64_t image_size = 224, patch_size = 16, num_channels = 3;  // image models
  bool has_qkv_bias = true;
  bool ties_embeddings = false;  // causal models: the head's matrix is the input embedding, see RankSession
  std::int64_t num_labels = 2;   // classification
  ProblemType problem_type = ProblemType::single_label;  // sequence classification
  std::optional<std::int64_t> padding_id{};  // config.json's, or the family's in transformers; see reads_last_token()
  double dropout = 0;  // probability, for outputs of half blocks and embedding, and attention's probabilities

  // Properties of the family, which config.json may change.
  bool reads_pictures = false;        // else texts
  std::int64_t num_class_tokens = 1;  // image models: tokens before the patches; 2 with DeiT's distillation token
  bool pools_patches = false;         // the head reads the class token and the mean of the patches (DINOv2)
  bool pools_tokens = false;          // a text's class is read from the mean of its tokens (ModernBERT, if it says so)
  bool scales_layers = false;         // the output of each half of a block is multiplied by learned factors (DINOv2)
  bool is_causal = false;             // a token sees only itself and earlier tokens
  NormKind norm = NormKind::layer;
  NormPlace norm_place = NormPlace::after_sum;
  bool norm_has_bias = true;
  bool norm_adds_one = false;            // an RMS norm multiplies by 1 + weight (Gemma)
  bool has_embedding_norm = true;        // after the embedding
  bool first_block_has_no_norm = false;  // no norm before attention of block 0, after the embedding's norm (ModernBERT)
  bool has_final_norm = false;           // before the head
  bool has_position_table = true;        // positions are looked up, beginning with row position_offset
  std::int64_t position_offset = 0;      // RoBERTa: padding id + 1
  std::int64_t embedding_size = 0;  // size of the tables if a matrix projects them to the hidden size; 0 = no matrix
  double embedding_factor = 1;      // Gemma: sqrt(hidden size)
  double residual_factor = 1;       // on the output of each half of a block, before it is added (Granite)
  double logits_factor = 1;         // on the vocabulary's logits (Granite: 1 / logits_scaling)
  std::int64_t num_key_value_heads = 0;  // shared by groups of queries; 0 = num_attention_heads
  std::int64_t head_size = 0;            // 0 = hidden size / attention heads
  bool has_attention_output_bias = true;
  bool has_mlp_bias = true;
  bool has_dense_bias = true;  // of the head's square matrix
  bool has_gate = false;       // MLP: activation(gate) x up
  Activation activation = Activation::gelu;
  QueryKeyNorm query_key_norm = QueryKeyNorm::none;
  double attention_scale = 0;     // factor on queries x keys; 0 = 1 / sqrt(head size)
  double attention_soft_cap = 0;  // cap x tanh(score / cap); 0 = none
  double logits_soft_cap = 0;     // the same for the vocabulary's logits
  std::vector<Rotary> rotaries{};
  std::vector<AttentionPattern> patterns{};  // of each block; empty = no windows and no rotary positions
  Experts experts{};
  LatentAttention latent{};
  bool scales_residual_start = false;  // matrices whose output is added start with smaller weights (GPT-2)
  bool has_parallel_residual = false;  // a block, norms before: y = x + attention(n(x)) + mlp(n'(x)) (GPT-NeoX)

  bool operator==(const TransformerConfig&) const = default;

  std::int64_t num_patches() const { return (image_size / patch_size) * (image_size / patch_size); }
  std::int64_t size_of_head() const { return head_size > 0 ? head_size : hidden_size / num_attention_heads; }
  std::int64_t key_value_heads() const { return num_key_value_heads > 0 ? num_key_value_heads : num_attention_heads; }
  /// Returns the number of values of all heads together, which is the hidden size in most models.
  std::int64_t query_size() const { return num_attention_heads * size_of_head(); }
  std::int64_t key_value_size() const { return key_value_heads() * size_of_head(); }
  /// Returns the number of values that attention passes to its output matrix.
  std::int64_t context_size() const {
    return latent.value_size > 0 ? num_attention_heads * latent.value_size : query_size();
  }
  bool has_experts(int block) const { return experts.count > 0 && block >= experts.first_dense_blocks; }
  std::int64_t table_size() const { return embedding_size > 0 ? embedding_size : hidden_size; }
  AttentionPattern pattern_of(int block) const { return patterns.empty() ? AttentionPattern{} : patterns[block]; }
  /// Returns whether the task is to classify a whole sample.
  bool tells_class() const { return task == Task::sequence_classification || task == Task::image_classification; }
  /// Returns whether the class is read from a single token of the sample: the first, or for a causal model the last.
  bool tells_class_from_one_token() const { return tells_class() && !pools_patches && !pools_tokens; }
  /// Returns whether it is read from the last token, which for transformers is the last one that is not padding_id.
  bool reads_last_token() const { return is_causal && task == Task::sequence_classification; }
};

/// Returns the largest tensor-parallel size: the number of key and value heads; if there is only one, all tensor ranks
/// have it and the queries' heads are distributed; 1 if a norm spans all heads.
std::int64_t max_tensor_ranks(const TransformerConfig& config);

/// Returns the tokens of an image in the layers: one or two class tokens and its patches.
std::int64_t image_tokens(const TransformerConfig& config);

}  // namespace frostpipe
