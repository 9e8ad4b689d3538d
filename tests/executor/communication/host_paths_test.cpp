// Oracle: the order of two ranks' actions; the test plays the second rank.
#include "executor/communication/host_paths.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/error.h"
#include "executor/communication/heartbeat.h"
#include "executor/communication/store_exchange.h"
#include "executor/elastic/addresses.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;

TEST(HostPaths, RankZeroEndsWhenTheOthersHaveReadWhy) {
  RankEnvironment first{.world_size = 2};
  const auto store = connect_store(first, /*may_host=*/true);
  first.master_port = store->getPort();
  RankEnvironment second = first;
  second.rank = 1;
  std::atomic<bool> has_read = false;
  const std::jthread reader([&] {
    const auto own_store = connect_store(second, /*may_host=*/false);
    publish_text(second, *own_store, "endpoint",
                 nlohmann::json{host_identity("127.0.0.1"), "b", "127.0.0.1", 1}.dump());
    publish_text(second, *own_store, "path_check", "rank 1 cannot reach rank 0");
    std::this_thread::sleep_for(300ms);
    has_read = gather_texts(second, *own_store, "path_check").at(1) == "rank 1 cannot reach rank 0";
    publish_text(second, *own_store, "left", "");
  });
  try {
    require_paths_between_hosts(first, "127.0.0.1", *store);
    ADD_FAILURE() << "rank 1 has said that there is no way";
  } catch (const RuntimeFailure& failure) {
    EXPECT_STREQ(failure.what(), "rank 1 cannot reach rank 0");
  }
  EXPECT_TRUE(has_read);
}

}  // namespace
}  // namespace frostpipe
