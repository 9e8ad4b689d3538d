#include "executor/batches.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace frostpipe {

EncodedData encode_all(const TextData& data, const WordPiece& tokenizer, int max_tokens) {
  EncodedData encoded{.token_ids = {}, .labels = data.labels, .padding_id = tokenizer.padding_id()};
  encoded.token_ids.reserve(data.texts.size());
  for (const std::string& text : data.texts) encoded.token_ids.push_back(tokenizer.encode(text, max_tokens));
  return encoded;
}

MiniBatch mini_batch(const EncodedData& data, std::span<const int> order, int global_batch_size, int index) {
  const std::size_t begin = static_cast<std::size_t>(index) * static_cast<std::size_t>(global_batch_size);
  MiniBatch batch;
  batch.samples = order.subspan(begin, std::min<std::size_t>(global_batch_size, order.size() - begin));
  for (const int sample : batch.samples) batch.tokens = std::max(batch.tokens, static_cast<int>(data.token_ids[sample].size()));
  return batch;
}

MicroBatch make_micro_batch(const EncodedData& data, std::span<const int> samples, int tokens, const at::TensorOptions& options) {
  const auto count = static_cast<std::int64_t>(samples.size());
  at::Tensor ids = at::full({count, tokens}, data.padding_id, at::kLong);
  at::Tensor mask = at::zeros({count, tokens}, at::kFloat);
  at::Tensor labels = at::empty({count}, at::kLong);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::vector<std::int32_t>& sample = data.token_ids[samples[i]];
    std::copy(sample.begin(), sample.end(), ids.data_ptr<std::int64_t>() + i * tokens);
    std::fill_n(mask.data_ptr<float>() + i * tokens, sample.size(), 1.0f);
    labels.data_ptr<std::int64_t>()[i] = data.labels[samples[i]];
  }
  return {ids.to(options.device()), mask.to(options), labels.to(options.device())};
}

}  // namespace frostpipe
