// Oracle: the output and the end that the child was told to have.
#include "cli/shared/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/files.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

constexpr const char* kChildVariable = "FROSTPIPE_TEST_CHILD";

/// This program starts itself again as the child. If the variable says how to end, it is the child and runs no test.
[[maybe_unused]] const bool kIsNoChild = [] {
  const char* const how = std::getenv(kChildVariable);
  if (!how) return true;
  std::puts("said by the child");
  std::fflush(stdout);
  if (how == std::string_view("killed")) std::raise(SIGKILL);
  _exit(std::atoi(how));
}();

class RunSelf : public test::ScratchFolderTest {
 protected:
  int run_child(const char* how) {
    setenv(kChildVariable, how, 1);
    const int code = run_self({"some", "arguments"}, log());
    unsetenv(kChildVariable);
    return code;
  }
  std::filesystem::path log() const { return folder_ / "log"; }
};

TEST_F(RunSelf, ReturnsHowItEnded) {
  EXPECT_EQ(run_child("0"), 0);
  EXPECT_EQ(run_child("3"), 3);
  EXPECT_EQ(run_child("killed"), 128 + SIGKILL);
}

TEST_F(RunSelf, LogsTheCommandAndWhatItSays) {
  run_child("0");
  EXPECT_EQ(read_text_file(log()), "$ frostpipe some arguments\nsaid by the child\n");
}

}  // namespace
}  // namespace frostpipe
