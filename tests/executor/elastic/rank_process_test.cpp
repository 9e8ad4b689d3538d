// Oracle: the script of the started shell, and its report of its environment.
#include "executor/elastic/rank_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>

#include "base/files.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto kLongEnough = 20s;

LaunchOptions shell(const std::string& script) { return {.command = {"/bin/sh", "-c", script}, .num_ranks = 4}; }

std::vector<RankProcess> one_process(const LaunchOptions& options, int id = 2) {
  std::vector<RankProcess> processes;
  processes.push_back(start_rank_process(options, id));
  processes.back().rank = id;
  return processes;
}

/// The process after its end.
std::vector<RankProcess> ended(const LaunchOptions& options) {
  std::vector<RankProcess> processes = one_process(options);
  wait_for_end(processes, kLongEnough);
  EXPECT_FALSE(is_any_running(processes));
  return processes;
}

/// Reaps processes until the condition holds; returns whether it did.
bool comes_true(std::vector<RankProcess>& processes, const std::function<bool()>& holds) {
  for (const auto until = std::chrono::steady_clock::now() + kLongEnough; !holds();) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(2ms);
    reap(processes);
  }
  return true;
}

struct HowItEnds {
  std::string script, sentence;
  bool lost, failed, lost_its_peer;
};

TEST(RankProcess, SaysHowItEnded) {
  for (const HowItEnds& one : {
           HowItEnds{"exit 0", "ended with exit code 0", false, false, false},
           HowItEnds{"exit 7", "ended with exit code 7", false, true, false},
           HowItEnds{"exit 3", "lost the connection to another rank", false, true, true},
           HowItEnds{"kill -KILL $$", "was killed by signal 9 (Killed)", true, false, false},
           HowItEnds{"kill -SEGV $$", "was killed by signal 11 (Segmentation fault)", true, false, false},
       }) {
    const RankProcess process = std::move(ended(shell(one.script)).front());
    EXPECT_EQ(how_it_ended(process), one.sentence);
    EXPECT_EQ(process.lost(), one.lost) << one.script;
    EXPECT_EQ(process.failed(), one.failed) << one.script;
    EXPECT_EQ(process.lost_its_peer(), one.lost_its_peer) << one.script;
  }
}

TEST(RankProcess, ACommandThatIsNoneFails) {
  const RankProcess process = std::move(ended({.command = {"/no/such/program"}}).front());
  EXPECT_EQ(how_it_ended(process), "could not be started");
  EXPECT_TRUE(process.failed());
}

TEST(RankProcess, OneThatWasKilledBecauseItWasSilentIsLost) {
  std::vector<RankProcess> processes = one_process(shell("exec sleep 100"));
  processes.front().has_beaten = processes.front().silent = true;
  EXPECT_FALSE(processes.front().lost()) << "it still runs";
  end_all(processes);
  EXPECT_TRUE(processes.front().lost());
  EXPECT_EQ(how_it_ended(processes.front()), "has sent no heartbeat for 10 s: it is stopped or stuck");
}

TEST(RankProcess, HasTheNameOfItsRankUnlessItIsASpare) {
  EXPECT_EQ(name_of({.pid = 4711, .channel = ControlChannel(-1), .rank = 1}), "rank 1 (process 4711)");
  EXPECT_EQ(name_of({.pid = 4711, .channel = ControlChannel(-1)}), "a spare (process 4711)");
}

class RankProcessTest : public test::ScratchFolderTest {
 protected:
  /// The output of `env` in the process.
  std::string environment(LaunchOptions options) const {
    options.command = {"/bin/sh", "-c", "env | sort > " + (folder_ / "env").string()};
    ended(options);
    return "\n" + read_text_file(folder_ / "env");
  }
};

