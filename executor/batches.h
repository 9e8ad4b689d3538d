#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "executor/encoder.h"
#include "executor/text_data.h"
#include "executor/wordpiece.h"

namespace frostpipe {

/// Texts as token ids, [CLS] ... [SEP] each, not padded.
struct EncodedData {
  std::vector<std::vector<std::int32_t>> token_ids;
  std::vector<int> labels;
  std::int32_t padding_id = 0;
};

EncodedData encode_all(const TextData& data, const WordPiece& tokenizer, int max_tokens);

/// The samples of one optimizer step over all replicas.
struct MiniBatch {
  std::span<const int> samples;  // indices into EncodedData
  int tokens = 0;                // length of the longest: every micro-batch is padded to it
};

/// Mini-batch number `index` of an epoch: the index-th slice of `order`; the last may be short.
MiniBatch mini_batch(const EncodedData& data, std::span<const int> order, int global_batch_size, int index);

/// Builds the tensors of some samples, padded to `tokens`.
MicroBatch make_micro_batch(const EncodedData& data, std::span<const int> samples, int tokens, const at::TensorOptions& options);

}  // namespace frostpipe
