#pragma once
#include <optional>
#include <string>
#include <vector>

#include "operators/graph/net_shape.h"

// Families of nets, with the parameters of the libraries that publish their weights.

namespace frostpipe {

inline constexpr int kImageNetPixels = 224, kImageNetClasses = 1000;

/// A ResNet as transformers' ResNetConfig describes it; the defaults are ResNet-50.
struct ResNetShape {
  int picture_size = kImageNetPixels, num_classes = kImageNetClasses;
  int embedding_size = 64;
  std::vector<int> hidden_sizes = {256, 512, 1024, 2048}, depths = {3, 4, 6, 3};
  bool bottleneck = true;
  bool downsample_in_first_stage = false;
  /// True if the stride is in the block's first convolution (1 x 1) and not in the second.
  bool downsample_in_bottleneck = false;
};
NetShape resnet(const std::string& name, const ResNetShape& shape);

/// Each of a VGG's five stages halves the pixels of a side. If more than 7 are left, torchvision and timm compute
/// different scores.
inline constexpr int kSmallestVggPicture = 32, kLargestVggPicture = 255;

/// A VGG with batch norm as torchvision has it; the defaults are VGG-16. Its classifier reads 7 x 7 pixels:
/// more pixels are averaged, and fewer are repeated.
struct VggShape {
  int picture_size = kImageNetPixels, num_classes = kImageNetClasses;
  std::vector<int> hidden_sizes = {64, 128, 256, 512, 512}, depths = {2, 2, 3, 3, 3};
  /// Number of outputs of each of the two linear layers before the last one. If not set, there is only the last one,
  /// which reads the means of all pixels, as is usual for pictures of 32 x 32.
  std::optional<int> classifier_size = 4096;
};
NetShape vgg(const std::string& name, const VggShape& shape);

/// The fields that transformers' MobileNetV1Config and MobileNetV2Config share, with their defaults.
struct MobileNetShape {
  int picture_size = kImageNetPixels, num_classes = kImageNetClasses;
  double depth_multiplier = 1;
  int min_depth = 8;  // least number of channels of a convolution
  bool tf_padding = true;
  bool relu6 = true;
  double norm_epsilon = 1e-3;
};
NetShape mobilenet(const std::string& name, const MobileNetShape& shape);

/// A MobileNet V2 as transformers' MobileNetV2Config describes it.
struct MobileNetV2Shape {
  MobileNetShape common;
  int depth_divisible_by = 8;
  double expand_ratio = 6;
  bool finegrained_output = true;
  bool first_layer_is_expansion = true;
};
NetShape mobilenet_v2(const std::string& name, const MobileNetV2Shape& shape);

/// Returns the names of nets of published sizes.
const std::vector<std::string>& known_nets();

/// Returns one of known_nets(), for ImageNet. Throws InvalidInput that lists the names for an unknown one.
NetShape find_net(const std::string& name);

}  // namespace frostpipe
