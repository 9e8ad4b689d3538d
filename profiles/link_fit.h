#pragma once
#include <string_view>
#include <vector>

#include "profiles/cluster.h"

namespace frostpipe {

/// How long a transfer of some number of bytes on the wire took.
struct TransferTime {
  Bytes bytes = 0;
  Nanoseconds time_ns = 0;
};

/// One transfer of every size, smallest first, all within a short time of each other.
using LinkRound = std::vector<TransferTime>;

/// The link that explains what was measured in several rounds of the same sizes. Latency: the median time of the
/// smallest transfer. Bandwidth: in each round the median of the slopes between any two of the other sizes (Theil and
/// Sen's line, which no single disturbed transfer can bend), and of the rounds the median; their quartiles are its
/// spread. A cost that every large transfer has once is in neither. Throws RuntimeFailure that names `what` and says
/// what to try if more than half of the rounds show no bandwidth, or one beyond kMostBytesPerSecond.
Link fit_link(const std::vector<LinkRound>& rounds, std::string_view what);

/// The link through two times, for prices near the larger one. Where the larger transfer takes no longer, or so little
/// longer that kMostBytesPerSecond would not do, no bandwidth was measured, and none is made up: the larger one's time
/// is all latency, and the bandwidth unlimited.
Link link_through(const TransferTime& smaller, const TransferTime& larger);

/// Beyond any link between two devices there is.
inline constexpr double kMostBytesPerSecond = 1e13;

/// Whether the quartiles of its bandwidth lie more than a factor of 2 apart: a prediction made of it is worth little.
bool is_unsteady(const Link& link);

/// "latency 41.20 us, bandwidth 3.10 GB/s (half of the measurements: 2.95 to 3.22)"
std::string to_text(const Link& link);

}  // namespace frostpipe
