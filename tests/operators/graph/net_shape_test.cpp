#include "operators/graph/known_nets.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace frostpipe {
namespace {

// Parameters as counted by torchvision, and MobileNet's 4.2 million by its authors; multiply-adds as published.
TEST(NetShape, HasThePublishedNumbersOfParameters) {
  EXPECT_EQ(num_parameters(find_net("resnet-18")), 11'689'512);
  EXPECT_EQ(num_parameters(find_net("resnet-50")), 25'557'032);
  EXPECT_EQ(num_parameters(find_net("vgg-16-bn")), 138'365'992);
  EXPECT_EQ(num_parameters(find_net("mobilenet")), 4'231'976);
  EXPECT_EQ(num_parameters(mobilenet_v2("v2", {})), 3'504'872);
  EXPECT_EQ(num_parameters(vgg("vgg11_bn", {.depths = {1, 1, 2, 2, 2}})), 132'868'840);
  EXPECT_EQ(num_parameters(vgg("vgg13_bn", {.depths = {2, 2, 2, 2, 2}})), 133'053'736);
  EXPECT_EQ(num_parameters(vgg("vgg19_bn", {.depths = {2, 2, 4, 4, 4}})), 143'678'248);
}

// ResNet-18 without 990 of its classes; VGG as usual for CIFAR, with a single linear layer.
TEST(NetShape, TakesPicturesOf32PixelsAndAnyNumberOfClasses) {
  const NetShape net = resnet("net", {.picture_size = 32,
                                      .num_classes = 10,
                                      .hidden_sizes = {64, 128, 256, 512},
                                      .depths = {2, 2, 2, 2},
                                      .bottleneck = false});
  EXPECT_EQ(num_parameters(net), 11'689'512 - 990 * 513);
  EXPECT_EQ(net.layers.end()[-2].in_size, 1);
  const NetShape small_vgg = vgg("vgg", {.picture_size = 32, .num_classes = 10, .classifier_size = std::nullopt});
  EXPECT_EQ(num_parameters(small_vgg), 14'728'266);
  EXPECT_EQ(small_vgg.layers.end()[-2].kind, NetLayer::Kind::max_pooling);
  const NetShape repeating_vgg = vgg("vgg", {.picture_size = 32});
  EXPECT_EQ(num_parameters(repeating_vgg), num_parameters(find_net("vgg-16-bn")));
  EXPECT_EQ(repeating_vgg.layers.end()[-4].out_size, 7);
  EXPECT_EQ(mobilenet("mobilenet", {.picture_size = 32}).layers.end()[-2].in_size, 1);
}

// Total padding of TensorFlow's SAME: max(kernel - stride, 0), or kernel - remainder if pixels are left over.
TEST(NetShape, PadsAsTensorFlowDoes) {
  const auto paddings = [](int picture_size, bool tf_padding) {
    const auto layers = mobilenet("m", {.picture_size = picture_size, .tf_padding = tf_padding}).layers;
    std::vector<std::pair<int, int>> of_first;
    for (int layer = 0; layer < 3; ++layer) of_first.emplace_back(layers[layer].padding, layers[layer].padding_after);
    return of_first;
  };
  using Sides = std::vector<std::pair<int, int>>;
  EXPECT_EQ(paddings(224, true), (Sides{{0, 1}, {1, 0}, {0, 0}}));
  EXPECT_EQ(paddings(225, true), (Sides{{1, 0}, {1, 0}, {0, 0}}));
  EXPECT_EQ(paddings(224, false), (Sides{{1, 0}, {1, 0}, {0, 0}}));
}

TEST(NetShape, HasThePublishedNumbersOfMultiplyAdds) {
  const auto billions = [](const char* net) { return 1e-9 * static_cast<double>(multiply_adds(find_net(net))); };
  EXPECT_NEAR(billions("resnet-18"), 1.82, 0.01);
  EXPECT_NEAR(billions("resnet-50"), 4.1, 0.02);
  EXPECT_NEAR(billions("vgg-16-bn"), 15.5, 0.05);
  EXPECT_NEAR(billions("mobilenet"), 0.57, 0.005);
  EXPECT_NEAR(1e-9 * static_cast<double>(multiply_adds(mobilenet_v2("v2", {}))), 0.30, 0.005);
}

TEST(NetShape, NamesTheNetsItKnows) {
  try {
    find_net("alexnet");
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), "net: must be one of resnet-18, resnet-50, vgg-16-bn, mobilenet, is \"alexnet\"");
  }
}

}  // namespace
}  // namespace frostpipe
