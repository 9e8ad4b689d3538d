#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace frostpipe {

/// A row of the table of families (families.h): Hugging Face's model_type.
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
  qwen2,
  qwen3,
  gemma,
  gemma2,
  gemma3_text,
  olmo2,
  phi3,
  deit,
  dinov2,
  mixtral,
  qwen3_moe,
  olmoe,
  deepseek_v3,
};

/// What a model is trained to say: decides the head, the loss and how its answers are scored.
enum class Task {
  sequence_classification,
  question_answering,
  image_classification,
  causal_language_modeling,
  token_classification,
};

/// What a classifier of texts says of each, and by which loss it learns that: transformers' problem_type.
enum class ProblemType {
  single_label,  // one of the labels; cross entropy
  multi_label,   // any number of the labels; binary cross entropy of each
  regression,    // a number; squared error
};

const char* to_string(Family family);
const char* to_string(Task task);
const char* to_string(ProblemType problem_type);  // as in config.json

/// A layer norm subtracts the mean and divides by the deviation; an RMS norm divides by the root mean square alone.
enum class NormKind { layer, rms };

/// Where a half of a block (attention or MLP, `f`) has its norms, `n`: y = n(x + f(x)) as Vaswani et al. 2017,
/// y = x + f(n(x)) as GPT-2, y = x + n(f(x)) as OLMo 2, or y = x + n'(f(n(x))) as Gemma 2.
enum class NormPlace { after_sum, before, after, before_and_after };

/// gelu by the error function; gelu_tanh by its approximation with tanh.
enum class Activation { gelu, gelu_tanh, silu, relu, tanh };

/// Which values of queries and keys share one norm: none has any, those of a head (Qwen 3), or all (OLMo 2).
enum class QueryKeyNorm { none, by_head, whole };

/// How rotary frequencies 1 / theta^(2i / size) change for texts longer than a model was first trained on.
struct RotaryScaling {
  enum class Kind { none, linear, dynamic, llama3, yarn };
  Kind kind = Kind::none;
  double factor = 1;
  std::int64_t original_positions = 0;                         // of the first training
  double low_frequency_factor = 1, high_frequency_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;                        // yarn
  double attention_factor = 1;                                 // yarn: queries and keys are multiplied by it
  bool truncates = true;                                       // yarn: the ramp's ends are whole numbers
  bool operator==(const RotaryScaling&) const = default;
};

/// Rotary positions (Su et al. 2021): pairs of a head's values turn by position x frequency.
struct Rotary {
  double theta = 10'000;
  double fraction = 1;  // of a head's values: the first ones turn
  RotaryScaling scaling{};
  /// Values of a head that turn.
  std::int64_t size(std::int64_t head_size) const {
    return static_cast<std::int64_t>(static_cast<double>(head_size) * fraction);
  }
  bool operator==(const Rotary&) const = default;
};

/// What differs from block to block in attention.
struct AttentionPattern {
  std::int64_t window = 0;  // a token sees tokens less than this many places away; 0: all that causality lets it see
  int rotary = -1;          // index in TransformerConfig::rotaries; -1: none
  bool operator==(const AttentionPattern&) const = default;
};

/// MLPs of which a router chooses a few for each token (Shazeer et al. 2017). Counted, not computed.
struct Experts {
  std::int64_t count = 0;               // 0: none
  std::int64_t per_token = 0;           // chosen
  std::int64_t intermediate_size = 0;   // of each
  std::int64_t shared_size = 0;         // of those that every token goes through, together
  std::int64_t first_dense_blocks = 0;  // blocks in front that have an MLP of intermediate_size in their place
  bool has_router_bias = false;         // a number an expert, by which loads are kept even
  bool operator==(const Experts&) const = default;
};

/// Queries, and keys together with values, come from a short vector each (DeepSeek-V2). Counted, not computed.
struct LatentAttention {
  std::int64_t query_rank = 0;      // 0: queries come from the hidden state
  std::int64_t key_value_rank = 0;  // 0: no such attention
  std::int64_t rotary_size = 0;     // of a head, with positions; its key is one for all heads
  std::int64_t value_size = 0;      // of a head
  bool operator==(const LatentAttention&) const = default;
};

