#pragma once

namespace frostpipe {

/// A device is shared by at most so many virtual devices: the least common multiple of all shares stays small.
inline constexpr int kMostShare = 16;
/// Requests of a batch.
inline constexpr int kMostBatch = 1024;

}  // namespace frostpipe
