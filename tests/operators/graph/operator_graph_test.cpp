#include "operators/graph/operator_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "operators/graph/counted_operators.h"
#include "operators/graph/estimated_operators.h"
#include "operators/graph/known_nets.h"

namespace frostpipe {
namespace {

OperatorGraph resnet_18() {
  return estimated_operators(find_net("resnet-18"), 32, {find_hardware("A100"), find_hardware("V100")});
}

int count(const OperatorGraph& graph, OperatorKind kind) {
  return static_cast<int>(std::ranges::count(graph.operators, kind, &Operator::kind));
}

std::string message_of(const OperatorGraph& graph) {
  try {
    validate(graph, "ops.json");
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(OperatorGraph, OfResNet18HasItsLayers) {
  const auto graph = resnet_18();
  EXPECT_EQ(count(graph, OperatorKind::forward), 21);  // 17 convolutions, 3 shortcuts, the head
  EXPECT_EQ(count(graph, OperatorKind::statistics), 20);
  EXPECT_EQ(count(graph, OperatorKind::statistics_gradient), 20);
  EXPECT_EQ(count(graph, OperatorKind::input_gradient), 20);  // none of the first layer
  EXPECT_EQ(count(graph, OperatorKind::weight_gradient), 21);
  EXPECT_EQ(message_of(graph), "");
}

TEST(OperatorGraph, IsReadAsWritten) {
  EXPECT_EQ(operator_graph_from_json(to_json(resnet_18()), "ops.json"), resnet_18());
}

// The first convolution of ResNet-50 has 64 x 112 x 112 outputs of 4 bytes per sample, of which 85598 have 2^38 bytes.
TEST(OperatorGraph, OfTheLargestMiniBatchIsReadAsWritten) {
  const NetShape net = find_net("resnet-50");
  require_batch(net, 85'598);
  const auto graph = estimated_operators(net, 85'598, {find_hardware("A100")});
  EXPECT_EQ(operator_graph_from_json(to_json(graph), "ops.json"), graph);
  try {
    require_batch(net, 85'599);
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(),
                 "--global-batch: must be at most 85598 for resnet-50, so that the output of conv1 has "
                 "at most 256 GiB, is 85599");
  }
}

TEST(OperatorGraph, FrozenLayersLoseTheirStatisticsAndGradients) {
  const auto graph = resnet_18();
  const auto left = frozen(graph, 6);
  for (const auto& one : left.operators)
    if (one.layer < 6) {
      EXPECT_TRUE(one.kind == OperatorKind::forward || one.kind == OperatorKind::normalise ||
                  one.kind == OperatorKind::elementwise)
          << one.name;
    }
  EXPECT_EQ(count(left, OperatorKind::forward), 21);
  EXPECT_EQ(count(left, OperatorKind::update), count(left, OperatorKind::weight_gradient));
  EXPECT_EQ(frozen(graph, 0), graph);
  EXPECT_TRUE(frozen(graph, num_layers(graph)).operators.empty());
}

TEST(OperatorGraph, ACycleIsNamed) {
  OperatorGraph graph{.net = "ring", .batch = 2, .operators = {{.name = "a"}, {.name = "b"}}};
  graph.edges = {{.from = 0, .to = 1}, {.from = 1, .to = 0}};
  EXPECT_EQ(message_of(graph), "ops.json: edges: must hold no cycle, is one before \"a\"");
  graph.edges = {{.from = 0, .to = 7}};
  EXPECT_EQ(message_of(graph), "ops.json: edges[0]: must join two of the 2 operators, is 7");
}

TEST(OperatorGraph, AnEdgeIsThereOnce) {
  OperatorGraph graph{.net = "pair", .batch = 2, .operators = {{.name = "a"}, {.name = "b"}}};
  graph.edges = {{.from = 0, .to = 1}, {.from = 0, .to = 1}};
  EXPECT_EQ(message_of(graph),
            "ops.json: edges[1]: must be the only edge between its operators, is one more from \"a\" to \"b\"");
}

}  // namespace
}  // namespace frostpipe
