#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace frostpipe {

/// How long the samples of some data are, in tokens.
struct SampleLengths {
  double mean = 0;
  double deviation = 0;  // standard
  int longest = 0;
};

/// Tokens of the longest mini-batch of `num_samples` that a random order makes: the mean of such a sum and 6 of its
/// standard deviations, mean x n + 6 x deviation x sqrt(n), and never more than n of the longest. A sum of many lengths
/// is nearly normal, and 1 - Phi(6) = 1e-9: of a thousand runs of a million mini-batches, one meets a longer one. Sums
/// of few lengths, of which some are rare and long, exceed it more often.
std::int64_t longest_mini_batch_tokens(int num_samples, const SampleLengths& lengths);

/// Half-open range of samples [begin, end) of a mini-batch.
struct SampleRange {
  int begin = 0;
  int end = 0;
  bool operator==(const SampleRange&) const = default;
};

/// Cuts a mini-batch of `num_samples` into num_parts consecutive pieces whose sizes differ by at most one, larger ones
/// first: the micro-batches of all replicas, replica 0's first. Pieces may be empty when num_samples < num_parts.
std::vector<SampleRange> split_evenly(int num_samples, int num_parts);

/// Cuts a mini-batch whose samples have these lengths (in tokens) into num_parts consecutive pieces of nearly equal
/// length: micro-batches are packed, so tokens are what takes time and memory. The longest piece is as short as any cut
/// makes it (longest_piece_tokens bounds it). Samples of equal length are cut as by split_evenly. Pieces may be empty
/// where samples are few.
std::vector<SampleRange> split_by_length(std::span<const std::int64_t> lengths, int num_parts);

/// Tokens that no piece of split_by_length exceeds, where `num_samples` samples have `tokens` in all and the longest at
/// most `longest_tokens`: (tokens + (num_parts - 1) x longest_tokens) / num_parts, and the ceil(num_samples /
/// num_parts) longest samples' worth.
std::int64_t longest_piece_tokens(int num_samples, std::int64_t tokens, int longest_tokens, int num_parts);

/// Samples [begin, end) of the global mini-batch that form micro-batch `micro_batch` of replica `replica`, where all
/// are equally long.
SampleRange micro_batch_samples(int num_samples, int data_parallel_size, int num_micro_batches, int replica,
                                int micro_batch);

}  // namespace frostpipe
