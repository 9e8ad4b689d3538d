// Oracle: the remaining processes and their ranks, by hand. The processes are copies of this program with different
// roles.
#include "executor/elastic/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "base/files.h"
#include "base/process/control_channel.h"
#include "executor/elastic/membership.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;

constexpr const char* kPart = "FROSTPIPE_LAUNCH_TEST";
constexpr const char* kDiary = "FROSTPIPE_LAUNCH_DIARY";

/// Appends one whole line to the test's record.
void note(const std::string& line) { std::ofstream(std::getenv(kDiary), std::ios::app) << line + "\n" << std::flush; }

std::string describe(const RendezvousInfo& info) {
  std::string text = std::to_string(info.generation) + ": " + std::to_string(info.self.rank) + "/" +
                     std::to_string(info.self.world_size) + " logical ranks";
  for (const int logical_rank : info.logical_ranks) text += " " + std::to_string(logical_rank);
  return text;
}

/// Joins a round, records its rank there, and ends; `lose` decides whether a round is lost for this process: it then
/// stops, and waits for the next one.
int take_part(Membership& membership, const std::function<bool(const RendezvousInfo&)>& lose) {
  while (const std::optional<RendezvousInfo> info = membership.next_round()) {
    note(describe(*info));
    if (!lose(*info)) return 0;
    membership.stop(info->generation);
  }
  note("not needed");
  return 0;
}

int take_part_in_one_round(Membership& membership) {
  return take_part(membership, [](const RendezvousInfo&) { return false; });
}

int take_part_in_two_rounds(Membership& membership) {
  return take_part(membership, [](const RendezvousInfo& info) { return info.generation == 0; });
}

int be_killed_on_logical_rank_1(Membership& membership) {
  return take_part(membership, [](const RendezvousInfo& info) {
    if (info.generation > 0) return false;
    if (info.self.rank == 1) raise(SIGKILL);
    return true;
  });
}

int be_silent_on_logical_rank_1(Membership& membership) {
  return take_part(membership, [](const RendezvousInfo& info) {
    if (info.generation > 0) return false;
    if (info.self.rank == 1) {
      std::this_thread::sleep_for(200ms);  // a first heartbeat
      raise(SIGSTOP);
    }
    return true;
  });
}

int be_killed_as_last_rank(Membership& membership) {
  return take_part(membership, [](const RendezvousInfo& info) {
    if (info.self.rank + 1 == info.self.world_size) raise(SIGKILL);
    return true;
  });
}

int be_killed_once_the_run_has_begun(Membership& membership) {
  const std::optional<RendezvousInfo> info = membership.next_round();
  note(std::to_string(info->generation) + ": begun from " + info->begun_from.value_or("nothing yet"));
  if (info->generation == 2) return 0;
  if (info->generation == 1) membership.begun("another run");
  std::this_thread::sleep_for(200ms);  // until the launcher knows
  raise(SIGKILL);
  return 0;
}

int signal_within_steps(Membership& membership) {
  const int rank = membership.next_round()->self.rank;
  int step = 0;
  for (; !membership.is_to_end(); ++step) {
    if (rank == 0 && step == 20) kill(getppid(), SIGINT);
    std::this_thread::sleep_for(1ms + 2ms * rank);
  }
  note("ends before step " + std::to_string(step));
  membership.interrupted();
  return 0;
}

int lose_a_rank_after_the_signal(Membership& membership) {
  while (const std::optional<RendezvousInfo> info = membership.next_round()) {
    const auto is_lost = [] { return read_text_file(std::getenv(kDiary)).find("lost") != std::string::npos; };
    for (int step = 0; !membership.is_to_end(); ++step) {
      if (info->generation == 0 && info->self.rank == 1 && step == 5) {
        kill(getppid(), SIGTERM);
        note("lost");
        raise(SIGKILL);
      }
      std::this_thread::sleep_for(2ms);
      if (info->generation > 0 || !is_lost()) continue;
      membership.stop(0);  // as if its connection broke
      break;
    }
    if (info->generation == 0) continue;
    note(describe(*info) + " ends");
    membership.interrupted();
    return 0;
  }
  return 1;
}

int signal_twice_within_an_endless_step(Membership& membership) {
  const bool sends = membership.next_round()->self.rank == 0;
  membership.is_to_end();
  for (;; std::this_thread::sleep_for(700ms)) {
    if (sends) kill(getppid(), SIGINT);
  }
  return 0;
}

int signal_before_any_step(Membership& membership) {
  if (membership.next_round()->self.rank == 1) kill(getppid(), SIGTERM);
  for (;;) std::this_thread::sleep_for(1s);
  return 0;
}

