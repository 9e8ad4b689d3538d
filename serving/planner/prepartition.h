#pragma once
#include <optional>
#include <vector>

#include "serving/serving_profile.h"

namespace frostpipe {

/// How evenly blocks share a model's time: each has at least least_share / N and at most most_share / N of it.
struct BlockBounds {
  double least_share = 0;
  double most_share = 0;
  bool operator==(const BlockBounds&) const = default;
};

/// A model's layers as blocks, and what was asked of them.
struct Prepartition {
  std::vector<int> ends;  // block i ends before layer ends[i]
  BlockBounds bounds;
  Bytes cut_bytes = 0;  // of one request, over all cuts
  bool operator==(const Prepartition&) const = default;
};

/// The cuts of fewest bytes into `num_blocks` non-empty blocks, each of which has its share of the time of a single
/// request on every device type (of whole devices) of `layers` within the bounds; of equal ones the first cuts as early
/// as possible. None if there is no such cut. Exact: best[p][j] = min over i of best[p - 1][i] + bytes of the cut at j,
/// where layers [i, j) are within the bounds (O(N L^2)).
std::optional<Prepartition> prepartition_within(const ServingProfile& layers, int num_blocks,
                                                const BlockBounds& bounds);

/// The same with the tightest of PPipe's bounds that can be met: 0.7 to 1.3, 0.5 to 1.5, 2, 2.5, 3, 3.5, 4, 0.4 to 4;
/// where none can, and where there are fewer layers than blocks, every layer is a block if that is at most num_blocks,
/// else the bounds are 0 to N.
Prepartition prepartition(const ServingProfile& layers, int num_blocks);

}  // namespace frostpipe
