// Oracle: messages are read as they were written; the test plays the launcher.
#include "executor/elastic/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/process/control_channel.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

using Values = std::map<std::string, std::string>;

/// Sets variables of the environment while this object exists.
class SetVariables {
 public:
  explicit SetVariables(Values values) : values_(std::move(values)) {
    for (const auto& [name, value] : values_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~SetVariables() {
    for (const auto& [name, value] : values_) unsetenv(name.c_str());
  }
  SetVariables(const SetVariables&) = delete;
  SetVariables& operator=(const SetVariables&) = delete;

 private:
  Values values_;
};

const Values kSecondOfThree{{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"LOCAL_RANK", "1"}, {"MASTER_PORT", "29500"}};

TEST(Messages, AreReadAsTheyWereWritten) {
  EXPECT_EQ(messages::parse_stopped(messages::stopped(12)), 12);
  EXPECT_EQ(messages::parse_peer(messages::peer(3)), 3);
  EXPECT_EQ(messages::parse_end_after(messages::end_after(40)), 40);
  EXPECT_EQ(messages::parse_begun(messages::begun("")), "");
  EXPECT_EQ(messages::parse_begun(messages::begun("a run/step-00000150")), "a run/step-00000150");
  const std::optional<messages::Progress> progress =
      messages::parse_progress(messages::progress({.num_steps = 7, .longest_step_ns = 5'000'000'000}));
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->num_steps, 7);
  EXPECT_EQ(progress->longest_step_ns, 5'000'000'000);
  const std::optional<RendezvousInfo> info =
      messages::parse_start_round(messages::start_round({.generation = 2,
                                                         .self = {.rank = 1, .world_size = 2},
                                                         .logical_ranks = {0, 3},
                                                         .cause = "rank 1 \"fell\"",
                                                         .begun_from = "a run/step-00000150",
                                                         .lost_ns = 4'000'000'000,
                                                         .noticed_ns = 6'000'000'000}));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->generation, 2);
  EXPECT_EQ(info->self.rank, 1);
  EXPECT_EQ(info->self.world_size, 2);
  EXPECT_TRUE(info->self.watched_by_launcher);
  EXPECT_THAT(info->logical_ranks, ElementsAre(0, 3));
  EXPECT_EQ(info->cause, "rank 1 \"fell\"");
  EXPECT_EQ(info->begun_from, "a run/step-00000150");
  EXPECT_EQ(info->lost_ns, 4'000'000'000);
  EXPECT_EQ(info->noticed_ns, 6'000'000'000);
}

TEST(Messages, ARunThatHasNotBegunDiffersFromOneThatBeganWithoutACheckpoint) {
  for (const std::optional<std::string>& from : {std::optional<std::string>(), std::optional<std::string>("")}) {
    const std::optional<RendezvousInfo> info = messages::parse_start_round(
        messages::start_round({.self = {}, .logical_ranks = {}, .cause = "", .begun_from = from}));
    ASSERT_TRUE(info);
    EXPECT_EQ(info->begun_from, from);
  }
}

TEST(Messages, NoneIsTakenForAnother) {
  const std::string texts[] = {messages::kBeat,
                               messages::kDone,
                               messages::kEnd,
                               messages::kInterrupt,
                               messages::kInterrupted,
                               messages::stopped(0),
                               messages::peer(0),
                               messages::progress({}),
                               messages::end_after(0),
                               messages::begun(""),
                               messages::start_round({.self = {}, .logical_ranks = {}, .cause = ""})};
  for (const std::string& text : texts) {
    const int readers = (messages::parse_stopped(text) >= 0) + (messages::parse_peer(text) >= 0) +
                        messages::parse_progress(text).has_value() + messages::parse_end_after(text).has_value() +
                        messages::parse_begun(text).has_value() + messages::parse_start_round(text).has_value();
    const bool is_a_word = text == messages::kBeat || text == messages::kDone || text == messages::kEnd ||
                           text == messages::kInterrupt || text == messages::kInterrupted;
    EXPECT_EQ(readers, is_a_word ? 0 : 1) << text;
  }
}

TEST(Membership, IsNoneWithoutRank) { EXPECT_EQ(Membership::join(), nullptr); }

TEST(Membership, UnderAnotherLauncherThereIsOneRound) {
  const SetVariables variables(kSecondOfThree);
  const std::unique_ptr<Membership> membership = Membership::join();
  ASSERT_TRUE(membership);
  const std::optional<RendezvousInfo> info = membership->next_round();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->self.rank, 1);
  EXPECT_THAT(info->logical_ranks, ElementsAre(0, 1, 2));
  EXPECT_FALSE(membership->may_rendezvous_again());
  EXPECT_FALSE(membership->is_to_end());
}

TEST(Membership, WhereTorchrunsAgentEndsAllRanksThereIsNoRestart) {
  for (const auto& [agents, expected] :
       {std::pair{Values{}, 3}, std::pair{Values{{"TORCHELASTIC_RUN_ID", "job"}}, 0}}) {
    const SetVariables variables(kSecondOfThree), of_agent(agents);
    EXPECT_EQ(Membership::join("", /*max_restarts=*/3)->max_restarts(), expected);
  }
}

/// The launcher's end of the channel to a member in this process.
class LaunchedMember {
 public:
  LaunchedMember() {
    auto [ours, theirs] = ControlChannel::make_pair();
    launcher_ = std::make_unique<ControlChannel>(std::move(ours));
    const SetVariables variables(Values{{kControlVariable, std::to_string(dup(theirs.descriptor()))}});
    membership = Membership::join();
  }
  void say(const std::string& text) { EXPECT_TRUE(launcher_->send(text)) << text; }
  /// The next message that is not a heartbeat.
  std::string hear() {
    for (;;) {
      const std::optional<ControlText> said = launcher_->receive(10s);
      if (!said) return "nothing";
      if (said->text != messages::kBeat) return said->text;
    }
  }

 private:
  std::unique_ptr<ControlChannel> launcher_;  // destroyed last: a member whose launcher is gone ends its process

 public:
  std::unique_ptr<Membership> membership;
};

TEST(Membership, EndsAfterTheStepThatTheLauncherNames) {
  const SetVariables variables(Values{{"LOCAL_RANK", "5"}});
  LaunchedMember member;
  member.say(messages::start_round({.self = {.rank = 1, .world_size = 2}, .logical_ranks = {0, 1}, .cause = ""}));
  ASSERT_EQ(member.membership->next_round()->self.local_rank, 5);
  EXPECT_FALSE(member.membership->is_to_end());
  member.say(messages::kInterrupt);
  const std::optional<messages::Progress> progress = messages::parse_progress(member.hear());
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->num_steps, 1);
  member.say(messages::end_after(2));
  EXPECT_FALSE(member.membership->is_to_end()) << "another rank has begun a second step";
  EXPECT_TRUE(member.membership->is_to_end());
  member.membership->interrupted();
  EXPECT_EQ(member.hear(), messages::kInterrupted);
  member.membership.reset();
  EXPECT_EQ(member.hear(), messages::kDone);
}

TEST(Membership, ASpareThatIsNotNeededIsNotified) {
  LaunchedMember member;
  member.say(messages::kEnd);
  EXPECT_FALSE(member.membership->next_round());
}

}  // namespace
}  // namespace frostpipe
