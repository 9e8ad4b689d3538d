#pragma once
#include <string>

#include "simulator/what_if.h"

namespace frostpipe {

/// Changes a scenario as `text` says. It has one or several of these, joined by commas:
///   bandwidth=x0.1 or bandwidth=10 (GB/s), latency=x10 or latency=0.5 (ms): of messages and collectives, within and
///   between nodes
///   card=12.5: every node's ranks share a network card of that many GB/s each way
///   switch=4x50: every 4 nodes share an uplink of that many GB/s
///   all-reduce=ring, tree, hierarchical, direct or fastest; overlap-reduction=on; scatter-gather=off
///   compute=x2: every device twice as fast; rank3=x0.5: that one half as fast
///   freeze=x0.5: every freeze at half its step (x2: later)
///   cache=off
///   recompute=layers: as plan --recompute, or off
///   jitter=0.05: every compute time varies by 5 % of itself (standard deviation; seeded)
///   failures=2 (a day, of the whole job): with checkpoints at the best distance, or none where that takes less time
///   checkpoint=30: with failures, the seconds that writing a checkpoint takes (60)
/// Factors are from 0.001 to 1000000 (a latency's also 0), and each the only change of its name. Bandwidths are from
/// 0.001 to 1000000 GB/s, latencies at most 10000 ms, failures at most 1000000 a day, checkpoints 1000000 seconds.
/// Throws UsageError that names the faulty change.
void apply_changes(Scenario& scenario, const std::string& text);

}  // namespace frostpipe
