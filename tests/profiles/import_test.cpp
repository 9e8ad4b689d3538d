// Oracle: graphs of a few nodes, worked by hand.
#include "profiles/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/error.h"

namespace frostpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A diamond, in no order: 1 -> 2 -> 4, 1 -> 3 -> 4, 4 -> 5.
constexpr const char* kDiamond =
    "node4 -- Add(inplace) -- forward_compute_time=4.000, backward_compute_time=5.000, activation_size=400.0, parameter_size=0.000\n"
    "node1 -- Input0 -- forward_compute_time=1.000, backward_compute_time=2.000, activation_size=100.0, parameter_size=0.000\n"
    "node3 -- Conv2d(3, 4) -- forward_compute_time=3.000, backward_compute_time=6.000, activation_size=[200.0; 100], parameter_size=80.000 \r\n"
    "node2 -- ReLU -- forward_compute_time=2.000, backward_compute_time=4.000, activation_size=200.0, parameter_size=0.000\n"
    "node5 -- Linear -- forward_compute_time=5.000, backward_compute_time=8.000, activation_size=50.0, parameter_size=40.000\n"
    "\tnode1 -- node2\n\tnode1 -- node3\n  node2 -- node4\n\tnode3 -- node4\n\tnode4 -- node5";

LayerCost cost(const Profile& profile, int layer, int size) {
  return cost_of(profile, {.layer = layer, .device_type = "imported", .micro_batch_size = size});
}

std::string import_error(std::string_view text) {
  try {
    import_profile(text, "graph.txt", {});
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "no error";
}

TEST(ImportProfile, AGraphBecomesAChainWithAllThatCrossesItsCuts) {
  const Profile profile = import_profile(kDiamond, "graph.txt", {.measured_samples = 10, .global_batch_size = 20});
  ASSERT_EQ(profile.model.layers.size(), 5);
  EXPECT_EQ(profile.model.layers[2].name, "node3 Conv2d(3, 4)");
  EXPECT_EQ(profile.model.layers[2].parameter_count, 20);
  EXPECT_EQ(profile.model.layers[0].kind, LayerKind::embedding);
  EXPECT_EQ(profile.model.layers[2].block, 1);
  // Behind node 2, node 1 is still needed by node 3; behind node 3 nodes 2 and 3 are.
  std::vector<Bytes> crossing;
  for (int layer = 0; layer < 5; ++layer) crossing.push_back(cost(profile, layer, 10).output_activation_bytes);
  EXPECT_EQ(crossing, (std::vector<Bytes>{100, 300, 500, 400, 50}));
  // 6 ms backward of a layer with parameters: half of it weight gradient; half the samples, half the time.
  EXPECT_EQ(cost(profile, 2, 20).input_gradient_ns, 6'000'000);
  EXPECT_EQ(cost(profile, 2, 5).weight_gradient_ns, 1'500'000);
  EXPECT_EQ(cost(profile, 1, 10).weight_gradient_ns, 0);
  EXPECT_EQ(cost(profile, 1, 10).input_gradient_ns, 4'000'000);
  EXPECT_EQ(profile_from_json(to_json(profile), "again"), profile);
}

TEST(ImportProfile, ReadsPipersTimesPerSample) {
  const char* const json = R"({"nodes": [
    {"id": 0, "name": "a", "TMPCs": {"1": [{"timePerSample": 0.003, "parameterSize": 400.0}]}},
    {"id": 7, "name": "b", "TMPCs": {"1": [{"timePerSample": 0.006, "parameterSize": 0.0}]}}],
    "edges": [{"sourceId": 0, "destId": 7, "communicationCost": 8192.0}]})";
  const Profile profile = import_profile(json, "piper.json", {.global_batch_size = 4});
  EXPECT_EQ(profile.model.layers[0].parameter_count, 100);
  EXPECT_EQ(cost(profile, 0, 1).forward_ns, 1'000'000);
  EXPECT_EQ(cost(profile, 1, 2).forward_ns, 4'000'000);
  EXPECT_EQ(cost(profile, 1, 1).input_gradient_ns, 4'000'000);
  EXPECT_EQ(cost(profile, 0, 4).output_activation_bytes, 4 * 8192);
}

TEST(ImportProfile, NamesTheLineThatIsWrong) {
  const std::string good(kDiamond);
  EXPECT_THAT(import_error("node1 - x"), AllOf(HasSubstr("graph.txt, line 1"), HasSubstr("node1 -- ...")));
  EXPECT_THAT(import_error("edge -- x -- forward_compute_time=1"), HasSubstr("must be a node such as node12"));
  EXPECT_THAT(import_error("node1 -- x -- forward_compute_time=fast, backward_compute_time=1, activation_size=1, parameter_size=1"), HasSubstr("must have a number >= 0"));
  EXPECT_THAT(import_error("node1 -- x -- forward_compute_time=1"), HasSubstr("must have backward_compute_time="));
  EXPECT_THAT(import_error(good + "\n\tnode5 -- node9"), AllOf(HasSubstr("edges between its nodes"), HasSubstr("node9")));
  EXPECT_THAT(import_error(good + "\n\tnode4 -- node3"), HasSubstr("must have no cycle"));
  EXPECT_THAT(import_error(good + "\nnode5 -- y -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1"), HasSubstr("a node of its own"));
  EXPECT_THAT(import_error(""), HasSubstr("at least two nodes"));
  EXPECT_THAT(import_error("{\"nodes\": 3}"), HasSubstr("must be a list"));
}

}  // namespace
}  // namespace frostpipe
