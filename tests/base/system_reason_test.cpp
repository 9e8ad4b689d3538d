// Oracle: the system's own sentences (strerror), and limits that the test sets.
#include "base/system_reason.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace frostpipe {
namespace {

TEST(SystemReason, NamesTheLimitBehindTheError) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const std::string reason = system_reason(EMFILE);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(reason, "Too many open files (this process may have 100: ulimit -n)");
}

TEST(SystemReason, OfOtherErrorsIsTheSystemsSentence) { EXPECT_EQ(system_reason(EROFS), std::strerror(EROFS)); }

TEST(SystemReason, OfAFileSystemNamesTheFiles) {
  const std::error_code full(ENOSPC, std::generic_category());
  EXPECT_EQ(system_reason(std::filesystem::filesystem_error("cannot rename", "a/b", "a/c", full)),
            "a/b and a/c: No space left on device");
  EXPECT_EQ(system_reason(std::filesystem::filesystem_error("cannot remove", "a/b", full)),
            "a/b: No space left on device");
}

TEST(SystemReason, OfAThreadSaysThatItCannotBeStarted) {
  const std::string reason = system_reason(std::system_error(std::error_code(EAGAIN, std::generic_category())));
  EXPECT_TRUE(reason.starts_with("a thread cannot be started: Resource temporarily unavailable")) << reason;
}

}  // namespace
}  // namespace frostpipe