int be_signalled(Membership& membership) {
  membership.next_round();
  raise(SIGINT);
  raise(SIGTERM);
  raise(SIGHUP);
  return 0;
}

int fail_on_rank_1(Membership& membership) {
  const std::optional<RendezvousInfo> info = membership.next_round();
  if (info && info->self.rank == 1) return 7;
  for (;;) std::this_thread::sleep_for(1s);
}

const std::map<std::string, int (*)(Membership&)>& parts() {
  static const std::map<std::string, int (*)(Membership&)> all{
      {"all well", take_part_in_one_round},
      {"rank 1 stops on its way out", take_part_in_one_round},
      {"rank 1 stops before its first heartbeat", take_part_in_two_rounds},
      {"logical rank 1 is killed", be_killed_on_logical_rank_1},
      {"logical rank 1 is silent", be_silent_on_logical_rank_1},
      {"every round loses its last rank", be_killed_as_last_rank},
      {"the only rank is killed before and after the run has begun", be_killed_once_the_run_has_begun},
      {"a signal comes within steps", signal_within_steps},
      {"a rank is lost after the signal", lose_a_rank_after_the_signal},
      {"two signals come within a step that has no end", signal_twice_within_an_endless_step},
      {"a signal comes before any step", signal_before_any_step},
      {"a signal comes to all", be_signalled},
      {"rank 1 fails", fail_on_rank_1},
  };
  return all;
}

/// Runs before gtest's main, in a process that a launcher of these tests has started.
const bool plays_a_part = [] {
  if (!std::getenv(kPart) || !std::getenv(kControlVariable)) return false;
  const auto is_rank_1_of = [](const char* part) {
    return std::getenv(kPart) == std::string(part) && std::getenv("RANK") == std::string("1");
  };
  if (is_rank_1_of("rank 1 stops before its first heartbeat")) raise(SIGSTOP);
  int code = 0;
  {
    const std::unique_ptr<Membership> membership = Membership::join();
    code = parts().at(std::getenv(kPart))(*membership);
  }
  if (is_rank_1_of("rank 1 stops on its way out")) raise(SIGSTOP);
  _exit(code);
}();

class LaunchTest : public testing::Test {
 protected:
  void SetUp() override {
    diary_ = std::filesystem::temp_directory_path() / ("frostpipe_diary_" + std::to_string(getpid()));
    std::filesystem::remove(diary_);
    std::ofstream{diary_};
    setenv(kDiary, diary_.c_str(), 1);
  }
  void TearDown() override {
    std::filesystem::remove(diary_);
    unsetenv(kPart);
  }
  int launch(const char* part, int num_ranks, int num_spares, int max_restarts) {
    setenv(kPart, part, 1);
    testing::internal::CaptureStderr();
    const int code = launch_local_ranks({.command = {std::filesystem::read_symlink("/proc/self/exe")},
                                         .num_ranks = num_ranks,
                                         .num_spares = num_spares,
                                         .max_restarts = max_restarts,
                                         .ends_with_checkpoint = true});
    said_ = testing::internal::GetCapturedStderr();
    return code;
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    std::ifstream file(diary_);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    return lines;
  }
  std::filesystem::path diary_;
  std::string said_;
};

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(LaunchTest, SparesThatAreNotNeededEndWithTheJob) {
  EXPECT_EQ(launch("all well", 2, 1, 1), 0) << said_;
  EXPECT_THAT(lines(), ElementsAre("0: 0/2 logical ranks 0 1", "0: 1/2 logical ranks 0 1", "not needed"));
  EXPECT_EQ(said_, "");
}

TEST_F(LaunchTest, ASpareTakesTheLostRanksPlace) {
  EXPECT_EQ(launch("logical rank 1 is killed", 3, 1, 1), 0) << said_;
  EXPECT_THAT(lines(),
              ElementsAre("0: 0/3 logical ranks 0 1 2", "0: 1/3 logical ranks 0 1 2", "0: 2/3 logical ranks 0 1 2",
                          "1: 0/3 logical ranks 0 1 2", "1: 1/3 logical ranks 0 1 2", "1: 2/3 logical ranks 0 1 2"));
  EXPECT_THAT(said_, testing::MatchesRegex("frostpipe: rank 1 \\(process [0-9]+\\) was killed by signal 9 "
                                           "\\(Killed\\); a spare takes the place \\(restart 1 of 1\\)\n"));
}

TEST_F(LaunchTest, WithoutASpareFewerRanksGoOn) {
  EXPECT_EQ(launch("logical rank 1 is killed", 3, 0, 2), 0) << said_;
  EXPECT_THAT(lines(),
              ElementsAre("0: 0/3 logical ranks 0 1 2", "0: 1/3 logical ranks 0 1 2", "0: 2/3 logical ranks 0 1 2",
                          "1: 0/2 logical ranks 0 2", "1: 1/2 logical ranks 0 2"));
  EXPECT_THAT(said_, HasSubstr("; 2 ranks go on (restart 1 of 2)"));
}

