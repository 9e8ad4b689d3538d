#pragma once
#include <functional>
#include <memory>

#include "executor/device/device.h"

namespace frostpipe::test {

/// A capture on a fake GPU. The work is done once, on memory that is put back afterwards, and noted with the addresses
/// of its tensors and not the tensors; what it allocates is NaN until the replay. Waits and copies between host and
/// device are refused within, as CUDA refuses the first.
struct FakeCapture {
  /// Some thread captures.
  static bool is_open();
  /// Notes a piece of work that any thread has just done on memory of the device.
  static void add(std::function<void()> work);
};

std::unique_ptr<DeviceGraphs> make_fake_graphs();

}  // namespace frostpipe::test
