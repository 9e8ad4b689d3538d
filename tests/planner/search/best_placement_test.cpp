#include "planner/search/best_placement.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "base/error.h"
#include "tests/planner/two_blocks.h"

namespace frostpipe {
namespace {

/// A pipeline of two ranks is sought on three nodes, of which the first two have fast links.
std::variant<Phase, Infeasible> pipeline_on(const std::string& first, const std::string& second,
                                            const std::string& third) {
  Cluster cluster = test::free_cluster(3);
  cluster.devices[0] = {.type = first, .node = 0};
  cluster.devices[1] = {.type = second, .node = 1};
  cluster.devices[2] = {.type = third, .node = 2};
  cluster.inter_node.point_to_point = {20'000, 100'000'000};
  cluster.node_pairs.push_back({0, 1, {.point_to_point = {2'000, 1'000'000'000}, .collective = {}}});
  PlanOptions options = test::options_for(PlanMethod::static_pipeline);
  options.data_parallel_size = 1;
  return best_phase({test::two_blocks(), cluster, options}, 2, 0);
}

/// "cpu" alone was measured. Placements are in the order of their devices' names, so that one with the other device is
/// first, or one without it.
TEST(SearchPlacements, ThoseOnDevicesThatWereNotMeasuredAreLeftOut) {
  for (const std::string other : {"another", "other"}) {
    const auto found = pipeline_on("cpu", "cpu", other);
    ASSERT_TRUE(std::holds_alternative<Phase>(found)) << other;
    const ParallelLayout& layout = std::get<Phase>(found).layout;
    for (int rank = 0; rank < 2; ++rank) EXPECT_LT(rank_of(layout, rank, 0), 2) << other;
  }
  EXPECT_THROW(pipeline_on("cpu", "other", "other"), InvalidInput) << "without any placement that was measured";
}

}  // namespace
}  // namespace frostpipe
