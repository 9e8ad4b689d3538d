#pragma once
#include <ATen/ATen.h>

#include <algorithm>

#include "executor/models/micro_batch.h"

namespace frostpipe::test {

/// [tokens, ...] -> [samples, tokens of the longest, ...], 0 where a sample has no token.
inline at::Tensor padded(const at::Tensor& packed, const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> shape = packed.sizes().vec();
  shape.insert(shape.begin(), static_cast<std::int64_t>(lengths.size()));
  shape[1] = *std::max_element(lengths.begin(), lengths.end());
  at::Tensor result = at::zeros(shape, packed.options());
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < lengths.size(); begin += lengths[i++])
    result.select(0, static_cast<std::int64_t>(i)).narrow(0, 0, lengths[i]).copy_(packed.narrow(0, begin, lengths[i]));
  return result;
}

/// A micro-batch with padding, as in other libraries, for comparison with packed results.
struct PaddedBatch {
  explicit PaddedBatch(const MicroBatch& batch) : input(batch.input), labels(batch.labels) {
    mask = padded(at::ones({batch.num_tokens()}, at::TensorOptions().dtype(batch.type)), batch.lengths);
    if (batch.input.dim() == 1) input = padded(batch.input, batch.lengths);
    if (batch.token_types.defined()) token_types = padded(batch.token_types, batch.lengths);
    if (batch.labels.dim() == 1 && batch.labels.size(0) == batch.num_tokens())
      labels = padded(batch.labels, batch.lengths);
  }
  at::Tensor input, token_types, labels;
  at::Tensor mask;  // [samples, tokens], 1 for a token, 0 for padding
};

}  // namespace frostpipe::test
