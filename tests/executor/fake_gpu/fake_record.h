#pragma once
#include <functional>
#include <memory>

#include "executor/device/device.h"

namespace frostpipe::test {

/// Records of a fake GPU. To note work, it is done once on memory that is put back afterwards, with the addresses of
/// its tensors and not the tensors; what a record has allocated is NaN until the replay. Waits and copies between host
/// and device are refused within, as CUDA refuses the first.
struct FakeRecord {
  /// Some thread's work is being recorded.
  static bool is_open();
  /// Notes a piece of work that any thread has just done on memory of the device.
  static void add(std::function<void()> work);
};

std::unique_ptr<RecordedWork> make_fake_graphs();

}  // namespace frostpipe::test
