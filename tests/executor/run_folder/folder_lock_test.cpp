// Oracle: a second process gets the error while the first lives, and the lock once the first is gone, killed or not.
#include "executor/run_folder/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>

#include "base/error.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using testing::HasSubstr;

class FolderLockTest : public test::ScratchFolderTest {
 protected:
  /// The error message of an attempt to lock; empty if it succeeds.
  std::string refusal() const {
    try {
      FolderLock lock(folder_ / "run");
      return "";
    } catch (const RuntimeFailure& error) {
      return error.what();
    }
  }
};

TEST_F(FolderLockTest, IsHadByOneAtATimeAndNamesIt) {
  {
    const FolderLock lock(folder_ / "run");
    EXPECT_THAT(refusal(), HasSubstr((folder_ / "run").string() + ": is being written by process " +
                                     std::to_string(getpid()) + " on host "));
    EXPECT_THAT(refusal(), testing::ContainsRegex("since 2[0-9]{3}-[0-9]{2}-[0-9]{2} [0-9:]{8} UTC. Wait for it"));
    EXPECT_NO_THROW(FolderLock(folder_ / "other"));
  }
  EXPECT_EQ(refusal(), "");
}

TEST_F(FolderLockTest, GoesWithTheProcessThatIsKilled) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    const FolderLock lock(folder_ / "run");
    if (write(ready[1], "r", 1) == 1) pause();
    _exit(1);
  }
  ASSERT_GT(pid, 0);
  close(ready[1]);  // so that read() ends when the child does
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_THAT(refusal(), HasSubstr("process " + std::to_string(pid)));
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  EXPECT_EQ(refusal(), "");
  close(ready[0]);
}

TEST_F(FolderLockTest, IsNotInherited) {
  std::optional<FolderLock> lock(std::in_place, folder_ / "run");
  const pid_t pid = fork();
  if (pid == 0) {
    execlp("sleep", "sleep", "30", nullptr);
    _exit(127);
  }
  ASSERT_GT(pid, 0);
  // A forked child holds its parent's descriptors until it executes another program.
  lock.reset();
  for (int i = 0; i < 500 && !refusal().empty(); ++i) usleep(10'000);
  EXPECT_EQ(refusal(), "");
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

}  // namespace
}  // namespace frostpipe
