#pragma once
#include "base/units.h"

namespace frostpipe {

/// The largest number of virtual devices of a device. It keeps the least common multiple of all shares small.
inline constexpr int kMaxShare = 16;
/// The largest number of requests in a batch.
inline constexpr int kMaxBatch = 1024;
/// The largest time of a batch, 17 minutes. It keeps sums and products over batches and partitions within 64 bits.
inline constexpr Nanoseconds kMaxServingNs = 1'000'000'000'000;
/// The largest rate in requests per second, also per weight, and the largest price per hour.
inline constexpr double kMaxServingRate = 1e12;
/// The range of a model's weight.
inline constexpr double kLeastWeight = 1e-6, kMaxWeight = 1e6;

/// The largest number of models that share leading layers.
inline constexpr int kMaxHeads = 64;

}  // namespace frostpipe
