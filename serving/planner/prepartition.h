#pragma once
#include <optional>
#include <vector>

#include "serving/serving_profile.h"

namespace frostpipe {

/// The bounds of a block's part of the model's time: of N blocks, each has at least least_share / N and at most
/// max_share / N of it.
struct BlockBounds {
  double least_share = 0;
  double max_share = 0;
  bool operator==(const BlockBounds&) const = default;
};

/// A division of a model's layers into blocks, and its bounds.
struct Prepartition {
  std::vector<int> ends;  // block i ends before layer ends[i]
  BlockBounds bounds;
  Bytes cut_bytes = 0;  // of one request, summed over all cuts
  bool operator==(const Prepartition&) const = default;
};

/// Returns the cuts with the fewest bytes into `num_blocks` non-empty blocks, where each block's share of the time of a
/// single request is within the bounds on every whole device of `layers`. Among equals, the last cut is as early as
/// possible, then the one before it, and so on. Returns nothing if there are no such cuts. Exact: best[p][j] = min over
/// i of best[p - 1][i] + bytes of the cut at j, where layers [i, j) are within the bounds (O(N L^2)).
std::optional<Prepartition> prepartition_within(const ServingProfile& layers, int num_blocks,
                                                const BlockBounds& bounds);

/// Returns the cuts within the first of PPipe's bounds that can be met: 0.7 to 1.3; 0.5 to 1.5, to 2, to 2.5, to 3, to
/// 3.5, to 4; 0.4 to 4. If none of them can be met, the bounds are 0 to N. If there are at most num_blocks layers,
/// every layer is a block.
Prepartition prepartition(const ServingProfile& layers, int num_blocks);

}  // namespace frostpipe