TEST_F(LaunchTest, WithoutRestartsALossEndsTheJob) {
  EXPECT_EQ(launch("logical rank 1 is killed", 3, 0, 0), 1);
  EXPECT_THAT(said_, HasSubstr("was killed by signal 9 (Killed); ended the other ranks"));
}

TEST_F(LaunchTest, ASpareLearnsWhetherTheRunHasBegunEvenIfNoOtherRankIsLeft) {
  EXPECT_EQ(launch("the only rank is killed before and after the run has begun", 1, 2, 2), 0) << said_;
  EXPECT_THAT(lines(),
              ElementsAre("0: begun from nothing yet", "1: begun from nothing yet", "2: begun from another run"));
}

TEST_F(LaunchTest, RestartsAreCounted) {
  EXPECT_EQ(launch("every round loses its last rank", 4, 0, 2), 1);
  EXPECT_THAT(said_, HasSubstr("3 ranks go on (restart 1 of 2)"));
  EXPECT_THAT(said_, HasSubstr("2 ranks go on (restart 2 of 2)"));
  EXPECT_THAT(said_, HasSubstr("ended the other ranks"));
}

TEST_F(LaunchTest, ASilentRankIsLost) {
  EXPECT_EQ(launch("logical rank 1 is silent", 2, 1, 1), 0) << said_;
  EXPECT_THAT(said_, HasSubstr("has sent no heartbeat for 10 s: it is stopped or stuck; a spare takes the place"));
}

TEST_F(LaunchTest, ARankThatIsStoppedBeforeItsFirstHeartbeatIsLostAsSoonAsAnyOther) {
  EXPECT_EQ(launch("rank 1 stops before its first heartbeat", 2, 1, 1), 0) << said_;
  EXPECT_THAT(said_, HasSubstr("has sent no heartbeat for 10 s: it is stopped or stuck; a spare takes the place"));
}

TEST_F(LaunchTest, ARankThatStopsOnItsWayOutIsNotWaitedForWithoutEnd) {
  EXPECT_EQ(launch("rank 1 stops on its way out", 2, 1, 1), 1);
  EXPECT_THAT(said_,
              testing::MatchesRegex("frostpipe: rank 1 \\(process [0-9]+\\) has sent no heartbeat for 10 s: it is "
                                    "stopped or stuck while the others were ending; ended the other ranks\n"));
}

TEST_F(LaunchTest, ARankThatFailsByItselfEndsTheJob) {
  EXPECT_EQ(launch("rank 1 fails", 2, 1, 5), 1);
  EXPECT_THAT(said_, testing::MatchesRegex(
                         "frostpipe: rank 1 \\(process [0-9]+\\) ended with exit code 7; ended the other ranks\n"));
}

TEST_F(LaunchTest, ASignalEndsAllRanksBeforeTheSameStepHoweverFarEachIs) {
  EXPECT_EQ(launch("a signal comes within steps", 3, 0, 0), 128 + SIGINT);
  ASSERT_EQ(lines().size(), 3u);
  EXPECT_EQ(lines().front(), lines().back());
  EXPECT_THAT(said_, HasSubstr("signal 2 (Interrupt): ends with a checkpoint; once more: at once"));
}

TEST_F(LaunchTest, ARankThatWaitsToEndIsReleasedAtALossAndEndsInTheNextRound) {
  EXPECT_EQ(launch("a rank is lost after the signal", 2, 1, 1), 128 + SIGTERM) << said_;
  EXPECT_THAT(lines(), ElementsAre("1: 0/2 logical ranks 0 1 ends", "1: 1/2 logical ranks 0 1 ends", "lost"));
}

TEST_F(LaunchTest, ASecondSignalEndsAtOnce) {
  EXPECT_EQ(launch("two signals come within a step that has no end", 2, 0, 0), 128 + SIGINT);
  EXPECT_THAT(said_, HasSubstr("frostpipe: stopped by signal 2\n"));
}

TEST_F(LaunchTest, ASignalBeforeTheFirstStepEndsAtOnce) {
  EXPECT_EQ(launch("a signal comes before any step", 2, 0, 0), 128 + SIGTERM);
  EXPECT_THAT(said_, HasSubstr("frostpipe: stopped by signal 15 before the first step"));
}

TEST_F(LaunchTest, RanksLeaveSignalsToTheLauncher) { EXPECT_EQ(launch("a signal comes to all", 2, 0, 0), 0); }

}  // namespace
}  // namespace frostpipe
