#include "executor/samples.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "executor/job/hash.h"

namespace frostpipe {

int longest_tokens(const Samples& data, std::span<const int> samples) {
  int longest = 0;
  for (const int sample : samples) longest = std::max(longest, data.tokens(sample));
  return longest;
}

MiniBatch mini_batch(const Samples& data, std::span<const int> order, int global_batch_size, int index) {
  const std::size_t begin = static_cast<std::size_t>(index) * static_cast<std::size_t>(global_batch_size);
  MiniBatch batch;
  batch.samples = order.subspan(begin, std::min<std::size_t>(global_batch_size, order.size() - begin));
  for (const int sample : batch.samples) batch.tokens = std::max(batch.tokens, data.tokens(sample));
  return batch;
}

at::Tensor dropout_keys(const MiniBatch& batch, std::span<const int> samples) {
  if (batch.dropout_seed == 0) return {};
  at::Tensor keys = at::empty({static_cast<std::int64_t>(samples.size())}, at::kLong);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::array<std::uint64_t, 2> parts{batch.dropout_seed, static_cast<std::uint64_t>(samples[i])};
    keys.data_ptr<std::int64_t>()[i] = static_cast<std::int64_t>(hash_bytes(std::as_bytes(std::span(parts))));
  }
  return keys;
}

std::uint64_t TokenSamples::key(int sample) const {
  StreamHash hash;
  hash.add(std::as_bytes(std::span(data_.token_ids[sample])));
  if (!data_.first_segment_sizes.empty()) hash.add(std::as_bytes(std::span(&data_.first_segment_sizes[sample], 1)));
  return hash.value();
}

std::uint64_t TokenSamples::fingerprint() const {
  StreamHash hash;
  for (int sample = 0; sample < size(); ++sample) {
    const std::uint64_t own = key(sample);
    hash.add(std::as_bytes(std::span(&own, 1)));
  }
  hash.add(std::as_bytes(std::span(data_.labels)));
  return hash.value();
}

MicroBatch TokenSamples::load(const MiniBatch& batch, std::span<const int> samples, at::ScalarType type,
                              bool with_input) const {
  const auto count = static_cast<std::int64_t>(samples.size());
  const bool has_types = !data_.first_segment_sizes.empty();
  const int per_sample = data_.labels_per_sample;
  at::Tensor ids = with_input ? at::full({count, batch.tokens}, data_.padding_id, at::kLong) : at::Tensor();
  at::Tensor types = has_types ? at::zeros({count, batch.tokens}, at::kLong) : at::Tensor();
  at::Tensor mask = at::zeros({count, batch.tokens}, at::kFloat);
  at::Tensor labels =
      per_sample == 0 ? at::full({count, batch.tokens}, -100, at::kLong) : at::empty({count, per_sample}, at::kLong);
  for (std::int64_t i = 0; i < count; ++i) {
    const int sample = samples[i];
    const std::vector<std::int32_t>& tokens = data_.token_ids[sample];
    if (with_input) std::copy(tokens.begin(), tokens.end(), ids.data_ptr<std::int64_t>() + i * batch.tokens);
    std::fill_n(mask.data_ptr<float>() + i * batch.tokens, tokens.size(), 1.0f);
    if (has_types) {
      const auto first = static_cast<std::size_t>(data_.first_segment_sizes[sample]);
      std::fill_n(types.data_ptr<std::int64_t>() + i * batch.tokens + first, tokens.size() - first, std::int64_t{1});
    }
    if (per_sample == 0) {
      std::copy(tokens.begin(), tokens.end(), labels.data_ptr<std::int64_t>() + i * batch.tokens);
    } else {
      for (int k = 0; k < per_sample; ++k)
        labels.data_ptr<std::int64_t>()[i * per_sample + k] = data_.labels[sample * per_sample + k];
    }
  }
  if (per_sample == 1) labels = labels.squeeze(1);
  return {ids, types, mask.to(type), labels, dropout_keys(batch, samples)};
}

}  // namespace frostpipe
