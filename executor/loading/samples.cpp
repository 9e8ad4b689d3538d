#include "executor/loading/samples.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/hash.h"

namespace frostpipe {

double learned_part(const Samples& data, std::span<const int> samples) {
  samples = samples.first(std::min<std::size_t>(samples.size(), 1000));
  MiniBatch batch{.samples = samples, .lengths = {}};
  for (const int sample : samples) batch.lengths.push_back(data.tokens(sample));
  const at::Tensor labels = data.load(batch, samples, at::kFloat, /*with_input=*/false).labels;
  return labels.numel() == 0 ? 1 : labels.ne(kIgnored).to(at::kDouble).mean().item<double>();
}

double mean_tokens(const Samples& data, std::span<const int> samples) {
  double sum = 0;
  for (const int sample : samples) sum += data.tokens(sample);
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

int longest_tokens(const Samples& data, std::span<const int> samples) {
  int longest = 0;
  for (const int sample : samples) longest = std::max(longest, data.tokens(sample));
  return longest;
}

bool has_one_length(const Samples& data) {
  for (int sample = 1; sample < data.size(); ++sample)
    if (data.tokens(sample) != data.tokens(0)) return false;
  return true;
}

MiniBatch mini_batch(const Samples& data, std::span<const int> order, int global_batch_size, int index) {
  const std::size_t begin = static_cast<std::size_t>(index) * static_cast<std::size_t>(global_batch_size);
  MiniBatch batch;
  batch.samples = order.subspan(begin, std::min<std::size_t>(global_batch_size, order.size() - begin));
  for (const int sample : batch.samples) batch.lengths.push_back(data.tokens(sample));
  return batch;
}

std::vector<SampleRange> batches_of(const Samples& data, std::span<const int> order, int max_samples,
                                    std::int64_t max_tokens) {
  std::vector<SampleRange> batches;
  std::int64_t tokens = 0;
  for (int i = 0; i < static_cast<int>(order.size()); ++i) {
    tokens += data.tokens(order[i]);
    if (batches.empty() || tokens > max_tokens || i - batches.back().begin == max_samples) {
      batches.push_back({i, i});
      tokens = data.tokens(order[i]);
    }
    batches.back().end = i + 1;
  }
  return batches;
}

std::vector<SampleRange> cut(const MiniBatch& batch, int data_parallel_size, int num_micro_batches) {
  const int num_parts = data_parallel_size % batch.num_shards == 0 ? batch.num_shards : 1;
  const int pieces_of_part = data_parallel_size / num_parts * num_micro_batches;
  std::vector<SampleRange> pieces;
  for (const SampleRange& part : split_evenly(static_cast<int>(batch.samples.size()), num_parts)) {
    const std::span<const std::int64_t> lengths = std::span(batch.lengths).subspan(part.begin, part.end - part.begin);
    for (const SampleRange& piece : split_by_length(lengths, pieces_of_part))
      pieces.push_back({part.begin + piece.begin, part.begin + piece.end});
  }
  return pieces;
}

int mean_length(const MiniBatch& batch) {
  const std::int64_t sum = std::accumulate(batch.lengths.begin(), batch.lengths.end(), std::int64_t{0});
  return static_cast<int>(std::lround(static_cast<double>(sum) / static_cast<double>(batch.lengths.size())));
}

std::vector<std::size_t> answer_begins(const Samples& data, std::span<const int> samples, const AnswerShape& shape) {
  std::vector<std::size_t> begins{0};
  for (const int sample : samples)
    begins.push_back(begins.back() + static_cast<std::size_t>(shape.size(data.tokens(sample))));
  return begins;
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

std::vector<std::int64_t> TokenSamples::distinct_tokens(std::span<const int> samples) const {
  std::vector<std::int64_t> tokens;
  for (const int sample : samples)
    tokens.insert(tokens.end(), data_.token_ids[sample].begin(), data_.token_ids[sample].end());
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

std::uint64_t TokenSamples::fingerprint() const {
  StreamHash hash;
  for (int sample = 0; sample < size(); ++sample) {
    const std::uint64_t own = key(sample);
    hash.add(std::as_bytes(std::span(&own, 1)));
  }
  hash.add(std::as_bytes(std::span(data_.labels)));
  for (const std::vector<double>& of_sample : data_.targets) hash.add(std::as_bytes(std::span(of_sample)));
  for (const std::vector<int>& of_sample : data_.token_labels) hash.add(std::as_bytes(std::span(of_sample)));
  for (const std::vector<TokenRange>& of_sample : data_.learned) {
    for (const TokenRange& range : of_sample) {
      const std::array<std::int64_t, 2> ends{range.begin, range.end};
      hash.add(std::as_bytes(std::span(ends)));
    }
    const std::size_t count = of_sample.size();
    hash.add(std::as_bytes(std::span(&count, 1)));
  }
  return hash.value();
}

at::Tensor TokenSamples::learned_of(std::span<const int> samples, const at::Tensor& ids) const {
  if (data_.learned.empty()) return ids;
  at::Tensor labels = at::full_like(ids, kIgnored);
  std::int64_t offset = 0;
  for (const int sample : samples) {
    for (const TokenRange& range : data_.learned[sample])
      labels.narrow(0, offset + range.begin, range.count()).copy_(ids.narrow(0, offset + range.begin, range.count()));
    offset += tokens(sample);
  }
  return labels;
}

std::int64_t TokenSamples::loss_terms(std::span<const int> samples) const {
  if (data_.token_labels.empty()) return Samples::loss_terms(samples);
  std::int64_t labelled = 0;
  for (const int sample : samples)
    for (const int label : data_.token_labels[sample]) labelled += label != kIgnored;
  return labelled;
}

at::Tensor TokenSamples::labels_of(std::span<const int> samples, const at::Tensor& ids) const {
  const auto count = static_cast<std::int64_t>(samples.size());
  if (!data_.targets.empty()) {
    const auto outputs = static_cast<std::int64_t>(data_.targets.front().size());
    at::Tensor targets = at::empty({count, outputs}, at::kDouble);
    double* next = targets.data_ptr<double>();
    for (const int sample : samples) next = std::ranges::copy(data_.targets[sample], next).out;
    return targets;
  }
  if (!data_.token_labels.empty()) {
    std::vector<std::int64_t> labels;
    for (const int sample : samples)
      labels.insert(labels.end(), data_.token_labels[sample].begin(), data_.token_labels[sample].end());
    return at::tensor(labels, at::kLong);
  }
  const int per_sample = data_.labels_per_sample;
  if (per_sample == 0) return learned_of(samples, ids);
  at::Tensor labels = at::empty({count, per_sample}, at::kLong);
  std::int64_t* label = labels.data_ptr<std::int64_t>();
  for (const int sample : samples) label = std::copy_n(data_.labels.begin() + sample * per_sample, per_sample, label);
  return per_sample == 1 ? labels.squeeze(1) : labels;
}

MicroBatch TokenSamples::load(const MiniBatch& batch, std::span<const int> samples, at::ScalarType type,
                              bool with_input) const {
  MicroBatch loaded;
  loaded.type = type;
  loaded.dropout_keys = dropout_keys(batch, samples);
  for (const int sample : samples) loaded.lengths.push_back(tokens(sample));
  const std::int64_t num_tokens = loaded.num_tokens();
  at::Tensor ids = at::empty({with_input || data_.labels_per_sample == 0 ? num_tokens : 0}, at::kLong);
  if (ids.numel() > 0) {
    std::int64_t* next = ids.data_ptr<std::int64_t>();
    for (const int sample : samples)
      next = std::copy(data_.token_ids[sample].begin(), data_.token_ids[sample].end(), next);
  }
  if (with_input) loaded.input = ids;
  if (!data_.first_segment_sizes.empty()) {
    loaded.token_types = at::empty({num_tokens}, at::kLong);
    std::int64_t* next = loaded.token_types.data_ptr<std::int64_t>();
    for (const int sample : samples) {
      const int first = data_.first_segment_sizes[sample];
      next = std::fill_n(next, first, std::int64_t{0});
      next = std::fill_n(next, tokens(sample) - first, std::int64_t{1});
    }
  }
  if (!data_.contexts.empty())
    for (const int sample : samples) loaded.contexts.push_back(data_.contexts[sample]);
  loaded.labels = labels_of(samples, ids);
  return loaded;
}

}  // namespace frostpipe
