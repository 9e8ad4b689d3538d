#pragma once
#include <string>

#include "plan/plan.h"
#include "profiles/profile.h"

namespace frostpipe {

/// What replicas of one stage wait on the average in an iteration for the slowest of them, since the cache has more of
/// one's samples than of another's; on devices of `device_type`.
///
/// Mini-batches are cut by tokens (plan/batch.h). So the time of a replica's frozen forwards is a sum over its
/// n = batch / d samples, of cost c by the layer at which the cache has the sample, times the sample's length. Lengths
/// do not depend on what is cached, and their sum is what the cut makes it: the variance is n (1 + v^2) Var(c), where v
/// is the lengths' standard deviation over their mean. Such sums are nearly normal, and the last of d ends
/// expected_largest_normal(d) standard deviations after the mean.
///
/// 0 with one replica, where all samples are alike, and with several stages, which hide it at least in part.
Nanoseconds replica_wait_ns(const Phase& phase, const StepSettings& settings, const Profile& profile,
                            const std::string& device_type);

/// Expected largest of `count` independent standard normal numbers: 0, 0.564, 0.846 and 1.029 of 1 to 4.
double expected_largest_normal(int count);

}  // namespace frostpipe
