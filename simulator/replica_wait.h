#pragma once
#include <string>

#include "plan/plan.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Returns the mean time per iteration that the replicas of a stage wait for the slowest of them because the cache
/// holds more samples of one replica than of another, on devices of `device_type`.
///
/// Mini-batches are cut by tokens (plan/batch.h). The time of a replica's frozen forwards is a sum over its n = batch /
/// d samples of the cost c, which depends on the layer at which the cache has the sample, times the sample's length.
/// Lengths are independent of what is cached, and the cut fixes their sum, so the variance is n (1 + v^2) Var(c), where
/// v is the standard deviation of lengths over their mean. Such sums are nearly normal, and the slowest of d is
/// expected_largest_normal(d) standard deviations above the mean.
///
/// Returns 0 for one replica, for samples of equal cost, and for several stages, which hide at least a part of it.
Nanoseconds replica_wait_ns(const Phase& phase, const StepSettings& settings, const Profile& profile,
                            const std::string& device_type);

/// Returns the expected maximum of `count` independent standard normal variables: 0, 0.564, 0.846 and 1.029 for 1 to 4.
double expected_largest_normal(int count);

}  // namespace frostpipe
