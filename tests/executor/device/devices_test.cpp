// Behaviour that all devices have in common. The same tests run on the CPU, and on CUDA if there is a GPU.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "base/error.h"
#include "executor/device/device.h"
#include "executor/device/memory_meter.h"
#include "tests/executor/test_device.h"

namespace frostpipe::test {
namespace {

constexpr Bytes kMiB = 1 << 20;

class Devices : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const auto reason = reason_without_device(GetParam())) GTEST_SKIP() << *reason;
    device_ = make_device(GetParam(), 0);
    device_->release_kept_memory();
  }
  void TearDown() override {
    if (device_) device_->set_memory_limit(std::nullopt, "");
  }
  at::Tensor mebibytes(int count) const {
    return at::empty({count * kMiB / 4}, at::TensorOptions().dtype(at::kFloat).device(device_->torch_device()));
  }
  std::unique_ptr<ComputeDevice> device_;
};
INSTANTIATE_TEST_SUITE_P(On, Devices, testing::Values("cpu", "cuda"), [](const auto& info) { return info.param; });

TEST_P(Devices, CountLiveTensorsAndTheirPeak) {
  const Bytes before = device_->live_bytes();
  device_->reset_peak();
  {
    const at::Tensor kept = mebibytes(32);
    { const at::Tensor transient = mebibytes(64); }
    EXPECT_EQ(device_->live_bytes() - before, 32 * kMiB);
    EXPECT_EQ(device_->peak_bytes() - before, 96 * kMiB);
    device_->reset_peak();
    EXPECT_EQ(device_->peak_bytes() - before, 32 * kMiB);
  }
  EXPECT_EQ(device_->live_bytes(), before);
}

/// On CUDA too, 32 MiB and more are separate blocks, so that no memory is lost by rounding.
TEST_P(Devices, ALimitIsKeptAndItsErrorNamesRankActionAndBytes) {
  const at::Tensor kept = mebibytes(32);
  const Bytes before = device_->live_bytes();
  device_->set_memory_limit(before + 128 * kMiB, "rank 3");
  MemoryMeter::set_action("1F0");
  EXPECT_NO_THROW(mebibytes(64));
  try {
    mebibytes(512);
    ADD_FAILURE() << "512 MiB fitted into 128";
  } catch (const RuntimeFailure& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("rank 3: out of memory in 1F0: "),
                                             testing::HasSubstr(std::to_string(512 * kMiB) + " more bytes"),
                                             testing::HasSubstr("memory_limit_bytes")));
  }
  EXPECT_EQ(device_->live_bytes(), before);
  EXPECT_NO_THROW(mebibytes(64)) << "the device goes on";
  device_->set_memory_limit(std::nullopt, "");
  EXPECT_NO_THROW(mebibytes(512));
}

/// Oracle: the host's clock around the marks.
TEST_P(Devices, MarksAreTheTimesOfTheWorkBetweenThem) {
  const at::TensorOptions options = at::TensorOptions().dtype(at::kFloat).device(device_->torch_device());
  const at::Tensor matrix = at::ones({256, 256}, options);
  matrix.mm(matrix);
  device_->synchronize();
  const Nanoseconds begin = device_->now_ns();
  device_->first_mark();
  for (const int products : {1, 200}) {
    for (int i = 0; i < products; ++i) matrix.mm(matrix);
    device_->mark();
  }
  const std::vector<Nanoseconds> marks = device_->marked_ns();
  const Nanoseconds end = device_->now_ns();
  ASSERT_EQ(marks.size(), 3u);
  EXPECT_TRUE(std::is_sorted(marks.begin(), marks.end()));
  EXPECT_GE(marks.front(), begin);
  EXPECT_GT(marks[2] - marks[1], marks[1] - marks[0]) << "200 products take longer than one";
  EXPECT_LE(marks.back() - marks.front(), end - begin);
}

/// Each replay uses the current values, in the graph's own memory. Oracle: the same work done eagerly. The CPU has no
/// graphs.
TEST_P(Devices, DoCapturedWorkWhenItIsReplayed) {
  const std::unique_ptr<DeviceGraphs> graphs = device_->make_graphs();
  ASSERT_EQ(graphs != nullptr, GetParam() == "cuda");
  if (!graphs) return;
  const at::TensorOptions options = at::TensorOptions().dtype(at::kFloat).device(device_->torch_device());
  const at::Tensor input = at::full({3}, 2.0, options), sum = at::zeros({3}, options);
  at::Tensor between;
  input.square().add(1);  // the first use of its kernels
  sum.add_(input - input);
  graphs->capture([&] { between = input.square(); });
  graphs->capture([&] { sum.add_(between.add(1)); });
  EXPECT_EQ(sum.sum().item<float>(), 0) << "nothing is done yet";
  double expected = 0;
  for (const double value : {2.0, 3.0, 5.0}) {
    input.fill_(value);
    graphs->replay(0);
    const at::Tensor others = at::full({1024}, 7.0, options);  // these must not get the graphs' memory
    graphs->replay(1);
    expected += 3 * (value * value + 1);
    EXPECT_EQ(sum.sum().item<double>(), expected) << value;
  }
}

/// A capture in which the host would wait fails, and leaves the device as it was.
TEST_P(Devices, RefuseToWaitWhileCapturing) {
  const std::unique_ptr<DeviceGraphs> graphs = device_->make_graphs();
  if (!graphs) return;
  const at::Tensor one = at::ones({}, at::TensorOptions().dtype(at::kFloat).device(device_->torch_device()));
  EXPECT_THROW(graphs->capture([&] { one.item<float>(); }), c10::Error);
  EXPECT_EQ((one + one).item<float>(), 2);
}

/// A group of NCCL on CUDA, of Gloo on the CPU. Oracle: with one rank, a sum does not change.
TEST_P(Devices, AGroupOfOneRankKeepsWhatItHas) {
  const auto group = device_->make_group(c10::make_intrusive<c10d::HashStore>(), /*rank=*/0, /*size=*/1, "127.0.0.1");
  const at::Tensor values = at::arange(5, at::TensorOptions().dtype(at::kFloat).device(device_->torch_device()));
  std::vector<at::Tensor> list{values.clone()};
  group->allreduce(list)->wait();
  group->broadcast(list)->wait();
  group->barrier()->wait();
  device_->synchronize();
  EXPECT_TRUE(at::equal(list.front(), values));
}

}  // namespace
}  // namespace frostpipe::test
