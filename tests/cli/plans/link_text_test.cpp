#include "cli/plans/link_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string squeezed(const std::string& text) { return std::regex_replace(text, std::regex(" +"), " "); }

/// Four nodes; the link between 0 and 2 carries a MiB per ms, the others a tenth of that; sums take twice as long.
TEST(PlacementText, ShowsNodesAndTheTimesBetweenThem) {
  constexpr std::int64_t kMebibyteEachMillisecond = std::int64_t{1000} << 20;
  Cluster cluster = test::free_cluster(4);
  for (int rank = 0; rank < 4; ++rank) cluster.devices[rank].node = rank;
  const auto links = [](std::int64_t bandwidth) {
    return LinkClass{.point_to_point = {0, bandwidth}, .collective = {0, bandwidth / 2}};
  };
  cluster.inter_node = links(kMebibyteEachMillisecond / 10);
  Phase phase;
  phase.layout = {.pipeline_parallel_size = 2, .data_parallel_size = 2, .placement = {0, 2, 1, 3}};
  EXPECT_THAT(placement_text(phase, cluster), IsEmpty()) << "nothing to see";
  cluster.node_pairs = {{0, 2, links(kMebibyteEachMillisecond)}};
  const std::string text = squeezed(placement_text(phase, cluster));
  EXPECT_THAT(text, HasSubstr("0 0 2 10.0 2.000\n"));
  EXPECT_THAT(text, HasSubstr("1 1 3 - 20.0\n"));
}

}  // namespace
}  // namespace frostpipe
