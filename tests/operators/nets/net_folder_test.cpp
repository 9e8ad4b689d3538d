// Oracle: names, shapes and values of transformers 5 and torchvision, written by hand.
#include "operators/nets/net_folder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "executor/checkpoint/safetensors.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

constexpr const char* kConfig =
    R"({"model_type": "resnet", "embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 1], "layer_type": "basic",
        "id2label": {"0": "cat", "1": "dog"}})";

class NetFolderTest : public test::ScratchFolderTest {
 protected:
  NetFolderTest() {
    file("config.json", kConfig);
    file("preprocessor_config.json", R"({"size": {"height": 16, "width": 16}})");
  }

  /// Fills every tensor with its number in the list, counted from 1.
  void write_weights(const std::vector<SafetensorsWriter::Entry>& entries) const {
    SafetensorsWriter writer(folder_ / "model.safetensors", entries);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      std::int64_t count = 1;
      for (const std::int64_t size : entries[i].shape) count *= size;
      const std::vector<float> values(count, static_cast<float>(i + 1));
      const std::vector<std::int64_t> counts(count, static_cast<std::int64_t>(i + 1));
      writer.write(entries[i].dtype == "I64" ? std::as_bytes(std::span(counts)) : std::as_bytes(std::span(values)));
    }
    writer.finish();
  }
  std::string refusal() const {
    try {
      check_weights(open_net_folder(folder_), WeightFiles(folder_));
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "nothing";
  }
};

void add_norm(std::vector<SafetensorsWriter::Entry>& entries, const std::string& name, std::int64_t channels) {
  for (const char* part : {"weight", "bias", "running_mean", "running_var"})
    entries.push_back({name + "." + part, "F32", {channels}});
  entries.push_back({name + ".num_batches_tracked", "I64", {}});
}

/// torchvision's names for a net with kConfig.
std::vector<SafetensorsWriter::Entry> torchvision_entries() {
  std::vector<SafetensorsWriter::Entry> entries = {{"conv1.weight", "F32", {4, 3, 7, 7}}};
  add_norm(entries, "bn1", 4);
  for (const char* number : {"1", "2"}) {
    entries.push_back({std::string("layer1.0.conv") + number + ".weight", "F32", {4, 4, 3, 3}});
    add_norm(entries, std::string("layer1.0.bn") + number, 4);
  }
  entries.push_back({"layer2.0.conv1.weight", "F32", {8, 4, 3, 3}});
  add_norm(entries, "layer2.0.bn1", 8);
  entries.push_back({"layer2.0.conv2.weight", "F32", {8, 8, 3, 3}});
  add_norm(entries, "layer2.0.bn2", 8);
  entries.push_back({"layer2.0.downsample.0.weight", "F32", {8, 4, 1, 1}});
  add_norm(entries, "layer2.0.downsample.1", 8);
  entries.push_back({"fc.weight", "F32", {2, 8}});
  entries.push_back({"fc.bias", "F32", {2}});
  return entries;
}

const NetLayerState& state_of(const NetFolder& folder, const NetState& state, const std::string& layer) {
  const auto found = std::ranges::find(folder.net.layers, layer, &NetLayer::name);
  return state.at(found - folder.net.layers.begin());
}

