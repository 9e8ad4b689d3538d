// Oracle: the exit codes that the scripts name.
#include "base/process/start_child.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "base/error.h"
#include "base/process/process_limits.h"
#include "tests/support/child_process.h"

namespace frostpipe {
namespace {

int code_of(const std::string& script) { return wait_for_child(start_child({"sh", "-c", script}, {}, "a shell")); }

TEST(StartChild, TellsHowAChildEnded) {
  EXPECT_EQ(code_of("exit 0"), 0);
  EXPECT_EQ(code_of("exit 7"), 7);
  EXPECT_EQ(code_of("kill -9 $$"), 128 + 9);
  EXPECT_EQ(wait_for_child(start_child({"/there/is/no/such/program"}, {}, "it")), 127);
}

TEST(StartChild, TellsItAlsoIfTheParentIgnoredTheEndsOfChildren) {
  EXPECT_TRUE(test::holds_in_a_child([] {
    std::signal(SIGCHLD, SIG_IGN);
    make_most_of_limits();
    return code_of("exit 7") == 7;
  }));
}

TEST(StartChild, AnEndThatIsNotKnownIsNoSuccess) { EXPECT_THROW(wait_for_child(getpid()), RuntimeFailure); }

}  // namespace
}  // namespace frostpipe
