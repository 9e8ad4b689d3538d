// Oracle: the output and the end that the child is told to have.
#include "base/process/child_output.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "base/files.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

class RunLogged : public test::ScratchFolderTest {
 protected:
  int run(const std::string& script) const { return run_logged({"/bin/sh", "-c", script}, log()); }
  std::filesystem::path log() const { return folder_ / "log"; }
};

TEST_F(RunLogged, ReturnsHowItEnded) {
  EXPECT_EQ(run("exit 0"), 0);
  EXPECT_EQ(run("exit 3"), 3);
  EXPECT_EQ(run("kill -KILL $$"), 128 + SIGKILL);
}

TEST_F(RunLogged, WritesTheCommandAndItsOutput) {
  run("echo to stdout; echo to stderr >&2");
  EXPECT_EQ(read_text_file(log()), "$ sh -c echo to stdout; echo to stderr >&2\nto stdout\nto stderr\n");
}

}  // namespace
}  // namespace frostpipe