TEST_F(RankProcessTest, HasItsPlaceAndAllElseAsItsLauncher) {
  setenv("RANK", "77", 1);
  setenv("FROSTPIPE_TEST_WORD", "kept", 1);
  const std::string all = environment(shell(""));
  unsetenv("RANK");
  unsetenv("FROSTPIPE_TEST_WORD");
  for (const std::string& line :
       {std::string("RANK=2"), std::string("LOCAL_RANK=2"), std::string("WORLD_SIZE=4"),
        std::string("FROSTPIPE_TEST_WORD=kept"), "FROSTPIPE_LAUNCHER=" + std::to_string(getpid())})
    EXPECT_THAT(all, HasSubstr("\n" + line + "\n"));
  EXPECT_THAT(all, testing::Not(HasSubstr("RANK=77")));
}

TEST_F(RankProcessTest, KnowsWhetherThereMayBeAnotherRound) {
  const std::string variable = std::string("\n") + kMayRendezvousAgainVariable + "=";
  EXPECT_THAT(environment({.max_restarts = 1}), HasSubstr(variable));
  EXPECT_THAT(environment({.max_restarts = 0}), testing::Not(HasSubstr(variable)));
}

TEST(RankProcess, LeavesCtrlCToItsLauncher) {
  EXPECT_EQ(how_it_ended(ended(shell("kill -INT $$; kill -TERM $$; exit 5")).front()), "ended with exit code 5");
}

/// Only the process itself holds the other end of its channel; its launcher and a process started later do not.
TEST(RankProcess, ItsLineClosesWithItsEnd) {
  std::vector<RankProcess> first = one_process(shell("exec sleep 100"), 0),
                           later = one_process(shell("exec sleep 100"), 1);
  EXPECT_FALSE(first.front().channel.receive(0ms));
  EXPECT_FALSE(first.front().channel.closed());
  end_all(first);
  EXPECT_FALSE(first.front().channel.receive(0ms));
  EXPECT_TRUE(first.front().channel.closed());
  EXPECT_TRUE(is_any_running(later));
  end_all(later);
}

TEST(RankProcess, IsWaitedForAsLongAsItsLibrariesMayTakeUnlessItIsKnownToBeStopped) {
  std::vector<RankProcess> processes = one_process(shell("exec sleep 100"));
  RankProcess& process = processes.front();
  EXPECT_EQ(process.silence_limit(), 60s);
  const auto started = process.last_beat;
  kill(process.pid, SIGSTOP);
  EXPECT_TRUE(comes_true(processes, [&] { return process.suspended; }));
  EXPECT_EQ(process.silence_limit(), 10s);
  EXPECT_GT(process.last_beat, started) << "until then it was not silent";
  kill(process.pid, SIGCONT);
  EXPECT_TRUE(comes_true(processes, [&] { return !process.suspended; }));
  EXPECT_EQ(process.silence_limit(), 60s);
  process.has_beaten = true;
  EXPECT_EQ(process.silence_limit(), 10s);
  end_all(processes);
}

TEST(RankProcess, TheWaitForItsEndHasALimit) {
  std::vector<RankProcess> processes = one_process(shell("exit 0"));
  processes.push_back(start_rank_process(shell("exec sleep 100"), 1));
  const auto begin = std::chrono::steady_clock::now();
  wait_for_end(processes, 100ms);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 100ms);
  EXPECT_TRUE(is_any_running(processes));
  end_all(processes);
  EXPECT_FALSE(is_any_running(processes));
  EXPECT_EQ(how_it_ended(processes.back()), "was killed by signal 9 (Killed)");
}

/// The launcher is a separate process here, and its orphan becomes a child of this one.
TEST(RankProcess, DiesWithItsLauncher) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const pid_t launcher = fork();
  if (launcher == 0) {
    const pid_t orphan = start_rank_process(shell("exec sleep 100"), 0).pid;
    std::this_thread::sleep_for(50ms);
    _exit(write(write_end.number(), &orphan, sizeof orphan) == sizeof orphan ? 0 : 1);
  }
  write_end.close();
  pid_t orphan = 0;
  ASSERT_EQ(read(read_end.number(), &orphan, sizeof orphan), static_cast<ssize_t>(sizeof orphan));
  waitpid(launcher, nullptr, 0);
  int status = 0;
  EXPECT_EQ(waitpid(orphan, &status, 0), orphan);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace frostpipe
