// Oracle: who is left, and who is who, by hand. The processes are this program again, each playing a part.
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

#include "executor/elastic/control_channel.h"
#include "executor/elastic/membership.h"
#include "profiles/files.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;

constexpr const char* kPart = "FROSTPIPE_LAUNCH_TEST";
constexpr const char* kDiary = "FROSTPIPE_LAUNCH_DIARY";

/// One line in the test's diary, whole.
void note(const std::string& line) { std::ofstream(std::getenv(kDiary), std::ios::app) << line + "\n" << std::flush; }

std::string describe(const Formation& formation) {
  std::string text = std::to_string(formation.generation) + ": " + std::to_string(formation.self.rank) + "/" +
                     std::to_string(formation.self.world_size) + " seats";
  for (const int seat : formation.seats) text += " " + std::to_string(seat);
  return text;
}

/// Forms, writes down where it stands, and ends; `lose` decides whether a forming is lost for this process: it then
/// stops, and forms anew.
int take_part(Membership& membership, const std::function<bool(const Formation&)>& lose) {
  while (const std::optional<Formation> formation = membership.form()) {
    note(describe(*formation));
    if (!lose(*formation)) return 0;
    membership.stop(formation->generation);
  }
  note("not needed");
  return 0;
}

const std::map<std::string, std::function<int(Membership&)>>& parts() {
  static const std::map<std::string, std::function<int(Membership&)>> all{
      {"all well",
       [](Membership& membership) { return take_part(membership, [](const Formation&) { return false; }); }},
      {"rank 1 stops on its way out",
       [](Membership& membership) { return take_part(membership, [](const Formation&) { return false; }); }},
      {"seat 1 is killed",
       [](Membership& membership) {
         return take_part(membership, [](const Formation& formation) {
           if (formation.generation > 0) return false;
           if (formation.self.rank == 1) raise(SIGKILL);
           return true;
         });
       }},
      {"seat 1 is silent",
       [](Membership& membership) {
         return take_part(membership, [](const Formation& formation) {
           if (formation.generation > 0) return false;
           if (formation.self.rank == 1) {
             std::this_thread::sleep_for(200ms);  // a first heartbeat
             raise(SIGSTOP);
           }
           return true;
         });
       }},
      {"rank 1 stops before its first heartbeat",
       [](Membership& membership) {
         return take_part(membership, [](const Formation& formation) { return formation.generation == 0; });
       }},
      {"every forming loses its last rank",
       [](Membership& membership) {
         return take_part(membership, [](const Formation& formation) {
           if (formation.self.rank + 1 == formation.self.world_size) raise(SIGKILL);
           return true;
         });
       }},
      {"a signal comes within steps",
       [](Membership& membership) {
         const int rank = membership.form()->self.rank;
         int step = 0;
         for (; !membership.is_to_end(); ++step) {
           if (rank == 0 && step == 20) kill(getppid(), SIGINT);
           std::this_thread::sleep_for(1ms + 2ms * rank);
         }
         note("ends before step " + std::to_string(step));
         membership.interrupted();
         return 0;
       }},
      {"a rank is lost after the signal",
       [](Membership& membership) {
         while (const std::optional<Formation> formation = membership.form()) {
           const auto is_lost = [] { return read_text_file(std::getenv(kDiary)).find("lost") != std::string::npos; };
           for (int step = 0; !membership.is_to_end(); ++step) {
             if (formation->generation == 0 && formation->self.rank == 1 && step == 5) {
               kill(getppid(), SIGTERM);
               note("lost");
               raise(SIGKILL);
             }
             std::this_thread::sleep_for(2ms);
             if (formation->generation > 0 || !is_lost()) continue;
             membership.stop(0);  // as one whose connection breaks
             break;
           }
           if (formation->generation == 0) continue;
           note(describe(*formation) + " ends");
           membership.interrupted();
           return 0;
         }
         return 1;
       }},
      {"two signals come within a step that has no end",
       [](Membership& membership) {
         const bool sends = membership.form()->self.rank == 0;
         membership.is_to_end();
         for (;; std::this_thread::sleep_for(700ms)) {
           if (sends) kill(getppid(), SIGINT);
         }
         return 0;
       }},
      {"a signal comes before any step",
       [](Membership& membership) {
         if (membership.form()->self.rank == 1) kill(getppid(), SIGTERM);
         for (;;) std::this_thread::sleep_for(1s);
         return 0;
       }},
      {"a signal comes to all",
       [](Membership& membership) {
         membership.form();
         raise(SIGINT);
         raise(SIGTERM);
         return 0;
       }},
      {"rank 1 fails",
       [](Membership& membership) {
         const std::optional<Formation> formation = membership.form();
         if (formation && formation->self.rank == 1) return 7;
         for (;;) std::this_thread::sleep_for(1s);
       }},
  };
  return all;
}

