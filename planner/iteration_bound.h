#pragma once
#include <string_view>

#include "profiles/cluster.h"
#include "profiles/profile.h"

namespace frostpipe {

/// No synchronous plan with nothing frozen trains a mini-batch faster, on these devices and with these measured times, whatever its stages, replicas, tensor-parallel
/// size, micro-batches, schedule or placement: the larger of
///   the work:  all layers' forward, backward and update for every sample, at the micro-batch size and tensor-parallel size (times its ranks) where a sample costs
///              least, on the fastest device type, over all devices;
///   the chain: one micro-batch forward and backward through all layers, each at its least time.
/// Proof: a device does one thing at a time, so an iteration lasts at least its work over the devices; a sample's share of a layer's time c(b) / b is least at a grid
/// line, for between and beyond lines c is linear and c(b) / b then monotone. And some micro-batch passes every layer in order, forward and back, within the iteration.
/// Messages, bubbles, imbalance and memory are left out. Throws InvalidInput if a layer was not measured on any of the cluster's devices.
Nanoseconds iteration_lower_bound_ns(const Profile& profile, const Cluster& cluster, int global_batch_size, int tokens, std::string_view optimizer,
                                     std::string_view dtype);

}  // namespace frostpipe
