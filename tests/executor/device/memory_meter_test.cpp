// Oracle: known sizes; tensors of 1 MiB, counted one by one.
#include "executor/device/memory_meter.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/executor/device/mebibytes.h"

namespace frostpipe {
namespace {

using test::kMiB;
using test::mebibytes;

TEST(MemoryMeter, CountsLiveTensorsAndTheirPeak) {
  MemoryMeter::install();
  const Bytes before = MemoryMeter::live_bytes();
  MemoryMeter::reset_peak();
  {
    const at::Tensor kept = mebibytes(3);
    { const at::Tensor transient = mebibytes(2); }
    EXPECT_EQ(MemoryMeter::live_bytes() - before, 3 * kMiB);
    EXPECT_EQ(MemoryMeter::peak_bytes() - before, 5 * kMiB);
    MemoryMeter::reset_peak();
    EXPECT_EQ(MemoryMeter::peak_bytes() - before, 3 * kMiB);
    const at::Tensor view = kept.narrow(0, 0, 10);  // shares storage
    EXPECT_EQ(MemoryMeter::live_bytes() - before, 3 * kMiB);
  }
  EXPECT_EQ(MemoryMeter::live_bytes(), before);
}

TEST(MemoryMeter, MemoryOutsideTheDeviceIsNotCounted) {
  MemoryMeter::install();
  const Bytes before = MemoryMeter::live_bytes();
  at::Tensor offloaded;
  {
    const UncountedMemory host;
    offloaded = mebibytes(4);
  }
  const at::Tensor counted = mebibytes(1);
  EXPECT_EQ(MemoryMeter::live_bytes() - before, kMiB);
  offloaded = at::Tensor();
  EXPECT_EQ(MemoryMeter::live_bytes() - before, kMiB);
}

TEST(MemoryMeter, OffloadedStorageIsNoLongerCounted) {
  MemoryMeter::install();
  const Bytes before = MemoryMeter::live_bytes();
  {
    const at::Tensor offloaded = mebibytes(4), counted = mebibytes(1);
    for (int time = 0; time < 2; ++time) {
      MemoryMeter::stop_counting(offloaded.storage().data_ptr());
      EXPECT_EQ(MemoryMeter::live_bytes() - before, kMiB);
    }
    float of_others[2] = {};
    for (const at::Tensor& other : {at::from_blob(of_others, {2}, at::kFloat), at::empty({0}, at::kFloat)})
      MemoryMeter::stop_counting(other.storage().data_ptr());
    EXPECT_EQ(MemoryMeter::live_bytes() - before, kMiB);
  }
  EXPECT_EQ(MemoryMeter::live_bytes(), before);
}

TEST(MemoryMeter, MemoryThatTheSystemDoesNotHaveIsASentenceAndLeavesTheCountRight) {
  MemoryMeter::install();
  const Bytes before = MemoryMeter::live_bytes();
  MemoryMeter::set_action("1F0");
  try {
    at::empty({std::int64_t{1} << 46}, at::kFloat);  // 256 TiB: more than a process can map
    ADD_FAILURE() << "256 TiB of memory";
  } catch (const RuntimeFailure& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("out of memory in 1F0: "),
                                             testing::HasSubstr("Cannot allocate memory")));
  }
  EXPECT_EQ(MemoryMeter::live_bytes(), before);
}

TEST(MemoryMeter, ExceedingTheLimitNamesRankActionAndBytesAndLeavesTheCountRight) {
  MemoryMeter::install();
  const Bytes before = MemoryMeter::live_bytes();
  MemoryMeter::set_limit(before + 2 * kMiB, "rank 3");
  MemoryMeter::set_action("1F0");
  const at::Tensor fits = mebibytes(1);
  try {
    mebibytes(2);
    ADD_FAILURE() << "3 MiB fitted into 2";
  } catch (const RuntimeFailure& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("rank 3: out of memory in 1F0: " + std::to_string(2 * kMiB) + " more bytes"));
  }
  MemoryMeter::set_limit(std::nullopt, "");
  EXPECT_EQ(MemoryMeter::live_bytes() - before, kMiB);
  EXPECT_NO_THROW(mebibytes(2));
}

TEST(MemoryMeter, KernelsThatAllocateRawAreServedAndCounted) {
  MemoryMeter::install();
  const Bytes before = MemoryMeter::live_bytes();
  const at::Tensor x = at::ones({64, 512});
  EXPECT_NEAR(at::gelu(x).sum().item<double>() / (64 * 512), 0.8413447,
              1e-4);  // Phi(1); oneDNN's kernel on most machines
  EXPECT_EQ(MemoryMeter::live_bytes() - before, 64 * 512 * 4);
}

}  // namespace
}  // namespace frostpipe
