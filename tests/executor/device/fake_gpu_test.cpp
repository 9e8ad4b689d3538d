// The fake GPU (tests/executor/fake_gpu) is at least as strict as a real one: operations that a real GPU refuses, or on
// which it sometimes fails, always fail. CMake's tests named fake_gpu run this file.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "executor/device/device.h"

namespace frostpipe::test {
namespace {

class FakeGpu : public testing::Test {
 protected:
  at::Tensor ones_on_device() const {
    return at::ones({4}, at::TensorOptions().dtype(at::kFloat).device(device_->torch_device()));
  }
  std::unique_ptr<ComputeDevice> device_ = make_device("cuda", 0);
};

using FakeGpuDeathTest = FakeGpu;

TEST_F(FakeGpuDeathTest, ItsMemoryIsNotTheHosts) {
  const at::Tensor tensor = ones_on_device();
  EXPECT_EXIT([&] { static_cast<volatile float*>(tensor.mutable_data_ptr())[0] = 1; }(),
              testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(FakeGpu, TakesNoTensorOfTheHostButSingleValues) {
  const at::Tensor tensor = ones_on_device();
  EXPECT_THAT([&] { tensor.add(at::ones({4})); },
              testing::ThrowsMessage<c10::Error>(testing::HasSubstr("same device")));
  EXPECT_EQ(tensor.add(at::ones({})).sum().item<float>(), 8);
}

TEST_F(FakeGpu, MemoryHasNoValuesBeforeItsFirstUse) {
  EXPECT_TRUE(at::empty_like(ones_on_device()).isnan().all().item<bool>());
}

TEST_F(FakeGpu, PageLockedMemoryIsNotWrittenBeforeTheHostHasWaited) {
  const at::Tensor pinned = at::ones({4}).pin_memory();
  const at::Tensor copy = pinned.to(device_->torch_device(), /*non_blocking=*/true);
  device_->synchronize();
  pinned.fill_(2);
  const at::Tensor again = pinned.to(device_->torch_device(), /*non_blocking=*/true);
  pinned.fill_(3);
  EXPECT_THROW(device_->synchronize(), std::logic_error);
  EXPECT_EQ(again.sum().item<float>(), 8);
}

TEST_F(FakeGpu, PageLockedMemoryHasNothingBeforeTheHostHasWaited) {
  const at::Tensor pinned = at::zeros({4}).pin_memory();
  pinned.copy_(ones_on_device(), /*non_blocking=*/true);
  EXPECT_NE(pinned.sum().item<float>(), 4);
  device_->synchronize();
  EXPECT_EQ(pinned.sum().item<float>(), 4);
}

}  // namespace
}  // namespace frostpipe::test
