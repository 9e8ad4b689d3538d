#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace frostpipe {

/// Coordinate of a rank in a layout.
struct MeshCoordinate {
  int pipeline_rank = 0;
  int replica = 0;
  int tensor = 0;
  auto operator<=>(const MeshCoordinate&) const = default;
};

/// How ranks are used: p pipeline ranks x d replicas x t tensor ranks.
struct ParallelLayout {
  int pipeline_parallel_size = 1;
  int data_parallel_size = 1;
  int tensor_parallel_size = 1;
  /// placement[i] is the rank of the i-th mesh coordinate that is not vacant. The tensor rank varies fastest, then the
  /// replica, then the pipeline rank. Empty = rank i.
  std::vector<int> placement;
  /// Coordinates whose ranks are lost, ascending. Their micro-batches are run by the other replicas of the same
  /// pipeline rank, which hold the same layers (runner_of). At least one replica of each pipeline rank must be left,
  /// and there must be one tensor rank.
  std::vector<MeshCoordinate> vacant{};
  /// Sequence parallelism: tensor ranks split activations between matrices by tokens (Korthikanti et al. 2022). It
  /// needs several tensor ranks.
  bool sequence_parallel = false;
  bool operator==(const ParallelLayout&) const = default;
};

/// Returns the number of ranks that the layout uses: p * d * t without the vacant ones. Other ranks of the world are
/// idle.
int num_ranks(const ParallelLayout& layout);
bool is_vacant(const ParallelLayout& layout, int pipeline_rank, int replica);
/// Returns the rank at a mesh coordinate, which must not be vacant.
int rank_of(const ParallelLayout& layout, int pipeline_rank, int replica, int tensor = 0);
/// Returns none if `rank` is idle in the layout.
std::optional<MeshCoordinate> find_coordinate(const ParallelLayout& layout, int rank);
/// Returns the coordinate that runs a micro-batch of a replica on one pipeline rank: that of the replica or, if it is
/// vacant, those of the remaining replicas in turn.
MeshCoordinate runner_of(const ParallelLayout& layout, int pipeline_rank, int replica, int micro_batch, int tensor = 0);
/// Returns the layout in which each list of a phase's schedule (schedule_of) belongs to one pipeline rank: `layout`
/// itself or, with vacant coordinates, one replica in which each rank is a pipeline rank of its own, in mesh order.
ParallelLayout layout_of_lists(const ParallelLayout& layout);
/// Returns the numbers of the lists that a pipeline rank's ranks follow: one, or with vacant coordinates one per rank.
std::vector<int> lists_of(const ParallelLayout& layout, int pipeline_rank);
/// Returns the ranks of all replicas of one pipeline rank that have the same part of its layers, replica 0 first. This
/// and the following functions leave out vacant coordinates.
std::vector<int> replicas_of(const ParallelLayout& layout, int pipeline_rank, int tensor = 0);
/// Returns the ranks of one pipeline, in the order of pipeline ranks.
std::vector<int> pipeline_of(const ParallelLayout& layout, int replica, int tensor = 0);
/// Returns the ranks that share the layers of one pipeline rank and replica, tensor rank 0 first.
std::vector<int> tensor_ranks_of(const ParallelLayout& layout, int pipeline_rank, int replica);
/// Returns the ranks of all replicas and tensor ranks of one pipeline rank; the tensor rank varies fastest.
std::vector<int> all_ranks_of(const ParallelLayout& layout, int pipeline_rank);

/// One tensor rank's part, from the fraction begin / of to end / of, of the parameters that tensor ranks split. Both
/// ends round down, so neighbouring parts meet without padding. Parts for tensor-parallel sizes t and t' are cut at
/// multiples of 1 / lcm(t, t').
struct TensorSlice {
  int begin = 0, end = 1, of = 1;
  std::int64_t begin_in(std::int64_t count) const { return count * begin / of; }
  std::int64_t end_in(std::int64_t count) const { return count * end / of; }
  bool operator==(const TensorSlice&) const = default;
};
/// Returns the slice of one of `tensor_parallel_size` tensor ranks.
TensorSlice slice_of(int tensor, int tensor_parallel_size);
/// Returns the part that two slices have in common, in units of the least common multiple of their `of`; none if they
/// do not overlap.
std::optional<TensorSlice> common_part(const TensorSlice& one, const TensorSlice& other);
/// Returns whether `slice` contains all of `part`.
bool is_within(const TensorSlice& part, const TensorSlice& slice);

/// A rank and the slice of a layer that it holds.
struct LayerPart {
  int rank = 0;
  TensorSlice slice;
  bool operator==(const LayerPart&) const = default;
};

/// Chooses from the parts that ranks hold a set that makes up the whole layer without overlap, in the order of slices.
/// Among parts that begin at the same place it takes the first in the list that can be completed. The result is empty
/// if a part of the layer is missing.
std::vector<LayerPart> whole_from(const std::vector<LayerPart>& held);

}  // namespace frostpipe
