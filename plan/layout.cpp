#include "plan/layout.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"

namespace frostpipe {
namespace {

/// Appends parts that continue from `before` to the end of the whole. Returns false and appends nothing if there are
/// none. `tried` holds the ends (numerator, denominator) that have been searched already, to search each only once.
bool append_the_rest(const TensorSlice& before, const std::vector<LayerPart>& held,
                     std::set<std::pair<int, int>>& tried, std::vector<LayerPart>& parts) {
  if (before.end == before.of) return true;
  const int divisor = std::gcd(before.end, before.of);
  if (!tried.emplace(before.end / divisor, before.of / divisor).second) return false;
  for (const LayerPart& part : held) {
    const TensorSlice& slice = part.slice;
    if (slice.begin >= slice.end || slice.begin * before.of != before.end * slice.of) continue;
    parts.push_back(part);
    if (append_the_rest(slice, held, tried, parts)) return true;
    parts.pop_back();
  }
  return false;
}

/// Returns the index among all coordinates, including vacant ones.
int index_of(const ParallelLayout& layout, const MeshCoordinate& at) {
  return (at.pipeline_rank * layout.data_parallel_size + at.replica) * layout.tensor_parallel_size + at.tensor;
}

std::vector<int> replicas_left(const ParallelLayout& layout, int pipeline_rank) {
  std::vector<int> replicas;
  for (int replica = 0; replica < layout.data_parallel_size; ++replica)
    if (!is_vacant(layout, pipeline_rank, replica)) replicas.push_back(replica);
  return replicas;
}

}  // namespace

int num_ranks(const ParallelLayout& layout) {
  return layout.pipeline_parallel_size * layout.data_parallel_size * layout.tensor_parallel_size -
         static_cast<int>(layout.vacant.size());
}

bool is_vacant(const ParallelLayout& layout, int pipeline_rank, int replica) {
  return std::ranges::find(layout.vacant, MeshCoordinate{pipeline_rank, replica}) != layout.vacant.end();
}

int rank_of(const ParallelLayout& layout, int pipeline_rank, int replica, int tensor) {
  FROSTPIPE_CHECK(pipeline_rank >= 0 && pipeline_rank < layout.pipeline_parallel_size,
                  "pipeline ranks are those of the layout");
  FROSTPIPE_CHECK(replica >= 0 && replica < layout.data_parallel_size, "replicas are those of the layout");
  FROSTPIPE_CHECK(tensor >= 0 && tensor < layout.tensor_parallel_size, "tensor ranks are those of the layout");
  const MeshCoordinate at{pipeline_rank, replica, tensor};
  int index = index_of(layout, at);
  if (!layout.vacant.empty()) {
    const auto next = std::ranges::lower_bound(layout.vacant, at);
    FROSTPIPE_CHECK(next == layout.vacant.end() || *next != at, "a vacant coordinate has no rank");
    index -= static_cast<int>(next - layout.vacant.begin());
  }
  return layout.placement.empty() ? index : layout.placement.at(index);
}

std::optional<MeshCoordinate> find_coordinate(const ParallelLayout& layout, int rank) {
  int index = rank;
  if (!layout.placement.empty()) {
    const auto found = std::find(layout.placement.begin(), layout.placement.end(), rank);
    if (found == layout.placement.end()) return std::nullopt;
    index = static_cast<int>(found - layout.placement.begin());
  }
  if (index < 0 || index >= num_ranks(layout)) return std::nullopt;
  for (const MeshCoordinate& vacant : layout.vacant)
    if (index_of(layout, vacant) <= index) ++index;
  const int pipeline = index / layout.tensor_parallel_size;
  return MeshCoordinate{.pipeline_rank = pipeline / layout.data_parallel_size,
                        .replica = pipeline % layout.data_parallel_size,
                        .tensor = index % layout.tensor_parallel_size};
}

MeshCoordinate runner_of(const ParallelLayout& layout, int pipeline_rank, int replica, int micro_batch, int tensor) {
  if (!is_vacant(layout, pipeline_rank, replica)) return {pipeline_rank, replica, tensor};
  const std::vector<int> left = replicas_left(layout, pipeline_rank);
  FROSTPIPE_CHECK(!left.empty(), "of each pipeline rank a replica is left");
  int turn = micro_batch;  // vacant replicas begin with different replicas, to spread the work
  for (int before = 0; before < replica; ++before) turn += is_vacant(layout, pipeline_rank, before) ? 1 : 0;
  return {pipeline_rank, left[turn % left.size()], tensor};
}

ParallelLayout layout_of_lists(const ParallelLayout& layout) {
  if (layout.vacant.empty()) return layout;
  return {.pipeline_parallel_size = num_ranks(layout), .placement = layout.placement};
}

std::vector<int> lists_of(const ParallelLayout& layout, int pipeline_rank) {
  if (layout.vacant.empty()) return {pipeline_rank};
  const ParallelLayout lists = layout_of_lists(layout);
  std::vector<int> numbers;
  for (const int rank : replicas_of(layout, pipeline_rank))
    numbers.push_back(find_coordinate(lists, rank)->pipeline_rank);
  return numbers;
}

std::vector<int> replicas_of(const ParallelLayout& layout, int pipeline_rank, int tensor) {
  std::vector<int> ranks;
  for (const int replica : replicas_left(layout, pipeline_rank))
    ranks.push_back(rank_of(layout, pipeline_rank, replica, tensor));
  return ranks;
}

std::vector<int> pipeline_of(const ParallelLayout& layout, int replica, int tensor) {
  std::vector<int> ranks;
  for (int pipeline_rank = 0; pipeline_rank < layout.pipeline_parallel_size; ++pipeline_rank)
    if (!is_vacant(layout, pipeline_rank, replica)) ranks.push_back(rank_of(layout, pipeline_rank, replica, tensor));
  return ranks;
}

std::vector<int> tensor_ranks_of(const ParallelLayout& layout, int pipeline_rank, int replica) {
  std::vector<int> ranks;
  for (int tensor = 0; tensor < layout.tensor_parallel_size; ++tensor)
    ranks.push_back(rank_of(layout, pipeline_rank, replica, tensor));
  return ranks;
}

std::vector<int> all_ranks_of(const ParallelLayout& layout, int pipeline_rank) {
  std::vector<int> ranks;
  for (const int replica : replicas_left(layout, pipeline_rank))
    for (const int rank : tensor_ranks_of(layout, pipeline_rank, replica)) ranks.push_back(rank);
  return ranks;
}

TensorSlice slice_of(int tensor, int tensor_parallel_size) {
  FROSTPIPE_CHECK(tensor >= 0 && tensor < tensor_parallel_size, "every tensor rank has a part");
  return {tensor, tensor + 1, tensor_parallel_size};
}

std::optional<TensorSlice> common_part(const TensorSlice& one, const TensorSlice& other) {
  const int of = std::lcm(one.of, other.of);
  const int begin = std::max(one.begin * (of / one.of), other.begin * (of / other.of));
  const int end = std::min(one.end * (of / one.of), other.end * (of / other.of));
  if (begin >= end) return std::nullopt;
  return TensorSlice{begin, end, of};
}

std::vector<LayerPart> whole_from(const std::vector<LayerPart>& held) {
  std::vector<LayerPart> parts;
  std::set<std::pair<int, int>> tried;
  append_the_rest({0, 0, 1}, held, tried, parts);
  return parts;
}

bool is_within(const TensorSlice& part, const TensorSlice& slice) {
  return slice.begin * part.of <= part.begin * slice.of && part.end * slice.of <= slice.end * part.of;
}

}  // namespace frostpipe
