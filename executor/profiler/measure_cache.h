#pragma once
#include "executor/communication/communicator.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Writes and reads back mini-batch shares of activations on all ranks at once, as a run does. `hidden_size` and
/// `tokens` (of a sample) give the size of an entry; the price of one of that size is as measured, also where entries
/// are too small to tell a bandwidth (it is unlimited then). The same result on all ranks. None where no host memory
/// can be reserved.
std::optional<CacheSpeed> measure_cache(Communicator& communicator, std::int64_t hidden_size, int tokens,
                                        const at::TensorOptions& compute);

}  // namespace frostpipe
