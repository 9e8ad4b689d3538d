#pragma once
#include <memory>

#include "executor/device/device.h"

namespace frostpipe::test {

/// That device, which says that another rank computes on it too.
std::unique_ptr<ComputeDevice> shared(std::unique_ptr<ComputeDevice> device);

}  // namespace frostpipe::test
