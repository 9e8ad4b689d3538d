// Oracle: limits that the test sets itself, in a child process where they must take effect.
#include "base/process/process_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/child_process.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using test::holds_in_a_child;
using testing::HasSubstr;
using testing::StartsWith;
using ProcessLimitsTest = test::ScratchFolderTest;

std::string refusal(const ProcessLimits& limits, const ProcessNeeds& needs) {
  try {
    require_within(limits, needs);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST_F(ProcessLimitsTest, WithoutLimitsAnythingGoes) {
  EXPECT_EQ(
      refusal({}, {.num_ranks = 1000, .memory_bytes = Bytes{1} << 60, .file_bytes = Bytes{1} << 60, .file = "model"}),
      "");
}

TEST_F(ProcessLimitsTest, TooFewDescriptorsAreRefusedWithWhatIsNeeded) {
  EXPECT_EQ(refusal({.descriptors = 32}, {.num_ranks = 4}),
            "limit of open files (ulimit -n): must be at least 44 for 4 ranks, is 32");
  EXPECT_EQ(refusal({.descriptors = 44}, {.num_ranks = 4}), "");
  EXPECT_THAT(refusal({.descriptors = 20}, {}), HasSubstr("for 1 rank, is 20"));
}

TEST_F(ProcessLimitsTest, TooLittleMemoryIsRefusedWithWhatTheModelAdds) {
  const Bytes gibibyte = Bytes{1} << 30;
  EXPECT_THAT(refusal({.address_space = 900 << 20}, {}),
              StartsWith("limit of memory that a process may map (ulimit -v): must be at least 1310720 KiB"));
  EXPECT_EQ(refusal({.address_space = 2 * gibibyte}, {.memory_bytes = gibibyte / 2}), "");
  const std::string text = refusal({.address_space = 2 * gibibyte}, {.memory_bytes = gibibyte});
  EXPECT_THAT(text, HasSubstr("weights and tensors 1.00 GiB"));
  EXPECT_THAT(text, HasSubstr("is 2.00 GiB"));
}

TEST_F(ProcessLimitsTest, AFileThatWouldNotFitIsNamed) {
  const ProcessNeeds needs{.file_bytes = 200'000, .file = "runs/mine/model/model.safetensors"};
  const std::string text = refusal({.file_bytes = 120'000}, needs);
  EXPECT_THAT(text, StartsWith("limit of a file's size (ulimit -f): must be at least 196 KiB, which "
                               "runs/mine/model/model.safetensors takes, is "));
  EXPECT_EQ(refusal({.file_bytes = 200'000}, needs), "");
}

TEST_F(ProcessLimitsTest, DescriptorsRiseToWhatTheSystemAllows) {
  EXPECT_TRUE(holds_in_a_child([] {
    const rlimit low{30, 300};
    setrlimit(RLIMIT_NOFILE, &low);
    make_most_of_limits();
    return process_limits().descriptors == 300;
  }));
}

TEST_F(ProcessLimitsTest, ASmallStackIsRefusedWithWhatIsNeeded) {
  EXPECT_NO_THROW(require_stack({}));
  EXPECT_NO_THROW(require_stack({.stack = 1 << 20}));
  try {
    require_stack({.stack = 64 << 10});
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(
        error.what(),
        "limit of the stack (ulimit -s): must be at least 1024 KiB (the usual limit is 8192 KiB), is 64.0 KiB");
  }
}

TEST_F(ProcessLimitsTest, StacksRiseToTheUsualSizeInThisThreadAndInThoseThatItStarts) {
  EXPECT_TRUE(holds_in_a_child([] {
    const rlimit low{64 << 10, 32 << 20};
    setrlimit(RLIMIT_STACK, &low);
    make_most_of_limits();
    std::size_t of_thread = 0;
    std::thread([&] {
      pthread_attr_t attributes;
      pthread_getattr_np(pthread_self(), &attributes);
      pthread_attr_getstacksize(&attributes, &of_thread);
      pthread_attr_destroy(&attributes);
    }).join();
    return process_limits().stack == 8 << 20 && of_thread == 8 << 20;
  }));
}

TEST_F(ProcessLimitsTest, AFileThatGrowsTooLargeIsAnErrorThatNamesItAndTheLimit) {
  const std::string path = (folder_ / "trace.json").string();
  EXPECT_TRUE(holds_in_a_child([&] {
    const rlimit small{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &small);
    make_most_of_limits();
    try {
      write_file_atomically(path, std::string(10'000, 'x'));
    } catch (const RuntimeFailure& error) {
      return std::string(error.what()) ==
             path + ": cannot be written: File too large (a file may have 4.00 KiB: ulimit -f)";
    }
    return false;
  }));
}

}  // namespace
}  // namespace frostpipe
