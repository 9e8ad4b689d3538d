#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "executor/models/task.h"
#include "plan/batch.h"

namespace frostpipe {

/// The samples of one optimizer step over all replicas, or of one step of an evaluation.
struct MiniBatch {
  std::span<const int> samples;       // sample numbers, from 0 to Samples::size() - 1
  std::vector<std::int64_t> lengths;  // number of tokens of each sample
  int num_shards = 1;                 // number of nodes; each has an equal, contiguous part of the samples
  int epoch = -1;                     // training epoch, which determines image augmentation; -1: no augmentation
  std::uint64_t dropout_seed = 0;     // for this step; 0: no dropout
};

/// The samples of a run. load() is thread-safe.
class Samples {
 public:
  virtual ~Samples() = default;
  virtual int size() const = 0;
  /// Returns the number of tokens of a sample in the layers.
  virtual int tokens(int sample) const = 0;
  /// Returns a hash of the model's input for the sample.
  virtual std::uint64_t key(int sample) const = 0;
  /// Returns the distinct tokens that the embedding looks up for these samples, ascending; empty if it looks up none.
  virtual std::vector<std::int64_t> distinct_tokens(std::span<const int> samples) const = 0;
  /// Returns the number by which a mini-batch's sum of losses is divided: that of its samples or, if tokens have
  /// labels, that of its labelled tokens.
  virtual std::int64_t loss_terms(std::span<const int> samples) const {
    return static_cast<std::int64_t>(samples.size());
  }
  /// Returns a hash of all samples and labels.
  virtual std::uint64_t fingerprint() const = 0;
  /// Loads some samples of a mini-batch, packed, on the host. `type` is the model's dtype. `with_input` also loads the
  /// model's input, which a stage with the embedding needs.
  virtual MicroBatch load(const MiniBatch& batch, std::span<const int> samples, at::ScalarType type,
                          bool with_input) const = 0;
};

/// Returns the sample numbers of a range of a mini-batch.
inline std::span<const int> samples_of(const MiniBatch& batch, SampleRange range) {
  return batch.samples.subspan(range.begin, range.end - range.begin);
}

/// Returns mini-batch `index` of an epoch: the index-th slice of `order`; the last one may be short. It has one shard.
MiniBatch mini_batch(const Samples& data, std::span<const int> order, int global_batch_size, int index);

/// Divides `order` into batches of consecutive samples. Each has as many samples as have at most max_tokens tokens
/// together, but at least one and at most max_samples.
std::vector<SampleRange> batches_of(const Samples& data, std::span<const int> order, int max_samples,
                                    std::int64_t max_tokens);

/// Returns the mean number of tokens per sample, rounded. The batch must not be empty.
int mean_length(const MiniBatch& batch);

/// Returns the fraction of a causal model's tokens that have a loss, in at most the first 1,000 samples; 1 if there are
/// no samples.
double learned_part(const Samples& data, std::span<const int> samples);

/// Returns the mean number of tokens of the samples; 0 if there are none.
double mean_tokens(const Samples& data, std::span<const int> samples);

/// Returns the number of tokens of the longest sample; 0 if there are no samples.
int longest_tokens(const Samples& data, std::span<const int> samples);

/// True if all samples have the same number of tokens, as pictures and blocks of text do.
bool has_one_length(const Samples& data);

/// Divides a mini-batch into the micro-batches of all replicas, those of replica 0 first, with nearly equal numbers of
/// tokens (split_by_length). If the number of replicas is a multiple of the batch's shards, each replica gets samples
/// of its own node.
std::vector<SampleRange> cut(const MiniBatch& batch, int data_parallel_size, int num_micro_batches);

/// Texts as token ids, including special tokens.
struct EncodedData {
  std::vector<std::vector<std::int32_t>> token_ids;
  std::vector<int> labels;    // labels_per_sample for each sample in turn
  int labels_per_sample = 1;  // 1: a class; 2: first and last token of an answer; 0: the tokens themselves
  /// These two replace `labels` for other kinds of labels. `targets` has, for each sample, 0 or 1 for each label, or a
  /// number. `token_labels` has, for each sample, a label for each of its tokens, kIgnored for a token without one.
  std::vector<std::vector<double>> targets{};
  std::vector<std::vector<int>> token_labels{};
  /// If labels_per_sample is 0: the tokens of each sample that have a loss, ascending; empty if all have one.
  std::vector<std::vector<TokenRange>> learned{};
  std::vector<TokenRange> contexts{};      // if labels_per_sample is 2: where each sample's answer may lie
  std::vector<int> first_segment_sizes{};  // number of leading tokens of type 0, the others have type 1; empty if all
                                           // have type 0
};

class TokenSamples final : public Samples {
 public:
  explicit TokenSamples(EncodedData data) : data_(std::move(data)) {}
  int size() const override { return static_cast<int>(data_.token_ids.size()); }
  int tokens(int sample) const override { return static_cast<int>(data_.token_ids[sample].size()); }
  std::uint64_t key(int sample) const override;
  std::vector<std::int64_t> distinct_tokens(std::span<const int> samples) const override;
  std::int64_t loss_terms(std::span<const int> samples) const override;
  std::uint64_t fingerprint() const override;
  MicroBatch load(const MiniBatch& batch, std::span<const int> samples, at::ScalarType type,
                  bool with_input) const override;

 private:
  at::Tensor labels_of(std::span<const int> samples, const at::Tensor& ids) const;
  /// Returns the labels: the tokens, or kIgnored for those without a loss.
  at::Tensor learned_of(std::span<const int> samples, const at::Tensor& ids) const;

  EncodedData data_;
};

/// Returns the positions at which the answers to samples begin in the list of their concatenated values, and after them
/// the length of the list.
std::vector<std::size_t> answer_begins(const Samples& data, std::span<const int> samples, const AnswerShape& shape);

/// Returns a random key per sample for this step, int64 [samples]; an undefined tensor without dropout.
at::Tensor dropout_keys(const MiniBatch& batch, std::span<const int> samples);

}  // namespace frostpipe
