#pragma once
#include <fmt/format.h>

#include <memory>

#include "executor/loading/image_samples.h"
#include "executor/loading/samples.h"
#include "executor/models/micro_batch.h"
#include "plan/plan.h"
#include "profiles/transformer/families.h"
#include "profiles/transformer/parameters.h"

namespace frostpipe::test {

/// 3 blocks, so 8 layers (6 where a block is one layer): enough for 4 stages and for frozen prefixes in the middle of
/// one.
inline TransformerConfig small_config(Family family = Family::bert, Task task = Task::sequence_classification,
                                      ProblemType problem_type = ProblemType::single_label) {
  TransformerConfig config = described(family);
  config.task = task;
  config.hidden_size = 16;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 2;
  config.intermediate_size = 24;
  config.vocab_size = 40;
  config.max_position_embeddings = 12;
  config.image_size = 6;
  config.patch_size = 2;
  config.ties_embeddings = task == Task::causal_language_modeling;
  config.problem_type = problem_type;
  config.num_labels = problem_type == ProblemType::regression ? 1 : 3;
  return config;
}

/// A decoder with all that Gemma 2 and 3, Llama and Qwen have: fewer key heads than queries, norms before and after,
/// normed queries and keys, rotary positions in two blocks, windows and soft caps, and Granite's factors; tied.
inline TransformerConfig small_decoder(Task task = Task::causal_language_modeling) {
  TransformerConfig config = small_config(Family::gemma3_text, Task::causal_language_modeling);
  config.task = task;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_size = 6;
  config.embedding_factor = 4;
  config.attention_soft_cap = 5;
  config.logits_soft_cap = 3;
  config.residual_factor = 0.5;
  config.logits_factor = 0.75;
  config.rotaries = {{.theta = 1000}, {.theta = 100}};
  config.patterns = {{.window = 3, .rotary = 1}, {.window = 0, .rotary = 0}, {.window = 4, .rotary = -1}};
  return config;
}

/// Like Llama: only rotary positions, RMS norms, a gate, and one key head for all queries.
inline TransformerConfig small_llama(Task task = Task::causal_language_modeling) {
  TransformerConfig config = small_config(Family::llama, task);
  config.num_key_value_heads = 1;
  config.ties_embeddings = false;
  config.rotaries = {{.theta = 500}};
  config.patterns.assign(3, {.window = 0, .rotary = 0});
  return config;
}

/// Like ModernBERT: windows to both sides, norms without biases, and no norm before the first block.
inline TransformerConfig small_modernbert(Task task = Task::sequence_classification) {
  TransformerConfig config = small_config(Family::modernbert, task);
  config.rotaries = {{.theta = 1000}, {.theta = 100}};
  config.patterns = {{.window = 0, .rotary = 0}, {.window = 3, .rotary = 1}, {.window = 3, .rotary = 1}};
  return config;
}

/// Returns the config with a class that is read from the mean of all tokens.
inline TransformerConfig pooled(TransformerConfig config) {
  config.pools_tokens = true;
  return config;
}

/// Like GPT-NeoX: attention and MLP side by side in each of 6 blocks, so 8 layers too; half of a head rotates.
inline TransformerConfig small_neox(Task task = Task::causal_language_modeling) {
  TransformerConfig config = small_config(Family::gpt_neox, task);
  config.has_parallel_residual = true;
  config.num_hidden_layers = 6;
  config.ties_embeddings = false;
  config.rotaries = {{.theta = 500, .fraction = 0.5}};
  config.patterns.assign(6, {.window = 0, .rotary = 0});
  return config;
}

/// Heads of families that differ in what they compute.
inline std::vector<TransformerConfig> small_configs() {
  return {small_config(),
          small_config(Family::bert, Task::question_answering),
          small_config(Family::vit, Task::image_classification),
          small_config(Family::gpt2, Task::causal_language_modeling),
          small_config(Family::gpt2, Task::sequence_classification),
          small_config(Family::gpt2, Task::question_answering),
          small_config(Family::roberta),
          small_config(Family::roberta, Task::sequence_classification, ProblemType::multi_label),
          small_config(Family::distilbert, Task::sequence_classification, ProblemType::regression),
          small_config(Family::bert, Task::token_classification),
          small_modernbert(),
          pooled(small_modernbert()),
          small_llama(),
          small_decoder(),
          small_llama(Task::sequence_classification),
          small_neox(),
          small_neox(Task::sequence_classification)};
}

inline std::string name_of(const TransformerConfig& config) {
  return fmt::format("{} {} {}{}", to_string(config.family), to_string(config.task), to_string(config.problem_type),
                     config.pools_tokens ? ", pooled" : "");
}

/// The config with this number of heads, and of key heads if there are several.
inline void set_heads(TransformerConfig& config, std::int64_t heads) {
  config.num_attention_heads = heads;
  if (config.num_key_value_heads > 1) config.num_key_value_heads = heads;
}

/// Samples of different lengths with fixed contents.
inline std::unique_ptr<Samples> small_samples(const TransformerConfig& config, int num_samples) {
  if (config.reads_pictures) {
    std::vector<int> labels;
    for (int i = 0; i < num_samples; ++i) labels.push_back(i * 2 % 3);
    const int side = static_cast<int>(config.image_size);
    ImageData images(
        labels, {"a", "b", "c"},
        [side](int number) {
          Image image{side, side, std::vector<std::uint8_t>(3 * side * side)};
          for (std::size_t i = 0; i < image.pixels.size(); ++i)
            image.pixels[i] = static_cast<std::uint8_t>((number * 37 + i * i * 11) % 256);
          return image;
        },
        [](int number) { return std::to_string(number); }, "");
    return std::make_unique<ImageSamples>(std::vector<ImageData>{std::move(images)},
                                          ImageInput{.size = side, .tokens = static_cast<int>(image_tokens(config))});
  }
  EncodedData data{.token_ids = {}, .labels = {}};
  for (int i = 0; i < num_samples; ++i) {
    std::vector<std::int32_t> ids;
    for (int t = 0; t < 3 + i * 5 % 7; ++t) ids.push_back(1 + (i * 13 + t * 7) % 39);
    const int length = static_cast<int>(ids.size());
    if (config.task == Task::question_answering) {
      data.first_segment_sizes.push_back(1 + i % 2);
      data.contexts.push_back({1 + i % 2, length - 1});
      data.labels.insert(data.labels.end(), {length / 2, length - 1});
    } else if (config.problem_type == ProblemType::multi_label) {
      data.targets.push_back({double(i % 2), double(i % 3 == 0), 1.0});
    } else if (config.problem_type == ProblemType::regression) {
      data.targets.push_back({0.75 * i - 2});
    } else if (config.task == Task::sequence_classification) {
      data.labels.push_back(i * 2 % 3);
    } else if (config.task == Task::token_classification) {
      std::vector<int>& labels = data.token_labels.emplace_back();
      for (int t = 0; t < length; ++t) labels.push_back(t == 0 || (i + t) % 3 == 2 ? -100 : (i * 5 + t) % 3);
    } else {
      // Texts with a loss on all tokens, on some tokens, and on none.
      const std::vector<std::vector<TokenRange>> learned{
          {{0, length}}, {{1, 2}, {3, length}}, {{length - 1, length}}, {}};
      data.learned.push_back(learned[i % 5 % 4]);
    }
    data.token_ids.push_back(std::move(ids));
  }
  data.labels_per_sample = config.task == Task::question_answering         ? 2
                           : config.task == Task::causal_language_modeling ? 0
                                                                           : 1;
  return std::make_unique<TokenSamples>(std::move(data));
}

/// p stages of about equal numbers of layers, d replicas.
inline Phase small_phase(int p, int d, int m, const std::string& schedule, int first_trainable_layer,
                         int virtual_stages = 1) {
  Phase phase;
  phase.first_trainable_layer = first_trainable_layer;
  phase.layout.pipeline_parallel_size = p;
  phase.layout.data_parallel_size = d;
  phase.virtual_stages = virtual_stages;
  const int stages = p * virtual_stages;
  for (int stage = 0; stage < stages; ++stage)
    phase.partition.push_back({8 * stage / stages, 8 * (stage + 1) / stages});
  phase.num_micro_batches = m;
  phase.schedule = schedule;
  return phase;
}

}  // namespace frostpipe::test
