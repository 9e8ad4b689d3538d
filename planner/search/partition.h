#pragma once
#include <span>
#include <vector>

#include "base/units.h"
#include "plan/partition.h"

namespace frostpipe {

/// Splits layers into `num_stages` contiguous, non-empty stages so that the largest stage sum of `cost` is smallest.
///
/// The result is exact (a dynamic program over chains) and takes O(num_stages * n^2) time and O(num_stages * n) space
/// for n layers. The part after the first stage is again split exactly. Ties go to the earlier cut, the first cut
/// first, so equal input gives equal output. Throws InvalidInput if num_stages < 1 or exceeds the number of layers.
Partition partition_exact(std::span<const Nanoseconds> cost, int num_stages);

/// Splits layers by PipeTransformer's published greedy algorithm (He et al. 2021, Algorithm 1): a stage takes layers
/// while its size, in millions of parameters, is below (sum + variance) / stages left, both over the remaining layers
/// (the published code's rule; population variance). It is kept for comparison: like the original it may leave stages
/// EMPTY (begin == end) and be far from balanced, but it always covers all n layers. Throws InvalidInput if num_stages
/// < 1.
Partition partition_pipetransformer_greedy(std::span<const double> parameters_in_millions, int num_stages);

}  // namespace frostpipe
