#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace frostpipe {

/// Where a rank stands in a layout.
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
  /// placement[i] = rank of the i-th mesh coordinate that is not vacant, ordered tensor fastest, then data, then
  /// pipeline; empty = rank i.
  std::vector<int> placement;
  /// Coordinates whose ranks are lost, ascending: other replicas of the pipeline rank, which hold the same layers, run
  /// their micro-batches (runner_of). At least one replica of each is left, and there is one tensor rank.
  std::vector<MeshCoordinate> vacant{};
  /// Tensor ranks split activations between matrices by tokens (Korthikanti et al. 2022). Needs t > 1.
  bool sequence_parallel = false;
  bool operator==(const ParallelLayout&) const = default;
};

/// Ranks that the layout uses: p * d * t, but for the vacant ones. Other ranks of the world are idle.
int num_ranks(const ParallelLayout& layout);
bool is_vacant(const ParallelLayout& layout, int pipeline_rank, int replica);
/// Requires a coordinate that is not vacant.
int rank_of(const ParallelLayout& layout, int pipeline_rank, int replica, int tensor = 0);
/// None if `rank` is idle in the layout.
std::optional<MeshCoordinate> find_coordinate(const ParallelLayout& layout, int rank);
/// Who runs a micro-batch of a replica on one pipeline rank: the replica's own rank, or where that is vacant, the
/// replicas that are left in turn.
MeshCoordinate runner_of(const ParallelLayout& layout, int pipeline_rank, int replica, int micro_batch, int tensor = 0);
/// Whose pipeline ranks have the lists of a phase's schedule (schedule_of): the layout itself, or where coordinates are
/// vacant, one replica in which each rank is a pipeline rank of its own, in the order of the mesh.
ParallelLayout layout_of_lists(const ParallelLayout& layout);
/// The lists that ranks of a pipeline rank follow: one, or where coordinates are vacant, each its own.
std::vector<int> lists_of(const ParallelLayout& layout, int pipeline_rank);
/// Ranks of all replicas of one pipeline rank that have the same part of its layers, replica 0 first. Of these and the
/// following, vacant ones are left out.
std::vector<int> replicas_of(const ParallelLayout& layout, int pipeline_rank, int tensor = 0);
/// Ranks of one pipeline, pipeline rank 0 first.
std::vector<int> pipeline_of(const ParallelLayout& layout, int replica, int tensor = 0);
/// Ranks that share the layers of one pipeline rank and replica, tensor rank 0 first.
std::vector<int> tensor_ranks_of(const ParallelLayout& layout, int pipeline_rank, int replica);
/// Ranks of all replicas and tensor ranks of one pipeline rank, tensor fastest.
std::vector<int> all_ranks_of(const ParallelLayout& layout, int pipeline_rank);

/// Of what tensor ranks share, the part [begin / of, end / of). Both ends round down, so parts of one whole meet
/// without padding, and the parts of two different numbers of tensor ranks are cut at places of their least common
/// multiple.
struct TensorSlice {
  int begin = 0, end = 1, of = 1;
  std::int64_t begin_in(std::int64_t count) const { return count * begin / of; }
  std::int64_t end_in(std::int64_t count) const { return count * end / of; }
  bool operator==(const TensorSlice&) const = default;
};
/// The part of one of `tensor_parallel_size` tensor ranks.
TensorSlice slice_of(int tensor, int tensor_parallel_size);
/// The part that two slices have in common, of the least common multiple of their `of`; none where they only meet.
std::optional<TensorSlice> common_part(const TensorSlice& one, const TensorSlice& other);
/// Whether `slice` has all of `part`.
bool is_within(const TensorSlice& part, const TensorSlice& slice);

/// A rank, and the part that it holds of a layer.
struct LayerPart {
  int rank = 0;
  TensorSlice slice;
  bool operator==(const LayerPart&) const = default;
};

/// Of the parts that ranks hold, some that are the whole layer without repetition, in the order of their slices; of
/// parts that begin at the same place the first in the list with which the rest can be had. Empty if something is
/// missing.
std::vector<LayerPart> whole_from(const std::vector<LayerPart>& held);

}  // namespace frostpipe
