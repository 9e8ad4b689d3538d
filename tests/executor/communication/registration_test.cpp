// Oracle: the message that each rank is given.
#include "executor/communication/arrival.h"

#include <gtest/gtest.h>

#include <future>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "base/error.h"
#include "executor/communication/heartbeat.h"
#include "executor/elastic/addresses.h"

namespace frostpipe {
namespace {

/// The result of ranks with these messages, each in its own thread: "shares", "" or the thrown error.
std::vector<std::string> meet(const std::vector<Arrival>& arrivals) {
  RankEnvironment first{.world_size = static_cast<int>(arrivals.size()), .is_on_one_host = true};
  const auto hosted = connect_store(first, /*may_host=*/true);
  first.master_port = hosted->getPort();
  std::vector<std::future<std::string>> ranks;
  for (int rank = 0; rank < first.world_size; ++rank) {
    RankEnvironment self = first;
    self.rank = rank;
    ranks.push_back(std::async(std::launch::async, [self, &own = arrivals[rank]]() mutable -> std::string {
      const auto store = connect_store(self, /*may_host=*/false);
      try {
        self.attempt = find_attempt(self, *store);
        return meet_at_store(self, *store, own) ? "shares" : "";
      } catch (const InvalidInput& error) {
        return error.what();
      }
    }));
  }
  std::vector<std::string> said;
  for (auto& rank : ranks) said.push_back(rank.get());
  return said;
}

using Said = std::vector<std::string>;

TEST(MeetAtStore, AllHearWhetherSomebodySharesADevice) {
  EXPECT_EQ(meet({{}, {}, {}}), Said(3, ""));
  EXPECT_EQ(meet({{}, {.shares_device = true}, {}}), Said(3, "shares"));
}

TEST(MeetAtStore, AllFailWithTheTroubleOfTheLowestRank) {
  EXPECT_EQ(meet({{}, {.trouble = "host b: lacks x"}, {.trouble = "host c: lacks x"}}), Said(3, "host b: lacks x"));
  EXPECT_EQ(meet({{.trouble = "host a: lacks x"}, {}}), Said(2, "host a: lacks x"));
}

/// Ranks of a later round have other numbers, so an earlier round's message does not matter.
TEST(MeetAtStore, NobodyIsWelcomedToALaterRound) {
  RankEnvironment self{.world_size = 2, .is_on_one_host = true};
  const auto store = connect_store(self, /*may_host=*/true);
  self.master_port = store->getPort();
  store->set("hello/1", std::vector<std::uint8_t>{'w'});
  RankEnvironment other = self;
  other.rank = 1;
  auto meets = std::async(std::launch::async, [other] {
    return meet_again_at_store(other, *connect_store(other, /*may_host=*/false), {}, std::chrono::seconds(20));
  });
  EXPECT_FALSE(meet_again_at_store(self, *store, {}, std::chrono::seconds(20)));
  EXPECT_FALSE(meets.get());
  EXPECT_FALSE(store->check({"welcome/w"}));
}

TEST(MeetInTrouble, ARankAloneSaysItAtOnce) {
  const auto said = [](const RankEnvironment& self) -> std::string {
    try {
      meet_in_trouble(self, "lacks x");
    } catch (const InvalidInput& error) {
      return error.what();
    }
  };
  EXPECT_EQ(said({.world_size = 1, .is_on_one_host = true}), "lacks x");
  EXPECT_EQ(said({.world_size = 1}), "host " + host_name() + ": lacks x");
}

}  // namespace
}  // namespace frostpipe
