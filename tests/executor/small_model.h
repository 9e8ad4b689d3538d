#pragma once
#include "executor/batches.h"
#include "executor/encoder.h"
#include "plan/plan.h"

namespace frostpipe::test {

/// 3 blocks, so 8 layers: enough for 4 stages and for frozen prefixes in the middle of one.
inline EncoderConfig small_config() {
  return {.hidden_size = 16, .num_hidden_layers = 3, .num_attention_heads = 2, .intermediate_size = 24, .vocab_size = 40,
          .max_position_embeddings = 12, .type_vocab_size = 2, .layer_norm_eps = 1e-12, .num_labels = 3};
}

/// Samples of different lengths with fixed contents.
inline EncodedData small_data(int num_samples) {
  EncodedData data{.token_ids = {}, .labels = {}, .padding_id = 0};
  for (int i = 0; i < num_samples; ++i) {
    std::vector<std::int32_t> ids;
    for (int t = 0; t < 3 + i * 5 % 7; ++t) ids.push_back(1 + (i * 13 + t * 7) % 39);
    data.token_ids.push_back(std::move(ids));
    data.labels.push_back(i * 2 % 3);
  }
  return data;
}

/// p stages of about equal numbers of layers, d replicas.
inline Phase small_phase(int p, int d, int m, const std::string& schedule, int first_trainable_layer) {
  Phase phase;
  phase.first_trainable_layer = first_trainable_layer;
  phase.layout.pipeline_parallel_size = p;
  phase.layout.data_parallel_size = d;
  for (int stage = 0; stage < p; ++stage) phase.partition.push_back({8 * stage / p, 8 * (stage + 1) / p});
  phase.num_micro_batches = m;
  phase.schedule = schedule;
  return phase;
}

}  // namespace frostpipe::test
