// Oracle: names and shapes of the tensors of transformers' and torchvision's nets (nets_reference.json).
#include "operators/graph/net_config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "operators/graph/known_nets.h"
#include "tests/support/reference_data.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

class NetConfigTest : public test::ScratchFolderTest {
 protected:
  /// Returns the message with which a config.json is refused; "" if it is read.
  std::string refusal(const Json& config) const {
    file("config.json", config.dump());
    try {
      read_net(folder_);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  }
  void expect_refused(const Json& config, const std::string& words) const {
    EXPECT_NE(refusal(config).find("config.json: " + words), std::string::npos) << refusal(config);
  }
};

TEST_F(NetConfigTest, ANetHasTheParametersThatItsLibraryGivesIt) {
  for (const Json& recorded : test::reference_data("nets_reference.json")["nets"]) {
    SCOPED_TRACE(recorded["config"].dump());
    file("config.json", recorded["config"].dump());
    file("preprocessor_config.json", Json{{"size", recorded["picture_size"]}}.dump());
    const NetShape net = read_net(folder_);
    EXPECT_EQ(net.picture_size, recorded["picture_size"].get<int>());
    EXPECT_EQ(net.name, folder_.filename());
    std::int64_t num_recorded = 0;
    for (const auto& [name, shape] : recorded["shapes"].items()) {
      if (name.find("running_") != std::string::npos) continue;
      std::int64_t count = 1;
      for (const std::int64_t size : shape) count *= size;
      num_recorded += count;
    }
    EXPECT_EQ(num_parameters(net), num_recorded);
    EXPECT_EQ(read_net(folder_ / "config.json"), net);
  }
}

TEST_F(NetConfigTest, DefaultsAreThoseOfTheKnownNets) {
  file("config.json", R"({"model_type": "resnet"})");
  EXPECT_EQ(read_net(folder_).layers, find_net("resnet-50").layers);
  file("config.json", R"({"architecture": "vgg16_bn"})");
  EXPECT_EQ(read_net(folder_).layers, find_net("vgg-16-bn").layers);
  file("config.json", R"({"model_type": "resnet", "layer_type": "basic", "hidden_sizes": [64, 128, 256, 512],
                          "depths": [2, 2, 2, 2], "image_size": 32, "num_labels": 10})");
  EXPECT_EQ(read_net(folder_).layers, resnet("net", {.picture_size = 32,
                                                     .num_classes = 10,
                                                     .hidden_sizes = {64, 128, 256, 512},
                                                     .depths = {2, 2, 2, 2},
                                                     .bottleneck = false})
                                          .layers);
}

TEST_F(NetConfigTest, ThePreprocessorsSizeIsThatOfPictures) {
  file("config.json", R"({"model_type": "resnet", "image_size": 64})");
  file("preprocessor_config.json", R"({"do_center_crop": true, "crop_size": 48, "size": {"shortest_edge": 56}})");
  EXPECT_EQ(read_net(folder_).picture_size, 48);
  file("preprocessor_config.json", R"({"size": {"shortest_edge": 56}})");
  EXPECT_EQ(read_net(folder_).picture_size, 56);
}

TEST_F(NetConfigTest, UnknownOrImpossibleFieldsAreRefused) {
  expect_refused({{"model_type", "resnet"}, {"stem_kernel", 3}},
                 "stem_kernel: must not be given: it is not known here");
  EXPECT_EQ(refusal({{"model_type", "resnet"}, {"stem_kernel", nullptr}, {"transformers_version", "5"}}), "");
  expect_refused({{"model_type", "resnet"}, {"depths", {900, 40, 40, 40}}},
                 "depths: must be at most 1000 blocks together, is 1020");
  expect_refused({{"model_type", "resnet"}, {"hidden_sizes", {1048572, 1048572, 1048572, 1048572}}},
                 "layer stage1.0.conv2: the weights: must be <= 6e+10");
  expect_refused({{"model_type", "mobilenet_v1"}, {"num_labels", 70000}}, "num_labels: must be at most 65536");
  EXPECT_NE(refusal({{"model_type", "bert"}}).find("config.json: must be of a net: model_type resnet"),
            std::string::npos);
}

}  // namespace
}  // namespace frostpipe
