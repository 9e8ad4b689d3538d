// Oracle: cases by hand.
#include "executor/elastic/seats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace frostpipe {
namespace {

using testing::ElementsAre;

TEST(Seats, RanksAreNumberedAnewAndTheirSeatsStay) {
  const std::vector<int> seats{0, 2, 3}, all{0, 1, 2, 3};
  Phase phase{.layout = {.pipeline_parallel_size = 3}, .partition = {{0, 1}, {1, 2}, {2, 3}}};
  phase.predicted.peak_memory_bytes = {10, 20, 30};
  const Phase reported = seated(phase, seats, 4);
  EXPECT_THAT(reported.layout.placement, ElementsAre(0, 2, 3));
  EXPECT_THAT(reported.predicted.peak_memory_bytes, ElementsAre(10, 0, 20, 30));
  EXPECT_THAT(ranked(reported, seats, 4)->layout.placement, ElementsAre(0, 1, 2));
  EXPECT_EQ(ranked(reported, std::vector<int>{0, 1, 3}, 4), std::nullopt) << "seat 2 is empty";
  EXPECT_EQ(seated(phase, all, 4), phase);
  EXPECT_EQ(ranked(phase, all, 4), phase);
  Cluster cluster;
  for (const Bytes limit : {1, 2, 3, 4}) cluster.devices.push_back({.memory_limit_bytes = limit});
  EXPECT_EQ(remaining(cluster, seats).devices[1].memory_limit_bytes, 3);
}

}  // namespace
}  // namespace frostpipe
