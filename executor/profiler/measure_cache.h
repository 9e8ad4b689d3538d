#pragma once
#include "executor/communication/communicator.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Measures the activation cache: all ranks write and read back their shares of a mini-batch at the same time, as a run
/// does. `hidden_size` and the `tokens` of a sample give the size of an entry. For an entry of that size (8 tokens at
/// least) the result gives the measured times, even if entries are too small to tell the bandwidth, which is then
/// unlimited. The result is the same on all ranks; nothing if not all host memory for the entries can be reserved.
std::optional<CacheSpeed> measure_cache(Communicator& communicator, std::int64_t hidden_size, int tokens,
                                        const at::TensorOptions& compute);

}  // namespace frostpipe
