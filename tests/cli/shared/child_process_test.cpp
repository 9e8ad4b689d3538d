#include "cli/shared/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>

#include "profiles/files.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// What this program runs again of itself.
TEST(DISABLED_Child, Succeeds) { std::puts("said by the child"); }
TEST(DISABLED_Child, Fails) { FAIL(); }
TEST(DISABLED_Child, IsKilled) { std::raise(SIGKILL); }

using RunSelf = test::ScratchFolderTest;

int run_child(const std::string& name, const std::filesystem::path& log) {
  return run_self({"--gtest_also_run_disabled_tests", "--gtest_filter=DISABLED_Child." + name}, log);
}

TEST_F(RunSelf, ReturnsHowItEnded) {
  const std::filesystem::path log = folder_ / "log";
  EXPECT_EQ(run_child("Succeeds", log), 0);
  EXPECT_EQ(run_child("Fails", log), 1);
  EXPECT_EQ(run_child("IsKilled", log), 128 + SIGKILL);
}

TEST_F(RunSelf, LogsTheCommandAndWhatItSays) {
  const std::filesystem::path log = folder_ / "log";
  run_child("Succeeds", log);
  const std::string text = read_text_file(log);
  EXPECT_THAT(text, StartsWith("$ frostpipe --gtest_also_run_disabled_tests --gtest_filter=DISABLED_Child.Succeeds\n"));
  EXPECT_THAT(text, HasSubstr("said by the child"));
}

}  // namespace
}  // namespace frostpipe
