#pragma once
#include <memory>
#include <optional>
#include <string>

#include "executor/device/device.h"

namespace frostpipe::test {

/// What the tests of models, schedules, changes, the cache and checkpoints compute on: FROSTPIPE_TEST_DEVICE, or the
/// CPU. ranks_on_device_test.cpp runs them again on CUDA.
std::unique_ptr<ComputeDevice> test_device(int local_rank);

/// Why no device of this type can be had here; nothing where it can. To be called before anything is computed in a
/// process that will use CUDA.
std::optional<std::string> reason_without_device(const std::string& type);

}  // namespace frostpipe::test