/// What a Transformer is made of: all that its layers compute and how many parameters they have follows from this
/// value. Names as in config.json where it has them.
struct TransformerConfig {
  Family family = Family::bert;
  Task task = Task::sequence_classification;
  std::int64_t hidden_size = 384;
  std::int64_t num_hidden_layers = 6;
  std::int64_t num_attention_heads = 12;
  std::int64_t intermediate_size = 1536;
  double layer_norm_eps = 1e-12;
  double initializer_range = 0.02;                                   // deviation of weights that start at random
  std::int64_t vocab_size = 30522;                                   // of texts
  std::int64_t max_position_embeddings = 512;                        // the longest text
  std::int64_t type_vocab_size = 2;                                  // 0: no token types
  std::int64_t image_size = 224, patch_size = 16, num_channels = 3;  // of pictures
  bool has_qkv_bias = true;
  bool ties_embeddings = false;  // causal: the head's matrix and the input embedding are one, see RankSession
  std::int64_t num_labels = 2;   // classification
  ProblemType problem_type = ProblemType::single_label;  // sequence classification
  std::int64_t padding_id = 0;  // by it transformers finds a text's last token where a class is told from that
  double dropout = 0;           // of what every part of a block adds, of the embedding and of attention's weights

  // What a family has, and config.json may change.
  bool reads_pictures = false;        // else texts
  std::int64_t num_class_tokens = 1;  // of pictures: before the patches; 2 with DeiT's distillation token
  bool pools_patches = false;         // the class is told from the class token and the mean of the patches (DINOv2)
  bool scales_layers = false;         // what a half of a block adds is multiplied by learned factors (DINOv2)
  bool is_causal = false;             // a token sees itself and those before it
  NormKind norm = NormKind::layer;
  NormPlace norm_place = NormPlace::after_sum;
  bool norm_has_bias = true;
  bool norm_adds_one = false;            // an RMS norm multiplies by 1 + weight (Gemma)
  bool has_embedding_norm = true;        // after the embedding
  bool first_block_has_no_norm = false;  // before attention of block 0, which follows the embedding's norm (ModernBERT)
  bool has_final_norm = false;           // before the head
  bool has_position_table = true;        // positions are looked up, from row position_offset on
  std::int64_t position_offset = 0;      // RoBERTa: padding id + 1
  std::int64_t embedding_size = 0;       // of the tables, where a matrix brings them to the hidden size; 0: no matrix
  double embedding_factor = 1;           // Gemma: sqrt(hidden size)
  std::int64_t num_key_value_heads = 0;  // queries share them by groups; 0: as many as attention heads
  std::int64_t head_size = 0;            // 0: hidden size / attention heads
  bool has_attention_output_bias = true;
  bool has_mlp_bias = true;
  bool has_dense_bias = true;  // of a head's square matrix
  bool has_gate = false;       // MLP: activation(gate) x up
  Activation activation = Activation::gelu;
  QueryKeyNorm query_key_norm = QueryKeyNorm::none;
  double attention_scale = 0;     // of queries x keys; 0: 1 / sqrt(head size)
  double attention_soft_cap = 0;  // cap x tanh(score / cap); 0: none
  double logits_soft_cap = 0;     // the same of the vocabulary's logits
  std::vector<Rotary> rotaries{};
  std::vector<AttentionPattern> patterns{};  // of each block; empty: all see everything, without rotary positions
  Experts experts{};
  LatentAttention latent{};
  bool scales_residual_start = false;  // matrices whose output is added start smaller (GPT-2)

  bool operator==(const TransformerConfig&) const = default;

  std::int64_t num_patches() const { return (image_size / patch_size) * (image_size / patch_size); }
  std::int64_t size_of_head() const { return head_size > 0 ? head_size : hidden_size / num_attention_heads; }
  std::int64_t key_value_heads() const { return num_key_value_heads > 0 ? num_key_value_heads : num_attention_heads; }
  /// Values of all heads together: the hidden size in most models.
  std::int64_t query_size() const { return num_attention_heads * size_of_head(); }
  std::int64_t key_value_size() const { return key_value_heads() * size_of_head(); }
  /// Of what attention hands to its output matrix.
  std::int64_t context_size() const {
    return latent.value_size > 0 ? num_attention_heads * latent.value_size : query_size();
  }
  bool has_experts(int block) const { return experts.count > 0 && block >= experts.first_dense_blocks; }
  std::int64_t table_size() const { return embedding_size > 0 ? embedding_size : hidden_size; }
  AttentionPattern pattern_of(int block) const { return patterns.empty() ? AttentionPattern{} : patterns[block]; }
  /// The answer to a sample is a class.
  bool tells_class() const { return task == Task::sequence_classification || task == Task::image_classification; }
  /// It is told from one of the sample's tokens alone: the first, or of a causal model the last.
  bool tells_class_from_one_token() const { return tells_class() && !pools_patches; }
};

/// Tensor ranks that can share the layers: as many as there are key and value heads, but a single one is everybody's
/// and the queries' heads are cut; one rank where a norm goes over all heads.
std::int64_t most_tensor_ranks(const TransformerConfig& config);

/// Tokens of a picture as layers see it: the class token, or two, and its patches.
std::int64_t image_tokens(const TransformerConfig& config);

}  // namespace frostpipe
