#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace frostpipe {

/// The distribution of sample lengths in a data set, in tokens.
struct SampleLengths {
  double mean = 0;
  double deviation = 0;  // standard deviation
  int longest = 0;
};

/// Returns the tokens of the longest mini-batch of n = `num_samples` samples that is to be expected if samples come in
/// random order: n x mean + 6 x sqrt(n) x deviation, but at most n times the longest sample. A sum of many lengths is
/// nearly normal, and 1 - Phi(6) = 1e-9: one in a thousand runs of a million mini-batches exceeds it. Sums of few
/// lengths, some of them rare and long, exceed it more often.
std::int64_t longest_mini_batch_tokens(int num_samples, const SampleLengths& lengths);

/// Half-open range of samples [begin, end) of a mini-batch.
struct SampleRange {
  int begin = 0;
  int end = 0;
  bool operator==(const SampleRange&) const = default;
};

/// Cuts a mini-batch of `num_samples` into num_parts consecutive pieces, the micro-batches of all replicas, replica 0's
/// first. Sizes differ by at most one, larger pieces first. Pieces may be empty when num_samples < num_parts.
std::vector<SampleRange> split_evenly(int num_samples, int num_parts);

/// Cuts a mini-batch whose samples have these lengths (in tokens) into num_parts consecutive pieces of nearly equal
/// length: micro-batches are packed, so tokens determine time and memory. The longest piece is as short as possible
/// (longest_piece_tokens bounds it). Samples of equal length are cut as by split_evenly. Pieces may be empty if there
/// are few samples.
std::vector<SampleRange> split_by_length(std::span<const std::int64_t> lengths, int num_parts);

/// Returns the bound on the tokens of each piece of split_by_length, for `num_samples` samples of `tokens` in all and
/// at most `longest_tokens` each: the smaller of (tokens + (num_parts - 1) x longest_tokens) / num_parts and
/// ceil(num_samples / num_parts) x longest_tokens.
std::int64_t longest_piece_tokens(int num_samples, std::int64_t tokens, int longest_tokens, int num_parts);

/// Returns the samples of the global mini-batch that form micro-batch `micro_batch` of replica `replica`, if all
/// samples are equally long.
SampleRange micro_batch_samples(int num_samples, int data_parallel_size, int num_micro_batches, int replica,
                                int micro_batch);

}  // namespace frostpipe
