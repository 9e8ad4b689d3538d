#pragma once
#include "base/units.h"

namespace frostpipe {

/// A device is shared by at most so many virtual devices: the least common multiple of all shares stays small.
inline constexpr int kMostShare = 16;
/// Requests of a batch.
inline constexpr int kMostBatch = 1024;
/// So small that sums and products over batches and partitions stay within 64 bits: 17 minutes.
inline constexpr Nanoseconds kMostServingNs = 1'000'000'000'000;
/// Requests per second, also per weight, and prices per hour.
inline constexpr double kMostServingRate = 1e12;
/// Of a model's weight.
inline constexpr double kLeastWeight = 1e-6, kMostWeight = 1e6;

/// Of models that share leading layers.
inline constexpr int kMostHeads = 64;

}  // namespace frostpipe
