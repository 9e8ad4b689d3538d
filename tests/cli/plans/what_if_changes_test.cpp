#include "cli/plans/what_if_changes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/shared/usage_error.h"
#include "tests/plan/examples.h"
#include "tests/support/one_rank_plan.h"

namespace frostpipe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Scenario two_rank_scenario() {
  Scenario scenario{.plan = test::one_rank_plan_that_freezes(),
                    .profile = test::one_block_profile(),
                    .cluster = test::free_cluster(2),
                    .jitter = 0,
                    .failures = {}};
  scenario.cluster.intra_node.point_to_point = {.latency_ns = 1000, .bandwidth_bytes_per_second = 1'000'000};
  for (Phase& phase : scenario.plan.phases) phase.cache.on = true;
  return scenario;
}

Scenario changed(const std::string& changes) {
  Scenario scenario = two_rank_scenario();
  apply_changes(scenario, changes);
  return scenario;
}

std::string refusal(const std::string& changes) {
  return examples::message_of<UsageError>([&] { changed(changes); });
}

TEST(WhatIfChanges, LinksAreFactorsOrUnits) {
  EXPECT_EQ(changed("bandwidth=x0.1").cluster.intra_node.point_to_point.bandwidth_bytes_per_second, 100'000);
  EXPECT_EQ(changed("bandwidth=2.5").cluster.inter_node.collective.bandwidth_bytes_per_second, 2'500'000'000) << "GB/s";
  EXPECT_EQ(changed("latency=x10").cluster.intra_node.point_to_point.latency_ns, 10'000);
  EXPECT_EQ(changed("latency=0.5").cluster.inter_node.point_to_point.latency_ns, 500'000) << "ms";
}

TEST(WhatIfChanges, SharedLinksAreOfANodeOrOfSeveral) {
  EXPECT_THAT(changed("card=12.5,switch=2x50").cluster.shared_links,
              ElementsAre(SharedLink{.name = "card", .nodes = 1, .bandwidth_bytes_per_second = 12'500'000'000},
                          SharedLink{.name = "switch", .nodes = 2, .bandwidth_bytes_per_second = 50'000'000'000}));
}

TEST(WhatIfChanges, CommunicationIsChosen) {
  const Communication communication =
      changed("all-reduce=tree,overlap-reduction=on,scatter-gather=off").cluster.communication;
  EXPECT_EQ(communication.all_reduce, "tree");
  EXPECT_TRUE(communication.overlap_gradient_reduction);
  EXPECT_FALSE(communication.scatter_gather);
}

TEST(WhatIfChanges, SpeedIsOfAllRanksOrOfOne) {
  // change_speed gives the rank its own device type.
  const Cluster one = changed("rank1=x0.5").cluster, all = changed("compute=x2").cluster;
  EXPECT_EQ(one.devices[0].type, "cpu");
  EXPECT_EQ(one.devices[1].type, "cpu of rank 1");
  EXPECT_EQ(all.devices[0].type, "cpu of rank 0");
  EXPECT_EQ(all.devices[1].type, "cpu of rank 1");
}

// The simulator reads the device of the first tensor rank.
TEST(WhatIfChanges, ASlowRankSlowsTheTensorRanksThatComputeWithIt) {
  Scenario scenario = two_rank_scenario();
  for (Phase& phase : scenario.plan.phases) phase.layout.tensor_parallel_size = 2;
  const auto refused = [&](const std::string& changes) {
    return examples::message_of<UsageError>([&] { apply_changes(scenario, changes); });
  };
  EXPECT_THAT(refused("rank1=x2"), HasSubstr("must be at most x1 in a plan with tensor parallelism"));
  EXPECT_THAT(refused("rank0=x0.5,rank1=x0.5"), HasSubstr("must be the only one of its tensor ranks"));
  apply_changes(scenario, "rank1=x0.5");
  EXPECT_EQ(scenario.cluster.devices[0].type, "cpu of rank 0");
  EXPECT_EQ(scenario.cluster.devices[1].type, "cpu");
}

TEST(WhatIfChanges, FreezesMoveWithoutACacheOnly) {
  EXPECT_EQ(refusal("freeze=x0.5"),
            "--set freeze=x0.5: also needs cache=off, since ends of epochs do not move (or use plan --forecast)");
}

TEST(WhatIfChanges, ThePlanIsEdited) {
  EXPECT_EQ(changed("freeze=x0.5,cache=off").plan.phases[1].from_step, 20);
  for (const Phase& phase : changed("cache=off,recompute=layers").plan.phases) {
    EXPECT_FALSE(phase.cache.on);
    EXPECT_EQ(phase.recompute, RecomputeMode::layers);
  }
  for (const Phase& phase : changed("recompute=layers,recompute=off").plan.phases)
    EXPECT_EQ(phase.recompute, std::nullopt) << "in the order in which they are given";
}

TEST(WhatIfChanges, ChanceIsSet) {
  const Scenario scenario = changed("jitter=0.05,failures=2,checkpoint=30");
  EXPECT_EQ(scenario.jitter, 0.05);
  EXPECT_EQ(scenario.failures.per_day, 2);
  EXPECT_EQ(scenario.failures.checkpoint_seconds, 30);
}

TEST(WhatIfChanges, TheFaultyChangeIsNamed) {
  EXPECT_EQ(refusal("bandwidth"), "--set bandwidth: must be NAME=VALUE, such as bandwidth=x0.1 or cache=off");
  EXPECT_EQ(refusal("speed=2"),
            "--set speed=2: must be one of bandwidth, latency, card, switch, all-reduce, overlap-reduction, "
            "scatter-gather, compute, rankN, freeze, cache, recompute, jitter, failures, checkpoint");
  for (const auto& [change, says] :
       {std::pair("bandwidth=0", "must be more than 0"),
        {"latency=fast", "must be a number such as 10, or a factor such as x0.5"},
        {"latency=-1", "must be a number such as 10, or a factor such as x0.5"},
        {"latency=inf", "must be a number such as 10, or a factor such as x0.5"},
        {"compute=2", "must be a factor such as x0.5"},
        {"compute=x0", "must be a factor such as x0.5"},
        {"rank2=x2", "must name a rank below 2"},
        {"rank-1=x2", "must name a rank below 2"},
        {"rankN=x2", "must name a rank below 2"},
        {"card=0", "must be more than 0 GB/s, of at least one node and at most as many nodes as devices"},
        {"switch=3x1", "must be more than 0 GB/s, of at least one node and at most as many nodes as devices"},
        {"switch=4", "must be NODESxGB/s, such as switch=4x50"},
        {"all-reduce=star", "must be ring, tree, hierarchical, direct or fastest"},
        {"scatter-gather=maybe", "must be on or off"},
        {"cache=on", "plan again"},
        {"checkpoint=30", "must be given together with failures, as in failures=2,checkpoint=30"},
        {"recompute=some", "must be one of off, attention, layers, stage"},
        {"jitter=x2", "must be a number, not a factor"},
        {"jitter=2", "must be a fraction, at most 1"}})
    EXPECT_THAT(refusal(change), AllOf(HasSubstr("--set " + std::string(change) + ": "), HasSubstr(says)));
}

/// Beyond these ranges times and bandwidths once overflowed: bandwidths in bytes/s made the training's time negative.
TEST(WhatIfChanges, AmountsHaveRanges) {
  for (const char* const change :
       {"bandwidth=0.001", "bandwidth=1000000", "bandwidth=x0.001", "bandwidth=x1000000", "latency=0", "latency=x0",
        "latency=10000", "card=1000000", "switch=2x0.001", "compute=x0.001,rank0=x0.001", "rank1=x1000000",
        "freeze=x0.001,cache=off", "failures=1000000,checkpoint=1000000", "failures=0"})
    EXPECT_NO_THROW(changed(change)) << change;
  const char* const kBandwidth = "must be from 0.001 to 1000000 GB/s";
  const char* const kFactor = "must be a factor from x0.001 to x1000000";
  for (const auto& [change, says] : {std::pair("bandwidth=25000000000", kBandwidth),
                                     {"bandwidth=1e-4", kBandwidth},
                                     {"card=1e12", kBandwidth},
                                     {"switch=1x1e12", kBandwidth},
                                     {"bandwidth=x1e10", kFactor},
                                     {"bandwidth=x1e-10", kFactor},
                                     {"latency=x1e10", kFactor},
                                     {"latency=1e30", "must be from 0 to 10000 ms"},
                                     {"compute=x1e-9", kFactor},
                                     {"rank0=x1e-9", kFactor},
                                     {"freeze=x1e9", kFactor},
                                     {"failures=1e7", "must be from 0 to 1000000 a day"}})
    EXPECT_EQ(refusal(change), fmt::format("--set {}: {}", change, says));
  EXPECT_EQ(refusal("failures=1,checkpoint=1e7"), "--set checkpoint=1e7: must be from 0 to 1000000 seconds");
  EXPECT_EQ(refusal("compute=x0.001,compute=x0.001"), "--set compute=x0.001: must be the only compute of its --set");
}

}  // namespace
}  // namespace frostpipe
