// Oracle: scores, names and shapes of transformers and torchvision (nets_reference.json).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "executor/checkpoint/safetensors.h"
#include "operators/nets/net_folder.h"
#include "operators/nets/net_kernels.h"
#include "operators/nets/net_tensors.h"
#include "tests/support/reference_data.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

using Shapes = std::map<std::string, std::vector<std::int64_t>>;

class RecordedNetsTest : public test::ScratchFolderTest {
 protected:
  /// The formula of scripts/reference/nets.py.
  void write_net(const Json& recorded) {
    file("config.json", recorded["config"].dump());
    file("preprocessor_config.json",
         Json{{"size", {{"height", recorded["picture_size"]}, {"width", recorded["picture_size"]}}}}.dump());
    std::vector<SafetensorsWriter::Entry> entries;
    for (const auto& [name, shape] : recorded["shapes"].items())
      entries.push_back({name, "F32", shape.get<std::vector<std::int64_t>>()});
    SafetensorsWriter writer(folder_ / "model.safetensors", entries);
    for (std::size_t number = 0; number < entries.size(); ++number) {
      const auto& [name, dtype, shape] = entries[number];
      std::int64_t count = 1;
      for (const std::int64_t size : shape) count *= size;
      const bool is_kernel = shape.size() > 1;
      const double height = is_kernel ? 2 / std::sqrt(static_cast<double>(count / shape[0])) : 0.3;
      const double middle = !is_kernel && (name.ends_with("weight") || name.ends_with("running_var")) ? 1 : 0;
      std::vector<float> values(count);
      for (std::int64_t i = 0; i < count; ++i)
        values[i] =
            static_cast<float>(height * std::sin(0.7 * static_cast<double>(i) + static_cast<double>(number)) + middle);
      writer.write(std::as_bytes(std::span(values)));
    }
    writer.finish();
  }

  /// The largest difference from the recorded scores, as a fraction of the largest score; computed in float64.
  static double distance(const NetFolder& folder, NetState state, const Json& recorded) {
    for (NetLayerState& layer : state)
      for (at::Tensor* tensor : {&layer.weights, &layer.norm, &layer.running_mean, &layer.running_variance})
        if (tensor->defined()) *tensor = tensor->to(at::kDouble);
    const int size = folder.net.picture_size;
    const auto pictures = (0.9 * at::arange(2 * 3 * size * size, at::kDouble)).sin().to(at::kFloat).to(at::kDouble);
    const auto scores = scores_of(folder.net, state, pictures.view({2, 3, size, size}));
    const auto wanted = at::tensor(recorded["scores"].get<std::vector<double>>(), at::kDouble).view(scores.sizes());
    return ((scores - wanted).abs().max() / wanted.abs().max()).item<double>();
  }
};

TEST_F(RecordedNetsTest, ScoreAsTransformersAndTorchvisionBeforeAndAfterTheyAreWritten) {
  for (const Json& recorded : test::reference_data("nets_reference.json")["nets"]) {
    SCOPED_TRACE(recorded["config"].dump());
    write_net(recorded);
    const NetFolder folder = open_net_folder(folder_);
    EXPECT_EQ(folder.net.picture_size, recorded["picture_size"].get<int>());
    EXPECT_EQ(check_weights(folder, WeightFiles(folder_)), std::vector<std::string>());
    const NetState state = load_state(folder, WeightFiles(folder_), 1);
    EXPECT_LT(distance(folder, state, recorded), 1e-7);

    const std::filesystem::path target = folder_ / "written";
    write_net_folder(folder, state, target);
    const SafetensorsFile file(target / "model.safetensors");
    Shapes shapes;
    for (const auto& [name, tensor] : file.tensors())
      if (!name.ends_with("num_batches_tracked")) shapes.emplace(name, tensor.shape);
    EXPECT_EQ(shapes, recorded["shapes"].get<Shapes>());
    const NetFolder again = open_net_folder(target);
    EXPECT_LT(distance(again, load_state(again, WeightFiles(target), 1), recorded), 1e-7);
    std::filesystem::remove_all(target);
  }
}

/// Oracle: the recorded configurations have all fields that transformers writes, and no other one.
TEST_F(RecordedNetsTest, AnUnknownFieldIsRefusedByItsName) {
  for (const Json& recorded : test::reference_data("nets_reference.json")["nets"]) {
    SCOPED_TRACE(recorded["config"].dump());
    Json config = recorded["config"];
    file("config.json", config.dump());
    EXPECT_NO_THROW(open_net_folder(folder_));
    config["stem_kernel"] = 3;
    file("config.json", config.dump());
    try {
      open_net_folder(folder_);
      ADD_FAILURE() << "is opened";
    } catch (const InvalidInput& error) {
      EXPECT_NE(std::string(error.what()).find("config.json: stem_kernel: must not be given: it is not known here"),
                std::string::npos)
          << error.what();
    }
  }
}

