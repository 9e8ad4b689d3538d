// Oracle: graphs of a few nodes, worked by hand.
#include "profiles/import/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"

namespace frostpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A diamond, in no order: 1 -> 2 -> 4, 1 -> 3 -> 4, 4 -> 5.
constexpr const char* kDiamond =
    "node4 -- Add(inplace) -- forward_compute_time=4.000, backward_compute_time=5.000, activation_size=400.0, "
    "parameter_size=0.000\n"
    "node1 -- Input0 -- forward_compute_time=1.000, backward_compute_time=2.000, activation_size=100.0, "
    "parameter_size=0.000\n"
    "node3 -- Conv2d(3, 4) -- forward_compute_time=3.000, backward_compute_time=6.000, activation_size=[200.0; 100], "
    "parameter_size=80.000 \r\n"
    "node2 -- ReLU -- forward_compute_time=2.000, backward_compute_time=4.000, activation_size=200.0, "
    "parameter_size=0.000\n"
    "node5 -- Linear -- forward_compute_time=5.000, backward_compute_time=8.000, activation_size=50.0, "
    "parameter_size=40.000\n"
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
  const Profile profile = import_profile(kDiamond, "my/graph.txt", {.measured_samples = 10, .global_batch_size = 20});
  EXPECT_EQ(profile.model.name, "my/graph.txt");  // the path, since graphs of different nets have equal file names
  ASSERT_EQ(profile.model.layers.size(), 5);
  EXPECT_EQ(profile.model.layers[2].name, "node3 Conv2d(3, 4)");
  EXPECT_EQ(profile.model.layers[2].parameter_count, 20);
  EXPECT_EQ(profile.model.layers[0].kind, LayerKind::embedding);
  EXPECT_EQ(profile.model.layers[2].block, 1);
  // After node 2, node 1 is still needed by node 3; after node 3 nodes 2 and 3 are.
  std::vector<Bytes> crossing;
  for (int layer = 0; layer < 5; ++layer) crossing.push_back(cost(profile, layer, 10).output_activation_bytes);
  EXPECT_EQ(crossing, (std::vector<Bytes>{100, 300, 500, 400, 50}));
  // 6 ms is the backward of a layer with parameters; half of it is weight gradient. Half the samples take half the
  // time.
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
  EXPECT_THAT(
      import_error(
          "node1 -- x -- forward_compute_time=fast, backward_compute_time=1, activation_size=1, parameter_size=1"),
      HasSubstr("must have a number >= 0"));
  EXPECT_THAT(import_error("node1 -- x -- forward_compute_time=1"), HasSubstr("must have backward_compute_time="));
  EXPECT_THAT(import_error(good + "\n\tnode5 -- node9"),
              AllOf(HasSubstr("edges between its nodes"), HasSubstr("node9")));
  EXPECT_THAT(import_error(good + "\n\tnode4 -- node3"), HasSubstr("must have no cycle"));
  EXPECT_THAT(
      import_error(
          good +
          "\nnode5 -- y -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1"),
      HasSubstr("another number than the nodes before"));
  EXPECT_THAT(import_error(""), HasSubstr("at least two nodes"));
  EXPECT_THAT(import_error("{\"nodes\": 3}"), HasSubstr("must be a list"));
  EXPECT_THAT(import_error("{\"format\": \"frostpipe.profile\"}"),
              AllOf(HasSubstr("must have \"nodes\" and \"edges\""), HasSubstr("is a file with \"format\"")));
  EXPECT_THAT(import_error("{}"), HasSubstr("must have \"nodes\" and \"edges\""));
}

class ImportSailor : public testing::Test {
 protected:
  ImportSailor() : folder_(testing::TempDir() + "frostpipe-sailor/") {
    std::filesystem::create_directories(folder_);
    const std::string size = R"({"params_bytes": 400, "act_output_bytes": 8192, "act_mem_bytes": 100})",
                      half = R"({"params_bytes": 200, "act_output_bytes": 8192, "act_mem_bytes": 60})";
    write_file_atomically(folder_ + "llm_info.json", R"({"OPT": {"1": {"0": )" + size + R"(, "1": )" + size +
                                                         R"(}, "2": {"0": )" + half + R"(, "1": )" + half + "}}}");
  }
  std::string path() const { return folder_ + "OPT_V100-16_profile.json"; }
  std::string folder_;
};

TEST_F(ImportSailor, ReadsLayersByTensorParallelSizeAndCleansThem) {
  // Layer 0 is slower for one sample than for two: it is corrected to the latter's 1 ms.
  const char* const json =
      R"({"1": {"1": {"0": [0.002, 0.004, 0.01], "1": [0.003, 0.006, 0.01]}, "2": {"0": [0.001, 0.002, 0.01],
       "1": [0.001, 0.002, 0.01]}},
                               "2": {"1": {"0": [0.001, 0.005, 0.01], "1": [0.005, 0.011, 0.01]}}})";
  const Profile profile = import_profile(json, path(), {});
  EXPECT_EQ(profile.model.hidden_size, 1);  // 8192 bytes / 4 / 2048 tokens
  EXPECT_EQ(profile.model.layers[1].parameter_count, 100);
  const auto at = [&](int layer, int size, int tensor_ranks) {
    return cost_of(profile, {.layer = layer,
                             .device_type = "V100-16",
                             .micro_batch_size = size,
                             .tokens = 2048,
                             .tensor_parallel_size = tensor_ranks});
  };
  EXPECT_EQ(at(0, 1, 1).forward_ns, 1'000'000);
  EXPECT_EQ(at(0, 1, 1).input_gradient_ns + at(0, 1, 1).weight_gradient_ns, 4'000'000);
  EXPECT_EQ(at(1, 2, 1).saved_activation_bytes, 200);
  EXPECT_EQ(at(1, 1, 2).saved_activation_bytes, 60);
  EXPECT_EQ(update_cost_of(profile, 0, "V100-16", DType::kFloat32, Optimizer::kAdamW), 5'000'000);
  EXPECT_EQ(profile_from_json(to_json(profile), "again"), profile);
}

