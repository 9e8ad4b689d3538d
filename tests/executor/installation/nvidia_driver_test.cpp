// Oracle: fake_driver.cpp, a driver's library with two GPUs of known figures.
#include "executor/installation/nvidia_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace frostpipe {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

TEST(NvidiaDriver, NamesTheGpusInTheirOrder) {
  const NvidiaDriver driver = nvidia_driver(FROSTPIPE_FAKE_DRIVER_LIBRARY);
  EXPECT_EQ(driver.fault, "");
  EXPECT_EQ(driver.cuda_version, 12080);
  EXPECT_THAT(driver.gpus, ElementsAre(Gpu{.name = "Fake 10", .memory = Bytes{16} << 30, .compute_capability = 86},
                                       Gpu{.name = "Fake 11", .memory = Bytes{32} << 30, .compute_capability = 87}));
}

TEST(NvidiaDriver, SaysWhyThereIsNoGpu) {
  setenv("FROSTPIPE_FAKE_DRIVER", "100", 1);
  const NvidiaDriver without = nvidia_driver(FROSTPIPE_FAKE_DRIVER_LIBRARY);
  EXPECT_EQ(without.fault, "the driver says CUDA_ERROR_NO_DEVICE");
  EXPECT_EQ(without.cuda_version, 12080);
  EXPECT_THAT(without.gpus, ElementsAre());
  setenv("FROSTPIPE_FAKE_DRIVER", "804", 1);
  EXPECT_EQ(nvidia_driver(FROSTPIPE_FAKE_DRIVER_LIBRARY).fault, "the driver says error 804");
  unsetenv("FROSTPIPE_FAKE_DRIVER");
}

TEST(NvidiaDriver, SaysThatThereIsNoDriver) {
  const NvidiaDriver none = nvidia_driver("libno_such_driver.so.1");
  EXPECT_THAT(none.fault, StartsWith("libno_such_driver.so.1: cannot open shared object file"));
  EXPECT_EQ(none.cuda_version, 0);
  EXPECT_EQ(nvidia_driver("libm.so.6").fault, "libm.so.6 lacks functions of CUDA's driver");
}

TEST(NvidiaDriver, WritesVersionsAsNvidiaDoes) {
  EXPECT_EQ(cuda_version_text(13000), "13.0");
  EXPECT_EQ(cuda_version_text(12080), "12.8");
}

}  // namespace
}  // namespace frostpipe
