// Oracles: every cut of random small clusters; sums by hand.
#include "simulator/generation/token_flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace frostpipe {
namespace {

constexpr double kAmple = 1e12;

GenerationMachine holder(int first_layer, int end_layer) {
  return {.first_layer = first_layer,
          .end_layer = end_layer,
          .prompt_ns = {{{1, 1'000'000}}},
          .decode_ns = {{{1, 1'000'000}}},
          .cache_tokens = 1'000'000,
          .largest_prompt_batch = 100,
          .largest_decode_batch = 100,
          .card_bytes_per_second = kAmple};
}

GenerationCluster holders_of(int num_layers, std::vector<GenerationMachine> machines) {
  GenerationCluster cluster{.num_layers = num_layers, .machines = std::move(machines), .activation_bytes = 10};
  const std::size_t count = cluster.machines.size() + 1;
  cluster.links.assign(count, std::vector(count, GenerationLink{.bytes_per_second = kAmple}));
  return cluster;
}

/// The least cut over all sets of machines; two sides of a machine are cut apart too.
double least_cut(const GenerationCluster& cluster, const std::vector<double>& throughputs) {
  const int n = cluster.coordinator();
  const auto next = successors(cluster);
  double least = std::numeric_limits<double>::infinity();
  for (int set = 0; set < 1 << (2 * n); ++set) {  // bit 2 i: the machine's way in is at the source, 2 i + 1: out
    const auto at_source_in = [&](int i) { return i < n && (set >> (2 * i) & 1); };
    const auto at_source_out = [&](int i) { return i == n || (set >> (2 * i + 1) & 1); };
    double cut = 0;
    for (int i = 0; i < n; ++i)
      if (at_source_in(i) && !at_source_out(i)) cut += throughputs[i];
    for (int from = 0; from <= n; ++from)
      for (const int to : next[from])
        if (at_source_out(from) && !at_source_in(to))
          cut += cluster.links[from][to].bytes_per_second / static_cast<double>(cluster.message_bytes(from, to, 1));
    least = std::min(least, cut);
  }
  return least;
}

TEST(MaximumFlow, EqualsTheLeastOfAllCuts) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<GenerationMachine> machines;
    std::vector<double> throughputs;
    for (int i = 0; i < 5; ++i) {
      const int first = static_cast<int>(random() % 4);
      machines.push_back(holder(first, first + 1 + static_cast<int>(random() % (4 - first))));
      throughputs.push_back(static_cast<double>(1 + random() % 50));
    }
    GenerationCluster cluster = holders_of(4, machines);
    for (auto& row : cluster.links)
      for (auto& link : row) link.bytes_per_second = static_cast<double>(40 + random() % 400);
    EXPECT_NEAR(maximum_flow(cluster, throughputs).tokens_per_second, least_cut(cluster, throughputs), 0.1);
  }
}

TEST(MaximumFlow, GoesOverTheEdgesThatItNames) {
  // Two ways through the first two layers, of 30 and 50 tokens per second; what follows carries 60.
  const GenerationCluster cluster = holders_of(3, {holder(0, 2), holder(0, 2), holder(2, 3)});
  const TokenFlow flow = maximum_flow(cluster, {30, 50, 60});
  EXPECT_DOUBLE_EQ(flow.tokens_per_second, 60);
  EXPECT_DOUBLE_EQ(flow.edges[3][0] + flow.edges[3][1], 60);
  EXPECT_DOUBLE_EQ(flow.edges[0][2] + flow.edges[1][2], 60);
  EXPECT_LE(flow.edges[0][2], 30);
  EXPECT_DOUBLE_EQ(flow.edges[2][3], 60);
}

TEST(MaximumFlow, IsWhatTheCardsCarry) {
  GenerationCluster cluster = holders_of(1, {holder(0, 1)});
  cluster.machines[0].card_bytes_per_second = 70;  // activations of ten bytes
  EXPECT_DOUBLE_EQ(maximum_flow(cluster, {1000}).tokens_per_second, 7);
}

TEST(BatchTimes, AreStraightLinesBetweenWhatWasMeasured) {
  const BatchTimes times{{{10, 100}, {20, 300}}};
  EXPECT_EQ(times.at(1), 100);
  EXPECT_EQ(times.at(15), 200);
  EXPECT_EQ(times.at(20), 300);
  EXPECT_EQ(times.at(40), 600);
}

TEST(BatchTimes, ThatFallBecomeTheirMean) {
  EXPECT_EQ(without_falls({{1, 10}, {2, 40}, {3, 20}, {4, 30}, {5, 50}}),
            (BatchTimes{{{1, 10}, {2, 30}, {3, 30}, {4, 30}, {5, 50}}}));
}

}  // namespace
}  // namespace frostpipe