std::string sailor_error(std::string_view json, const std::string& source) {
  try {
    import_profile(json, source, {});
  } catch (const InvalidInput& one) {
    return one.what();
  }
  return "no error";
}

TEST_F(ImportSailor, SaysWhatIsMissing) {
  const auto& error = sailor_error;
  EXPECT_THAT(error(R"({"1": {"1": {"0": [1, 2], "1": [1, 2, 3]}}})", path()), HasSubstr("OPT_V100-16_profile.json"));
  EXPECT_THAT(error(R"({"1": {"1": {"0": [1, 2, 3]}}})", path()), HasSubstr("at least two layers"));
  EXPECT_THAT(error(R"({"1": {"1": {"0": [1, 2, 3], "1": [1, 2, 3]}}})", folder_ + "GPT_V100.json"),
              HasSubstr("MODEL_DEVICE_profile.json"));
  EXPECT_THAT(error(R"({"1": {"1": {}}})", "nowhere/OPT_x_profile.json"), HasSubstr("llm_info.json"));
}

/// A micro-batch has at least one sample, and no number exceeds 2^24.
TEST_F(ImportSailor, RefusesKeysThatNumberNothing) {
  const auto error = [&](const std::string& json) { return sailor_error(json, path()); };
  const std::string layers = R"({"0": [1, 2, 3], "1": [1, 2, 3]})";
  EXPECT_THAT(error(R"({"0": {"1": )" + layers + "}}"),
              HasSubstr(path() + ".0: the key must be a whole number from 1 to 16777216, is \"0\""));
  EXPECT_THAT(error(R"({"1": {"-1": )" + layers + "}}"), HasSubstr(path() + ".1.-1: the key must be"));
  EXPECT_THAT(error(R"({"1": {"1": {"0": [1, 2, 3], "2000000000": [1, 2, 3]}}})"), HasSubstr("is \"2000000000\""));
  for (const char* const holes : {R"({"1": [1, 2, 3], "2": [1, 2, 3]})", R"({"0": [1, 2, 3], "9000": [1, 2, 3]})"})
    EXPECT_THAT(error(R"({"1": {"1": )" + std::string(holes) + "}}"), HasSubstr("must have the layers 0 to 1"));
  EXPECT_THAT(error(R"({"1": {"4": )" + layers + "}}"),
              HasSubstr("OPT: must have layer sizes for a tensor-parallel size"));
}

TEST(ImportProfile, RefusesWhatNoProfileHoldsAndNamesTheNode) {
  const auto node = [](const std::string& sizes) {
    return "node1 -- a -- forward_compute_time=" + sizes + "\nnode2 -- b -- forward_compute_time=" + sizes +
           "\n\tnode1 -- node2\n";
  };
  for (const char* const sizes : {"1e300, backward_compute_time=1, activation_size=1, parameter_size=1",
                                  "1, backward_compute_time=1, activation_size=1e17, parameter_size=1",
                                  "1, backward_compute_time=1, activation_size=1, parameter_size=1e30"})
    EXPECT_THAT(import_error(node(sizes)),
                HasSubstr("node1: must be from 0 to 1000000000000000 nanoseconds, bytes or"));
  EXPECT_THAT(import_error(R"({"nodes": [
    {"id": 0, "name": "a", "TMPCs": {"1": [{"timePerSample": -1, "parameterSize": 4}]}},
    {"id": 1, "name": "b", "TMPCs": {"1": [{"timePerSample": 1, "parameterSize": 4}]}}], "edges": []})"),
              HasSubstr("node0: must be from 0 to"));
}

TEST(ImportBlockTable, IsForwardTimesByBatchSize) {
  const Profile profile = import_profile("100,150\n200,300\r\n50,60\n", "some/net-big-L4-2.csv", {});
  ASSERT_EQ(profile.model.layers.size(), 3);
  const LayerCost cost = cost_of(profile, {.layer = 1, .device_type = "1/2 L4", .micro_batch_size = 2});
  EXPECT_EQ(cost.forward_ns, 300'000);
  EXPECT_EQ(cost.input_gradient_ns + cost.weight_gradient_ns, 600'000);
  EXPECT_EQ(profile_from_json(to_json(profile), "again"), profile);
  EXPECT_EQ(profile.model.name, "net-big");  // the same as for other devices, so that profiles can be joined
  const Profile named_freely = import_profile("100\n200\n", "some/net.csv", {});
  EXPECT_EQ(named_freely.model.name, "some/net.csv");
  EXPECT_EQ(named_freely.measurements.front().key.device_type, "imported");
  EXPECT_THAT(import_error("100,150\n200\n"), HasSubstr("line 2: must have 2 columns"));
  EXPECT_THAT(import_error("100,abc\n200,3\n"), HasSubstr("line 1: must be whole microseconds"));
  EXPECT_THAT(import_error("100,\n200,3\n"), HasSubstr("line 1"));
}

}  // namespace
}  // namespace frostpipe
