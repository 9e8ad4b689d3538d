#include "cli/profiling/profile_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/plan/examples.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The text with single blanks between cells, whatever the widths of the columns.
std::string squeezed(const std::string& text) { return std::regex_replace(text, std::regex(" +"), " "); }

Profile millisecond_profile() {
  Profile profile = test::synthetic_profile(1, {{.forward_ns = 1'000'000,
                                                 .input_gradient_ns = 2'000'000,
                                                 .weight_gradient_ns = 3'000'000,
                                                 .frozen_forward_ns = 500'000,
                                                 .update_ns = 7'000'000}});
  profile.machine = "a test";
  return profile;
}

TEST(ProfileText, GivesMeansByKindOfLayer) {
  const std::string text = squeezed(profile_text(millisecond_profile(), std::nullopt));
  EXPECT_THAT(text, HasSubstr("synthetic: 4 layers, a test; times are means over the layers of one kind\n"));
  EXPECT_THAT(text, HasSubstr("attention forward 1.000 2.000 4.000 8.000 16.0 32.0 64.0\n"));
  EXPECT_THAT(text, HasSubstr("attention backward 5.000 10.0 20.0 40.0 80.0 160.0 320.0\n"));
  EXPECT_THAT(text, HasSubstr("attention frozen forward 0.500 1.000 2.000 4.000 8.000 16.0 32.0\n"));
  EXPECT_THAT(text, HasSubstr("attention adamw 7.000\n"));
}

TEST(ProfileText, IsOfTheLayersOfAKindTogether) {
  // Two attention layers with 1 and 3 ms give 2 ms.
  Profile profile = test::synthetic_profile(2, {{}, {.forward_ns = 1'000'000}, {}, {.forward_ns = 3'000'000}, {}, {}});
  EXPECT_THAT(squeezed(profile_text(profile, std::nullopt)), HasSubstr("attention forward 2.000 4.000 "));
}

TEST(ProfileText, SaysWhatIsKnownOfTheDataAndWhatIsRough) {
  Profile profile = millisecond_profile();
  EXPECT_THAT(profile_text(profile, std::nullopt), Not(HasSubstr("data:")));
  profile.workload = examples::example_workload();
  profile.quick = true;
  profile.frozen_dtype = DType::kBFloat16;
  const std::string text = profile_text(profile, std::nullopt);
  EXPECT_THAT(text, HasSubstr("data: example.tsv, 1,600 training samples, 31.8 tokens on average (longest 48) in "
                              "mini-batches of 64\n"));
  EXPECT_THAT(text, HasSubstr("quick: few sizes"));
  EXPECT_THAT(text, HasSubstr("frozen forward in bfloat16"));
}

TEST(ProfileText, SaysWhetherLinksAreThereAndAreToBeTrusted) {
  EXPECT_THAT(profile_text(millisecond_profile(), std::nullopt), HasSubstr("links: left out; --cluster FILE"));
  Cluster cluster = test::free_cluster(3);
  EXPECT_THAT(profile_text(millisecond_profile(), cluster), HasSubstr("3 ranks; between two of one node:\n"));
  EXPECT_THAT(profile_text(millisecond_profile(), cluster), Not(HasSubstr("unsteady")));
  cluster.intra_node.collective = {.bandwidth_bytes_per_second = 20, .measured_bandwidth = BandwidthSpread{10, 30}};
  EXPECT_THAT(profile_text(millisecond_profile(), cluster), HasSubstr("the links are unsteady"));
}

TEST(ProfileText, ShowsTheLinksThatAnyTwoRanksHave) {
  const auto shown = [](const std::vector<int>& nodes) {
    Cluster cluster = test::free_cluster(static_cast<int>(nodes.size()));
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) cluster.devices[rank].node = nodes[rank];
    const std::string text = profile_text(millisecond_profile(), cluster);
    return std::pair(text.find("of one node") != std::string::npos, text.find("2 nodes; ") != std::string::npos);
  };
  EXPECT_EQ(shown({0, 0}), std::pair(true, false));
  EXPECT_EQ(shown({0, 1}), std::pair(false, true));
  EXPECT_EQ(shown({0, 0, 1}), std::pair(true, true));
}

TEST(ProfileText, NamesPairsOfNodesThatAreConnectedOtherwise) {
  Cluster cluster = test::free_cluster(3);
  for (int rank = 0; rank < 3; ++rank) cluster.devices[rank].node = rank;
  cluster.node_pairs = {{1, 2, {.point_to_point = {5'000, 3'000'000'000}, .collective = {}}}};
  EXPECT_THAT(profile_text(millisecond_profile(), cluster),
              HasSubstr("but between nodes 1 and 2:\n  messages     latency 5.00 us, bandwidth 3.00 GB/s\n"));
}

}  // namespace
}  // namespace frostpipe