/// Before gtest's main: in a process that a launcher of these tests has started.
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
  EXPECT_THAT(lines(), ElementsAre("0: 0/2 seats 0 1", "0: 1/2 seats 0 1", "not needed"));
  EXPECT_EQ(said_, "");
}

TEST_F(LaunchTest, ASpareTakesTheLostRanksPlace) {
  EXPECT_EQ(launch("seat 1 is killed", 3, 1, 1), 0) << said_;
  EXPECT_THAT(lines(), ElementsAre("0: 0/3 seats 0 1 2", "0: 1/3 seats 0 1 2", "0: 2/3 seats 0 1 2",
                                   "1: 0/3 seats 0 1 2", "1: 1/3 seats 0 1 2", "1: 2/3 seats 0 1 2"));
  EXPECT_THAT(said_, testing::MatchesRegex("frostpipe: rank 1 \\(process [0-9]+\\) was killed by signal 9 "
                                           "\\(Killed\\); a spare takes the place \\(restart 1 of 1\\)\n"));
}

TEST_F(LaunchTest, WithoutASpareFewerRanksGoOn) {
  EXPECT_EQ(launch("seat 1 is killed", 3, 0, 2), 0) << said_;
  EXPECT_THAT(lines(), ElementsAre("0: 0/3 seats 0 1 2", "0: 1/3 seats 0 1 2", "0: 2/3 seats 0 1 2", "1: 0/2 seats 0 2",
                                   "1: 1/2 seats 0 2"));
  EXPECT_THAT(said_, HasSubstr("; 2 ranks go on (restart 1 of 2)"));
}

TEST_F(LaunchTest, WithoutRestartsALossEndsTheJob) {
  EXPECT_EQ(launch("seat 1 is killed", 3, 0, 0), 1);
  EXPECT_THAT(said_, HasSubstr("was killed by signal 9 (Killed); ended the other ranks"));
}

TEST_F(LaunchTest, RestartsAreCounted) {
  EXPECT_EQ(launch("every forming loses its last rank", 4, 0, 2), 1);
  EXPECT_THAT(said_, HasSubstr("3 ranks go on (restart 1 of 2)"));
  EXPECT_THAT(said_, HasSubstr("2 ranks go on (restart 2 of 2)"));
  EXPECT_THAT(said_, HasSubstr("ended the other ranks"));
}

TEST_F(LaunchTest, ASilentRankIsLost) {
  EXPECT_EQ(launch("seat 1 is silent", 2, 1, 1), 0) << said_;
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

TEST(ControlChannel, KeepsTextsApartAndNoticesTheEnd) {
  auto [ours, theirs] = ControlChannel::make_pair();
  EXPECT_TRUE(ours.send("one"));
  EXPECT_TRUE(ours.send("two"));
  EXPECT_EQ(theirs.receive(0ms)->text, "one");
  EXPECT_EQ(theirs.receive(0ms)->text, "two");
  EXPECT_FALSE(theirs.receive(1ms));
  EXPECT_FALSE(theirs.closed());
  { const ControlChannel gone = std::move(ours); }
  EXPECT_FALSE(theirs.receive(1ms));
  EXPECT_TRUE(theirs.closed());
  EXPECT_FALSE(theirs.send("three"));
}

TEST(ControlChannel, NeverBlocksAWriterWhomNobodyReads) {
  auto [ours, theirs] = ControlChannel::make_pair();
  int sent = 0;
  while (sent < 1'000'000 && ours.send("beat")) ++sent;
  EXPECT_GT(sent, 10);
  EXPECT_LT(sent, 1'000'000);
  EXPECT_FALSE(ours.closed());
}

TEST_F(LaunchTest, ASignalEndsAllRanksBeforeTheSameStepHoweverFarEachIs) {
  EXPECT_EQ(launch("a signal comes within steps", 3, 0, 0), 128 + SIGINT);
  ASSERT_EQ(lines().size(), 3u);
  EXPECT_EQ(lines().front(), lines().back());
  EXPECT_THAT(said_, HasSubstr("signal 2 (Interrupt): ends with a checkpoint; once more: at once"));
}

TEST_F(LaunchTest, WhoeverWaitsToEndIsLetGoWhereARankIsLostAndEndsInTheNextForming) {
  EXPECT_EQ(launch("a rank is lost after the signal", 2, 1, 1), 128 + SIGTERM) << said_;
  EXPECT_THAT(lines(), ElementsAre("1: 0/2 seats 0 1 ends", "1: 1/2 seats 0 1 ends", "lost"));
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
