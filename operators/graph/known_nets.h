#pragma once
#include <optional>
#include <string>
#include <vector>

#include "operators/graph/net_shape.h"

// Families of nets, in the terms of those who publish their weights.

namespace frostpipe {

inline constexpr int kImageNetPixels = 224, kImageNetClasses = 1000;

/// A ResNet as transformers' ResNetConfig describes it; the defaults are ResNet-50.
struct ResNetShape {
  int picture_size = kImageNetPixels, num_classes = kImageNetClasses;
  int embedding_size = 64;
  std::vector<int> hidden_sizes = {256, 512, 1024, 2048}, depths = {3, 4, 6, 3};
  bool bottleneck = true;
  bool downsample_in_first_stage = false;
  /// The stride is in the block's first convolution, of one pixel, not in the second.
  bool downsample_in_bottleneck = false;
};
NetShape resnet(const std::string& name, const ResNetShape& shape);

/// Each of a VGG's five stages halves the pixels of a side.
inline constexpr int kSmallestVggPicture = 32;

/// A VGG with batch norm as torchvision has it; the defaults are VGG-16. Its classifier reads 7 x 7 pixels, to which
/// others are averaged; of fewer, each is read several times.
struct VggShape {
  int picture_size = kImageNetPixels, num_classes = kImageNetClasses;
  std::vector<int> hidden_sizes = {64, 128, 256, 512, 512}, depths = {2, 2, 3, 3, 3};
  /// Outputs of each of the two linear layers before the last one. None: the last one is alone and reads the means of
  /// all pixels, as is usual for pictures of 32 x 32.
  std::optional<int> classifier_size = 4096;
};
NetShape vgg(const std::string& name, const VggShape& shape);

/// The fields that transformers' MobileNetV1Config and MobileNetV2Config share, with their defaults.
struct MobileNetShape {
  int picture_size = kImageNetPixels, num_classes = kImageNetClasses;
  double depth_multiplier = 1;
  int min_depth = 8;  // channels of any layer
  bool tf_padding = true;
  bool relu6 = true;
  double norm_epsilon = 1e-3;
};
NetShape mobilenet(const std::string& name, const MobileNetShape& shape);

/// MobileNetV2Config.
struct MobileNetV2Shape {
  MobileNetShape common;
  int depth_divisible_by = 8;
  double expand_ratio = 6;
  bool finegrained_output = true;
  bool first_layer_is_expansion = true;
};
NetShape mobilenet_v2(const std::string& name, const MobileNetV2Shape& shape);

/// Nets of published sizes.
const std::vector<std::string>& known_nets();

/// One of known_nets, for pictures of `picture_size` x `picture_size` pixels. Throws InvalidInput that lists them, and
/// where the pictures are too small for it.
NetShape find_net(const std::string& name, int picture_size = kImageNetPixels, int num_classes = kImageNetClasses);

}  // namespace frostpipe
