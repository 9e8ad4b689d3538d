#pragma once
#include <string_view>
#include <vector>

#include "profiles/cluster.h"

namespace frostpipe {

/// The measured time of a transfer, and its number of bytes on the wire.
struct TransferTime {
  Bytes bytes = 0;
  Nanoseconds time_ns = 0;
};

/// One transfer of every size, smallest first, measured within a short time.
using LinkRound = std::vector<TransferTime>;

/// Fits a link to several rounds of transfers of the same sizes. The latency is the median time of the smallest
/// transfer. The bandwidth of a round is the median of the slopes between any two of the other sizes (Theil-Sen
/// estimator, which a single disturbed transfer cannot distort); the link has the median over the rounds, with their
/// quartiles as its spread. A fixed cost of every large transfer is part of neither latency nor bandwidth. Throws
/// RuntimeFailure that names `what` and says what to try if at least half of the rounds show no bandwidth, or one
/// beyond kMaxBytesPerSecond. Requires at least one round, and three sizes.
Link fit_link(const std::vector<LinkRound>& rounds, std::string_view what);

/// Returns the link through two times, for predictions near the larger one. If the larger transfer takes no longer, or
/// the bandwidth would exceed kMaxBytesPerSecond, no bandwidth was measured: the latency is then the larger one's
/// time, and the bandwidth is unlimited.
Link link_through(const TransferTime& smaller, const TransferTime& larger);

/// A bandwidth beyond that of any link between two devices.
inline constexpr double kMaxBytesPerSecond = 1e13;

/// Returns whether the quartiles of the link's bandwidth are more than a factor of 2 apart, so that predictions from it
/// are unreliable.
bool is_unsteady(const Link& link);

/// Formats "latency 41.2 us, bandwidth 3.10 GB/s (half of the measurements: 2.95 to 3.22)".
std::string to_text(const Link& link);

}  // namespace frostpipe
