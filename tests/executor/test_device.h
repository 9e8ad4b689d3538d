#pragma once
#include <memory>
#include <optional>
#include <string>

#include "executor/device/device.h"

namespace frostpipe::test {

/// The device of tests of models, schedules, reconfigurations, the cache and checkpoints: FROSTPIPE_TEST_DEVICE, or the
/// CPU. ranks_on_device_test.cpp repeats them on CUDA.
std::unique_ptr<ComputeDevice> test_device(int local_rank);

/// The reason why no device of this type is available, or nothing if one is. It must be called before anything is
/// computed in a process that will use CUDA.
std::optional<std::string> reason_without_device(const std::string& type);

}  // namespace frostpipe::test
