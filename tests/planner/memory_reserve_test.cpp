#include "planner/memory_reserve.h"

#include <gtest/gtest.h>

#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

TEST(MemoryReserve, LowersEveryLimitByItsShare) {
  Cluster cluster = test::free_cluster(2, 1001);
  cluster.devices.push_back({});
  const Cluster reserved = with_memory_reserve(cluster, 0.5);
  EXPECT_EQ(reserved.devices[0].memory_limit_bytes, 500) << "whole bytes";
  EXPECT_EQ(reserved.devices[1].memory_limit_bytes, 500);
  EXPECT_EQ(reserved.devices[2].memory_limit_bytes, std::nullopt) << "no limit has no share";
  EXPECT_EQ(with_memory_reserve(cluster, 0), cluster);
}

}  // namespace
}  // namespace frostpipe
