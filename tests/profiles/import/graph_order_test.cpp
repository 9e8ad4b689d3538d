// Oracle: the definition of a topological order, and cuts counted edge by edge.
#include "profiles/import/graph_order.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

namespace frostpipe {
namespace {

double sum_of(const std::vector<double>& bytes) { return std::accumulate(bytes.begin(), bytes.end(), 0.0); }

TEST(ChainOrder, FinishesABranchBeforeTheNext) {
  // Edges 0 -> 1 -> 3 -> 5 -> 7 and 0 -> 2 -> 4 -> 6 -> 7. In the order of numbers the outputs of both branches cross
  // every cut between; branch by branch only one branch's output and that of 0 or of the other branch's end do.
  const LayerGraph graph{.output_bytes = {1, 10, 10, 10, 10, 10, 1, 1},
                         .edges = {{0, 1}, {0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 6}, {5, 7}, {6, 7}}};
  const std::vector<int> order = chain_order(graph);
  EXPECT_EQ(order, (std::vector<int>{0, 2, 4, 6, 1, 3, 5, 7}));  // the branch with the small end comes first
  EXPECT_EQ(cut_bytes(graph, order), (std::vector<double>{1, 11, 11, 2, 11, 11, 11, 1}));
  EXPECT_LT(sum_of(cut_bytes(graph, order)), sum_of(cut_bytes(graph, {0, 1, 2, 3, 4, 5, 6, 7})));
}

TEST(ChainOrder, OfAChainIsTheChain) {
  EXPECT_EQ(chain_order({.output_bytes = {1, 2, 3}, .edges = {{0, 1}, {1, 2}}}), (std::vector<int>{0, 1, 2}));
}

// (0.2 + 0.9) - 0.2 - 0.9 is less than 0 in floating point.
TEST(ChainOrder, HasNoCutBelowZeroBytes) {
  const LayerGraph graph{.output_bytes = {0.2, 0.9, 0, 0}, .edges = {{0, 1}, {1, 2}, {2, 3}}};
  for (const double bytes : cut_bytes(graph, {0, 1, 2, 3})) EXPECT_GE(bytes, 0);
}

TEST(ChainOrder, ACycleHasNone) {
  EXPECT_TRUE(chain_order({.output_bytes = {1, 1, 1}, .edges = {{0, 1}, {1, 2}, {2, 1}}}).empty());
}

TEST(ChainOrder, IsTopologicalAndItsCutsAreTheEdgesThatCross) {
  std::mt19937 random(61);
  for (int round = 0; round < 200; ++round) {
    LayerGraph graph;
    const int n = 2 + static_cast<int>(random() % 9);
    std::vector<int> hidden(n);
    std::iota(hidden.begin(), hidden.end(), 0);
    std::shuffle(hidden.begin(), hidden.end(), random);
    for (int i = 0; i < n; ++i) graph.output_bytes.push_back(static_cast<double>(random() % 100));
    for (int i = 0; i < n; ++i)
      for (int j = i + 1; j < n; ++j)
        if (random() % 3 == 0) graph.edges.emplace_back(hidden[i], hidden[j]);
    const std::vector<int> order = chain_order(graph);
    ASSERT_EQ(std::set<int>(order.begin(), order.end()).size(), static_cast<std::size_t>(n));
    std::vector<int> place(n);
    for (int i = 0; i < n; ++i) place[order[i]] = i;
    for (const auto& [from, to] : graph.edges) EXPECT_LT(place[from], place[to]);
    const std::vector<double> bytes = cut_bytes(graph, order);
    for (int i = 0; i + 1 < n; ++i) {
      std::set<int> crossing;
      for (const auto& [from, to] : graph.edges)
        if (place[from] <= i && place[to] > i) crossing.insert(from);
      double expected = 0;
      for (const int vertex : crossing) expected += graph.output_bytes[vertex];
      EXPECT_DOUBLE_EQ(bytes[i], expected);
    }
  }
}

}  // namespace
}  // namespace frostpipe