TEST_F(NetFolderTest, TorchvisionsNamesAreReadAndTransformersNamesWritten) {
  const auto entries = torchvision_entries();
  write_weights(entries);
  const NetFolder folder = open_net_folder(folder_);
  EXPECT_TRUE(check_weights(folder, WeightFiles(folder_)).empty());
  const NetState state = load_state(folder, WeightFiles(folder_), 1);
  const auto value = [&](const std::string& name) {
    return static_cast<double>(std::ranges::find(entries, name, &SafetensorsWriter::Entry::name) - entries.begin() + 1);
  };
  EXPECT_EQ(state_of(folder, state, "conv1").weights.max().item<double>(), value("conv1.weight"));
  const auto& shortcut = state_of(folder, state, "stage2.0.shortcut");
  EXPECT_EQ(shortcut.weights.min().item<double>(), value("layer2.0.downsample.0.weight"));
  EXPECT_EQ(shortcut.norm[1].min().item<double>(), value("layer2.0.downsample.1.bias"));
  EXPECT_EQ(shortcut.num_batches, static_cast<int>(value("layer2.0.downsample.1.num_batches_tracked")));
  const auto& last = state_of(folder, state, "fc");
  EXPECT_EQ(last.weights.numel(), 18);
  EXPECT_EQ(last.weights[17].item<double>(), value("fc.bias"));

  const std::filesystem::path target = folder_ / "written";
  write_net_folder(folder, state, target);
  const SafetensorsFile file(target / "model.safetensors");
  for (const char* name : {"resnet.embedder.embedder.convolution.weight", "resnet.embedder.embedder.normalization.bias",
                           "resnet.encoder.stages.0.layers.0.layer.1.convolution.weight",
                           "resnet.encoder.stages.1.layers.0.shortcut.normalization.num_batches_tracked",
                           "classifier.1.weight", "classifier.1.bias"})
    EXPECT_TRUE(file.tensors().contains(name)) << name;
  EXPECT_EQ(file.tensors().size(), entries.size());
  const NetFolder again = open_net_folder(target);
  const NetState reread = load_state(again, WeightFiles(target), 2);
  EXPECT_TRUE(again.net.layers == folder.net.layers);
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (state[i].weights.defined()) {
      EXPECT_TRUE(at::equal(state[i].weights, reread[i].weights));
    }
    if (!state[i].norm.defined()) continue;
    EXPECT_TRUE(at::equal(state[i].norm, reread[i].norm));
    EXPECT_TRUE(at::equal(state[i].running_variance, reread[i].running_variance));
    EXPECT_EQ(state[i].num_batches, reread[i].num_batches);
  }
}

TEST_F(NetFolderTest, AClassifierForOtherLabelsStartsAtRandomAndNothingElseMayBeMissing) {
  auto entries = torchvision_entries();
  write_weights(entries);
  NetFolder folder = open_net_folder(folder_);
  set_labels(folder, {"a", "b", "c"});
  EXPECT_EQ(
      check_weights(folder, WeightFiles(folder_)),
      (std::vector<std::string>{"fc.weight (there, but for other labels)", "fc.bias (there, but for other labels)"}));
  EXPECT_EQ(load_state(folder, WeightFiles(folder_), 1).back().weights.numel(), 27);
  std::erase_if(entries, [](const auto& entry) { return entry.name == "layer1.0.bn2.running_var"; });
  write_weights(entries);
  EXPECT_NE(refusal().find("tensor layer1.0.bn2.running_var: must be there, is missing"), std::string::npos)
      << refusal();
  std::filesystem::remove(folder_ / "model.safetensors");
  EXPECT_EQ(check_weights(folder, WeightFiles(folder_)), std::vector<std::string>{"the whole model"});
}

TEST_F(NetFolderTest, AClassifierOfSeveralLabelsAtOnceIsRefusedWhereItCounts) {
  const std::string config = kConfig;
  file("config.json", config.substr(0, config.rfind('}')) + R"(, "problem_type": "multi_label_classification"})");
  write_weights(torchvision_entries());
  EXPECT_NE(refusal().find("config.json: problem_type: must be single_label_classification"), std::string::npos)
      << refusal();
  NetFolder folder = open_net_folder(folder_);
  set_labels(folder, {"a", "b", "c"});
  EXPECT_EQ(check_weights(folder, WeightFiles(folder_)).size(), 2u) << "another classifier is trained";
}

