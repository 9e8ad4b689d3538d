#pragma once
#include <optional>
#include <vector>

namespace frostpipe {

/// How ranks are used: p pipeline ranks x d replicas x t tensor ranks.
struct ParallelLayout {
  int pipeline_parallel_size = 1;
  int data_parallel_size = 1;
  int tensor_parallel_size = 1;
  /// placement[i] = rank of the i-th mesh coordinate, ordered tensor fastest, then data, then pipeline; empty = rank
  /// i.
  std::vector<int> placement;
  bool operator==(const ParallelLayout&) const = default;
};

/// Where a rank stands in a layout.
struct MeshCoordinate {
  int pipeline_rank = 0;
  int replica = 0;
  bool operator==(const MeshCoordinate&) const = default;
};

/// Ranks that the layout uses: p * d * t. Other ranks of the world are idle.
int num_ranks(const ParallelLayout& layout);
int rank_of(const ParallelLayout& layout, int pipeline_rank, int replica);
/// None if `rank` is idle in the layout.
std::optional<MeshCoordinate> find_coordinate(const ParallelLayout& layout, int rank);
/// Ranks of all replicas of one pipeline rank, replica 0 first.
std::vector<int> replicas_of(const ParallelLayout& layout, int pipeline_rank);
/// Ranks of one pipeline, pipeline rank 0 first.
std::vector<int> pipeline_of(const ParallelLayout& layout, int replica);

}  // namespace frostpipe
