#pragma once
#include <functional>
#include <memory>

#include "executor/device/device.h"

namespace frostpipe::test {

/// A capture on a fake GPU. The work is done once, on memory that is restored afterwards, and recorded with the
/// addresses of its tensors, not the tensors; memory that it allocates is NaN until the replay. Inside, waits and
/// copies between host and device are refused; CUDA refuses the waits.
struct FakeCapture {
  /// Returns whether some thread is capturing.
  static bool is_open();
  /// Records a piece of work that any thread has just done on memory of the device.
  static void add(std::function<void()> work);
};

std::unique_ptr<DeviceGraphs> make_fake_graphs();

}  // namespace frostpipe::test
