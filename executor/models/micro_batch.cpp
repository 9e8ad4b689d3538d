#include "executor/models/micro_batch.h"

#include <ATen/ops/tensor.h>

#include <numeric>

#include "executor/device/to_device.h"

namespace frostpipe {
std::int64_t MicroBatch::num_tokens() const { return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }

std::vector<std::int64_t> MicroBatch::offsets() const {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

TokenRange MicroBatch::tokens_of(std::int64_t sample) const {
  return sliced ? sliced->tokens.of(sliced->lengths[sample]) : TokenRange{0, lengths[sample]};
}

MicroBatch MicroBatch::slice(const TokenRange& tokens, KeyValuesOfLayers& key_values) const {
  MicroBatch slice = *this;
  slice.sliced = {lengths, tokens, &key_values};
  slice.begins = at::Tensor();
  for (std::int64_t& length : slice.lengths) length = tokens.of(length).count();
  const at::Tensor rows = rows_of_slice(lengths, tokens);
  if (input.defined()) slice.input = input.index_select(0, to_device(rows, input.device()));
  if (token_types.defined()) slice.token_types = token_types.index_select(0, to_device(rows, token_types.device()));
  return slice;
}

MicroBatch MicroBatch::narrow(std::int64_t begin, std::int64_t count) const {
  const std::vector<std::int64_t> offset = offsets();
  const std::int64_t first = offset[begin], tokens = offset[begin + count] - first;
  const auto of_tokens = [&](const at::Tensor& all) { return all.defined() ? all.narrow(0, first, tokens) : all; };
  const auto of_samples = [&](const at::Tensor& all) { return all.defined() ? all.narrow(0, begin, count) : all; };
  const auto of = [&](const at::Tensor& all) { return is_by_token(all) ? of_tokens(all) : of_samples(all); };
  MicroBatch part{{lengths.begin() + begin, lengths.begin() + begin + count},
                  of(input),
                  of_tokens(token_types),
                  of(labels),
                  of_samples(dropout_keys),
                  type};
  if (!contexts.empty()) part.contexts = {contexts.begin() + begin, contexts.begin() + begin + count};
  return part;
}

MicroBatch MicroBatch::select(std::span<const std::int64_t> samples) const {
  const at::Tensor rows = rows_of_samples(lengths, samples);
  const at::Tensor numbers = at::tensor(at::ArrayRef<std::int64_t>(samples.data(), samples.size()), at::kLong);
  const auto at_index = [](const at::Tensor& all, const at::Tensor& index) {
    return all.defined() ? all.index_select(0, to_device(index, all.device())) : all;
  };
  const auto of = [&](const at::Tensor& all) { return at_index(all, is_by_token(all) ? rows : numbers); };
  const auto lengths_of = [&](std::span<const std::int64_t> all) {
    std::vector<std::int64_t> selected;
    for (const std::int64_t sample : samples) selected.push_back(all[sample]);
    return selected;
  };
  MicroBatch selected{
      lengths_of(lengths), of(input), at_index(token_types, rows), {}, at_index(dropout_keys, numbers), type};
  if (!contexts.empty())
    for (const std::int64_t sample : samples) selected.contexts.push_back(contexts[sample]);
  if (sliced)
    selected.sliced = {lengths_of(sliced->lengths), sliced->tokens, sliced->key_values};
  else
    selected.labels = of(labels);
  return selected;
}

MicroBatch MicroBatch::to(const at::Device& device) const {
  const auto of = [&](const at::Tensor& all) { return all.defined() ? to_device(all, device) : all; };
  return MicroBatch{lengths, of(input), of(token_types), of(labels), dropout_keys, type, sliced, contexts}.with_begins(
      device);
}

MicroBatch MicroBatch::with_begins(const at::Device& device) const {
  MicroBatch batch = *this;
  if (!device.is_cpu()) batch.begins = to_device(at::tensor(offsets(), at::kInt), device);
  return batch;
}

void MicroBatch::take_values(const MicroBatch& host) {
  const auto take = [](const at::Tensor& own, const at::Tensor& other) {
    if (own.defined()) own.copy_(other.pin_memory(), /*non_blocking=*/true);
  };
  take(input, host.input);
  take(token_types, host.token_types);
  take(labels, host.labels);
  dropout_keys = host.dropout_keys;
  contexts = host.contexts;
}

at::Tensor rows_of_samples(std::span<const std::int64_t> lengths, std::span<const std::int64_t> samples) {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t length : lengths) offsets.push_back(offsets.back() + length);
  std::vector<std::int64_t> rows;
  for (const std::int64_t sample : samples) {
    for (std::int64_t row = offsets[sample]; row < offsets[sample + 1]; ++row) rows.push_back(row);
  }
  return at::tensor(rows, at::kLong);
}

at::Tensor rows_of_slice(std::span<const std::int64_t> lengths, const TokenRange& tokens) {
  std::vector<std::int64_t> rows;
  std::int64_t offset = 0;
  for (const std::int64_t length : lengths) {
    const TokenRange of_sample = tokens.of(length);
    for (std::int64_t token = of_sample.begin; token < of_sample.end; ++token) rows.push_back(offset + token);
    offset += length;
  }
  return at::tensor(rows, at::kLong);
}

MicroBatch MicroBatch::without_dropout() const {
  MicroBatch batch = *this;
  batch.dropout_keys = at::Tensor();
  return batch;
}

}  // namespace frostpipe
