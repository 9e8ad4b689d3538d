// Oracle: the entries that the test puts into a store of this process, and the expected message.
#include "executor/communication/store_exchange.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "base/error.h"
#include "executor/communication/heartbeat.h"
#include "executor/elastic/addresses.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;

RankEnvironment rank_of_four(int rank) { return {.rank = rank, .world_size = 4, .attempt = 2}; }

TEST(StoreExchange, GivesTheTextsOfAllByRank) {
  const auto store = connect_store(rank_of_four(0), /*may_host=*/true);
  for (const int rank : {2, 0, 3, 1}) publish_text(rank_of_four(rank), *store, "letter", std::string(rank, 'x'));
  EXPECT_EQ(gather_texts(rank_of_four(1), *store, "letter"), (std::vector<std::string>{"", "x", "xx", "xxx"}));
}

TEST(StoreExchange, NamesTheRanksThatHaveNotCome) {
  const auto store = connect_store(rank_of_four(0), /*may_host=*/true);
  const auto said = [&] {
    try {
      gather_texts(rank_of_four(0), *store, "arrived", 200ms);
    } catch (const RuntimeFailure& failure) {
      return std::string(failure.what());
    }
    return std::string("none");
  };
  const std::string begin = "rank 0 on host " + host_name() + " has waited 0.2 s for ";
  for (const int rank : {0, 2}) publish_text(rank_of_four(rank), *store, "arrived", "");
  EXPECT_EQ(said().find(begin + "ranks 1, 3 of 4. Have they been started"), 0) << said();
  publish_text(rank_of_four(1), *store, "arrived", "");
  EXPECT_EQ(said().find(begin + "rank 3 of 4. "), 0) << said();
  publish_text(rank_of_four(3), *store, "arrived", "");
  EXPECT_EQ(said(), "none") << "the store can be asked after a wait that was in vain";
}

}  // namespace
}  // namespace frostpipe