TEST_F(NetFolderTest, UnsupportedNetsAreRefused) {
  const auto says = [&](const std::string& words) { EXPECT_NE(refusal().find(words), std::string::npos) << refusal(); };
  file("config.json", R"({"model_type": "resnet", "hidden_act": "gelu"})");
  says("hidden_act: must be \"relu\"");
  file("config.json", R"({"model_type": "resnet", "depths": [1, 1]})");
  says("depths: must have one of each of the 4 hidden_sizes, is 2");
  file("config.json", R"({"model_type": "resnet", "layer_type": "wide"})");
  says("layer_type: must be basic or bottleneck");
  file("config.json", R"({"model_type": "resnet", "hidden_sizes": [4, 0]})");
  says("hidden_sizes: must be a list of whole numbers from 1 to 1048575");
  file("config.json", kConfig);
  file("preprocessor_config.json", R"({"size": {"height": 16, "width": 17}})");
  says("preprocessor_config.json: size: must be a number of pixels up to 4096");
  std::filesystem::remove(folder_ / "preprocessor_config.json");
  file("config.json", R"({"model_type": "resnet", "image_size": 5000})");
  says((folder_ / "config.json: image_size: must be a number of pixels up to 4096").string());
  file("config.json", R"({"model_type": "resnet", "hidden_sizes": [1048572, 1048572], "depths": [1, 1]})");
  says("config.json: layer stage1.0.conv2: the weights: must be <= 6e+10");
  file("config.json", R"({"model_type": "vit"})");
  says("config.json: must be of a net: model_type resnet, mobilenet_v1 or mobilenet_v2, or timm's architecture");
}

TEST_F(NetFolderTest, UnsupportedMobileNetsAreRefused) {
  const auto says = [&](const std::string& fields, const std::string& words) {
    file("config.json", R"({"model_type": "mobilenet_v2", )" + fields + "}");
    EXPECT_NE(refusal().find(words), std::string::npos) << refusal();
  };
  says(R"("hidden_act": "hard_swish")", "hidden_act: must be relu6 or relu: other values are not supported");
  says(R"("hidden_act": 6)", "hidden_act: must be relu6 or relu: other values are not supported, is 6");
  says(R"("output_stride": 16)", "output_stride: must be 32: other values are not supported");
  says(R"("num_channels": 1)", "num_channels: must be 3");
  says(R"("depth_multiplier": 1000)", "depth_multiplier: must be at most 64, is 1000");
  says(R"("layer_norm_eps": 0)", "layer_norm_eps: must be a number > 0");
}

TEST_F(NetFolderTest, UnsupportedVggsAreRefused) {
  const auto says = [&](const std::string& fields, const std::string& words) {
    file("config.json", "{" + fields + "}");
    EXPECT_NE(refusal().find(words), std::string::npos) << refusal();
  };
  says(R"("architecture": "vgg16")", "architecture: must be vgg11_bn, vgg13_bn, vgg16_bn or vgg19_bn, is \"vgg16\"");
  const std::string vgg = R"("architecture": "vgg16_bn", )";
  says(vgg + R"("head_hidden_size": 100)",
       "head_hidden_size: must be 4096, of two linear layers before the last, or 512");
  says(vgg + R"("model_args": {"mlp_ratio": 0.5})", "model_args.mlp_ratio: must not be given: it is not supported");
  says(vgg + R"("model_args": {"global_pool": "max"})",
       "model_args.global_pool: must not be given: it is not supported, is \"max\"");
  says(vgg + R"("num_classes": 10, "model_args": {"num_classes": 100})",
       "model_args.num_classes: must be the num_classes beside model_args, is 100");
  says(vgg + R"("model_args": [])", "model_args: must be a JSON object, is []");
  says(vgg + R"("global_pool": "max")", "global_pool: must be avg: other values are not supported, is \"max\"");
  says(vgg + R"("head_dropout": 0.5)", "head_dropout: must not be given: it is not known here");
  says(vgg + R"("label_names": {"0": "cat"})", "label_names: must be a list of names");
  for (const char* size : {"[3, 24, 24]", "[3, 256, 256]"})
    says(vgg + R"("pretrained_cfg": {"input_size": )" + size + "}", "input_size: must be 32 to 255 pixels for a VGG");
  says(vgg + R"("pretrained_cfg": {"input_size": [3, 224, 192]})", "input_size: must be [3, PIXELS, PIXELS]");
  says(vgg + R"("pretrained_cfg": {"std": [1, 0, 1]})", "std: must be three numbers > 0");
}

}  // namespace
}  // namespace frostpipe
