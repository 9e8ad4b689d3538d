// Oracle: the messages by construction.
#include "executor/communication/registration.h"

#include <gtest/gtest.h>

#include <future>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "base/error.h"
#include "executor/communication/heartbeat.h"
#include "executor/elastic/addresses.h"

namespace frostpipe {
namespace {

/// The results of ranks that register these failures, each in its own thread: "" or the thrown error.
std::vector<std::string> results_of(const std::vector<std::string>& failures) {
  RankEnvironment first{.world_size = static_cast<int>(failures.size()), .is_on_one_host = true};
  const auto hosted = connect_store(first, /*may_host=*/true);
  first.master_port = hosted->getPort();
  std::vector<std::future<std::string>> ranks;
  for (int rank = 0; rank < first.world_size; ++rank) {
    RankEnvironment self = first;
    self.rank = rank;
    ranks.push_back(std::async(std::launch::async, [self, &failure = failures[rank]]() mutable -> std::string {
      const auto store = connect_store(self, /*may_host=*/false);
      try {
        self.attempt = find_attempt(self, *store);
        register_at_store(self, *store, failure);
        return "";
      } catch (const InvalidInput& error) {
        return error.what();
      }
    }));
  }
  std::vector<std::string> results;
  for (auto& rank : ranks) results.push_back(rank.get());
  return results;
}

using Results = std::vector<std::string>;

TEST(RegisterAtStore, RanksWithoutAFailureGoOn) { EXPECT_EQ(results_of({"", "", ""}), Results(3, "")); }

TEST(RegisterAtStore, AllRanksThrowTheFailureOfTheLowestRank) {
  EXPECT_EQ(results_of({"", "host b: lacks x", "host c: lacks x"}), Results(3, "host b: lacks x"));
  EXPECT_EQ(results_of({"host a: lacks x", ""}), Results(2, "host a: lacks x"));
}

/// Ranks of a later round have other numbers, so an earlier round's message does not matter.
TEST(RegisterAtStore, RankZeroAnswersNoRequestsInALaterRound) {
  RankEnvironment self{.world_size = 2, .is_on_one_host = true};
  const auto store = connect_store(self, /*may_host=*/true);
  self.master_port = store->getPort();
  store->set("attempt_request/1", std::vector<std::uint8_t>{'w'});
  RankEnvironment other = self;
  other.rank = 1;
  auto others = std::async(std::launch::async, [other] {
    register_again_at_store(other, *connect_store(other, /*may_host=*/false), std::chrono::seconds(20));
  });
  register_again_at_store(self, *store, std::chrono::seconds(20));
  others.get();
  EXPECT_FALSE(store->check({"attempt/w"}));
}

TEST(RegisterFailure, TheOnlyRankOfAJobThrowsAtOnce) {
  const auto thrown_by = [](const RankEnvironment& self) -> std::string {
    try {
      register_failure(self, "lacks x");
    } catch (const InvalidInput& error) {
      return error.what();
    }
  };
  EXPECT_EQ(thrown_by({.world_size = 1, .is_on_one_host = true}), "lacks x");
  EXPECT_EQ(thrown_by({.world_size = 1}), "host " + host_name() + ": lacks x");
}

}  // namespace
}  // namespace frostpipe
