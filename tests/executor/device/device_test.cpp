#include "executor/device/device.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/executor/device/mebibytes.h"

namespace frostpipe {
namespace {

using test::kMiB;
using test::mebibytes;

TEST(Device, IsCpuOrCuda) {
  try {
    make_device("tpu", 0);
    ADD_FAILURE() << "a tpu";
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), "device: must be cpu or cuda, is tpu");
  }
}

TEST(Device, ThreadsAreOfItsType) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", 0);
  EXPECT_EQ(device->type(), "cpu");
  device->set_num_threads(2);
  EXPECT_EQ(device->type(), "cpu x 2");
  EXPECT_EQ(at::get_num_threads(), 2);
}

TEST(Device, MarksAreInTheirOrderAndForgottenWithTheFirst) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", 0);
  device->first_mark();
  device->mark();
  device->mark();
  const std::vector<Nanoseconds> marks = device->marked_ns();
  ASSERT_EQ(marks.size(), 3u);
  EXPECT_TRUE(std::is_sorted(marks.begin(), marks.end()));
  device->first_mark();
  ASSERT_EQ(device->marked_ns().size(), 1u);
  EXPECT_GE(device->marked_ns().front(), marks.back());
}

// Oracle: 1 MiB of tensors emulates 8 MiB.
TEST(EmulatedDevice, CountsWholeBytesAndLimitsShrunkOnes) {
  const std::unique_ptr<ComputeDevice> device = make_emulated_device(8);
  const Bytes before = device->live_bytes();
  const at::Tensor kept = mebibytes(1);
  EXPECT_EQ(device->live_bytes() - before, 8 * kMiB);
  device->set_memory_limit(device->live_bytes() + 8 * kMiB, "rank 3");
  EXPECT_NO_THROW(mebibytes(1));
  try {
    mebibytes(2);
    ADD_FAILURE() << "16 MiB where 8 are left";
  } catch (const RuntimeFailure& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("rank 3 (bytes / 8): out of memory"));
  }
  device->set_memory_limit(std::nullopt, "");
}

TEST(NotesOnBfloat16, AreOfCpusWithoutItAlone) {
  EXPECT_TRUE(notes_on_bfloat16("cpu", DType::kFloat32, std::nullopt).empty());
  EXPECT_TRUE(notes_on_bfloat16("cuda", DType::kBFloat16, std::nullopt).empty());
  const std::size_t expected = multiplies_in_bfloat16() ? 0 : 1;
  EXPECT_EQ(notes_on_bfloat16("cpu", DType::kBFloat16, std::nullopt).size(), expected);
  EXPECT_EQ(notes_on_bfloat16("cpu", DType::kFloat32, DType::kBFloat16).size(), expected);
}

}  // namespace
}  // namespace frostpipe
