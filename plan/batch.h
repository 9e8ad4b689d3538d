#pragma once
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

/// Samples [begin, end) of the global mini-batch that form micro-batch `micro_batch` of replica `replica`.
SampleRange micro_batch_samples(int num_samples, int data_parallel_size, int num_micro_batches, int replica,
                                int micro_batch);

}  // namespace frostpipe
