// Oracle: the output and the end that the shell script asks for.
#include "base/process/child_output.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>

namespace frostpipe {
namespace {

using std::chrono::seconds;

TEST(ChildOutput, HoldsBothStreamsAndTheExitCode) {
  const ChildOutput child = output_of({"sh", "-c", "echo to stdout; echo to stderr >&2; exit 7"}, {}, seconds(60));
  EXPECT_EQ(child.output, "to stdout\n");
  EXPECT_EQ(child.errors, "to stderr\n");
  EXPECT_EQ(child.exit_code, 7);
  EXPECT_FALSE(child.timed_out);
}

TEST(ChildOutput, HoldsMoreThanAPipeTakes) {
  const ChildOutput child =
      output_of({"sh", "-c", "head -c 300000 /dev/zero >&2; head -c 200000 /dev/zero"}, {}, seconds(60));
  EXPECT_EQ(child.output, std::string(200'000, '\0'));
  EXPECT_EQ(child.errors, std::string(300'000, '\0'));
}

TEST(ChildOutput, VariablesStandBesideTheEnvironment) {
  setenv("FROSTPIPE_TEST_KEPT", "kept", 1);
  setenv("FROSTPIPE_TEST_REPLACED", "old", 1);
  const ChildOutput child = output_of({"sh", "-c", "echo $FROSTPIPE_TEST_KEPT $FROSTPIPE_TEST_REPLACED"},
                                      {{"FROSTPIPE_TEST_REPLACED", "new"}}, seconds(60));
  EXPECT_EQ(child.output, "kept new\n");
  EXPECT_STREQ(std::getenv("FROSTPIPE_TEST_REPLACED"), "old");
}

TEST(ChildOutput, SaysHowAProgramEndedThatDidNotEndItself) {
  EXPECT_EQ(output_of({"sh", "-c", "kill -ILL $$"}, {}, seconds(60)).exit_code, 128 + 4);
  EXPECT_EQ(output_of({"/nowhere/program"}, {}, seconds(60)).exit_code, 127);
}

TEST(ChildOutput, AProgramThatDoesNotEndIsKilled) {
  for (const char* const script : {"echo begun; exec sleep 1000",
                                   "echo begun; exec >/dev/null 2>&1; exec sleep 1000"}) {  // it closes both streams
    const ChildOutput child = output_of({"sh", "-c", script}, {}, seconds(1));
    EXPECT_TRUE(child.timed_out) << script;
    EXPECT_EQ(child.exit_code, 128 + 9);
    EXPECT_EQ(child.output, "begun\n");
  }
}

}  // namespace
}  // namespace frostpipe
