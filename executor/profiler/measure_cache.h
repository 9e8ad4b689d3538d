#pragma once
#include "executor/communication/communicator.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Measures the activation cache: all ranks write and read back their shares of a mini-batch at the same time, as a run
/// does. `hidden_size` and the `tokens` of a sample give the size of an entry. The price of an entry of that size is as
/// measured, even if entries are too small to tell the bandwidth (which is then unlimited). The result is the same on
/// all ranks; nothing if no host memory can be reserved.
std::optional<CacheSpeed> measure_cache(Communicator& communicator, std::int64_t hidden_size, int tokens,
                                        const at::TensorOptions& compute);

}  // namespace frostpipe