/// Oracle: what timm 1.0.31 writes (save_config_for_hf), and transformers 5.24 for the same net (TimmWrapperConfig).
TEST_F(RecordedNetsTest, EveryFieldThatTimmWritesIsKnown) {
  const Json timm = {{"architecture", "vgg16_bn"},
                     {"num_classes", 2},
                     {"num_features", 4096},
                     {"global_pool", "avg"},
                     {"label_names", {"cat", "dog"}},
                     {"label_descriptions", {{"cat", "a cat"}, {"dog", "a dog"}}},
                     {"model_args", {{"num_classes", 2}}},
                     {"pretrained_cfg",
                      {{"tag", "tv_in1k"},
                       {"custom_load", false},
                       {"input_size", {3, 224, 224}},
                       {"fixed_input_size", false},
                       {"interpolation", "bilinear"},
                       {"crop_pct", 0.875},
                       {"crop_mode", "center"},
                       {"mean", {0.485, 0.456, 0.406}},
                       {"std", {0.229, 0.224, 0.225}},
                       {"num_classes", 2},
                       {"pool_size", {7, 7}},
                       {"first_conv", "features.0"},
                       {"classifier", "head.fc"}}}};
  file("config.json", timm.dump());
  EXPECT_EQ(open_net_folder(folder_).label_names, (std::vector<std::string>{"cat", "dog"}));
  Json wrapped = timm;
  wrapped.update({{"model_type", "timm_wrapper"},
                  {"architectures", {"TimmWrapperForImageClassification"}},
                  {"do_pooling", true},
                  {"initializer_range", 0.02},
                  {"dtype", "float32"},
                  {"transformers_version", "5.24.0"}});
  file("config.json", wrapped.dump());
  EXPECT_EQ(open_net_folder(folder_).label_names, (std::vector<std::string>{"cat", "dog"}));
}

/// Names and shapes of the matrices and the kernels, in order.
std::vector<std::pair<std::string, std::vector<std::int64_t>>> kernels_of(const NetFolder& folder, std::size_t naming) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> kernels;
  for (int layer = 0; layer < static_cast<int>(folder.net.layers.size()); ++layer)
    for (const NetTensor& tensor : tensors_of(folder.net, layer, folder.family->namings[naming]))
      if (tensor.part == NetTensor::Part::kernel) kernels.emplace_back(tensor.name, tensor.shape);
  return kernels;
}

TEST_F(RecordedNetsTest, Vgg16HasTimmsNamesAndTorchvisions) {
  file("config.json", R"({"architecture": "vgg16_bn"})");
  const auto timm = kernels_of(open_net_folder(folder_), 0), torchvision = kernels_of(open_net_folder(folder_), 1);
  const std::vector<int> modules = {0, 3, 7, 10, 14, 17, 20, 24, 27, 30, 34, 37, 40};
  ASSERT_EQ(timm.size(), modules.size() + 3);
  for (std::size_t i = 0; i < modules.size(); ++i) {
    EXPECT_EQ(timm[i].first, "features." + std::to_string(modules[i]) + ".weight");
    EXPECT_EQ(timm[i], torchvision[i]);
  }
  using Kernels = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;
  EXPECT_EQ(Kernels(timm.end() - 3, timm.end()), (Kernels{{"pre_logits.fc1.weight", {4096, 512, 7, 7}},
                                                          {"pre_logits.fc2.weight", {4096, 4096, 1, 1}},
                                                          {"head.fc.weight", {1000, 4096}}}));
  EXPECT_EQ(Kernels(torchvision.end() - 3, torchvision.end()), (Kernels{{"classifier.0.weight", {4096, 512 * 49}},
                                                                        {"classifier.3.weight", {4096, 4096}},
                                                                        {"classifier.6.weight", {1000, 4096}}}));
}

TEST_F(RecordedNetsTest, TimmsConfigSaysHowPicturesAreTaken) {
  file("config.json", R"({"architecture": "vgg11_bn", "num_classes": 2, "label_names": ["cat", "dog"],
                          "head_hidden_size": 512, "model_args": {"drop_rate": 0.5, "num_classes": 2, "in_chans": 3},
                          "pretrained_cfg": {"input_size": [3, 32, 32], "mean": [0.1, 0.2, 0.3]}})");
  NetFolder folder = open_net_folder(folder_);
  EXPECT_EQ(folder.net.picture_size, 32);
  EXPECT_EQ(folder.normalisation.mean[2], 0.3f);
  EXPECT_EQ(folder.normalisation.deviation[0], 0.229f);
  EXPECT_EQ(folder.dropout, 0.5);
  set_labels(folder, {"a", "b", "c"});
  write_net_folder(folder, load_state(folder, WeightFiles(folder_), 1), folder_ / "written");
  const NetFolder again = open_net_folder(folder_ / "written");
  EXPECT_EQ(again.label_names, folder.label_names);
  EXPECT_TRUE(again.net.layers == folder.net.layers);
  EXPECT_EQ(again.normalisation.mean, folder.normalisation.mean);
}

}  // namespace
}  // namespace frostpipe
