#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace frostpipe {

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
/// makes it: at most an even share and one sample more, and at most the ceil(samples / num_parts) longest samples'
/// worth. Samples of equal length are cut as by split_evenly. Pieces may be empty where samples are few.
std::vector<SampleRange> split_by_length(std::span<const std::int64_t> lengths, int num_parts);

/// Samples [begin, end) of the global mini-batch that form micro-batch `micro_batch` of replica `replica`, where all
/// are equally long.
SampleRange micro_batch_samples(int num_samples, int data_parallel_size, int num_micro_batches, int replica,
                                int micro_batch);

}  // namespace frostpipe
