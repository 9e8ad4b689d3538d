#include "tests/executor/wrapped_device.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace frostpipe::test {
namespace {

class SharedDevice final : public WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;
  std::string identity() const override { return "the only one"; }
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> WrappedDevice::make_group(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                            int size, const std::string& address) {
  return device_->make_group(store, rank, size, address);
}

std::unique_ptr<ComputeDevice> shared(std::unique_ptr<ComputeDevice> device) {
  return std::make_unique<SharedDevice>(std::move(device));
}

}  // namespace frostpipe::test
