#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace frostpipe {

/// A convolution, a linear layer (a convolution of one pixel) or a pooling, with what follows it: batch norm, the
/// addition of another layer's output, ReLU. A linear layer reads its input's channels and pixels as one row.
struct NetLayer {
  enum class Kind { convolution, max_pooling, average_pooling };
  std::string name;
  Kind kind = Kind::convolution;
  int input = -1;                            // the layer whose output it reads; -1 = the picture
  std::optional<int> addend = std::nullopt;  // the layer whose output is added before the ReLU
  int in_channels = 0, out_channels = 0, kernel = 1, stride = 1, padding = 0, groups = 1;
  int in_size = 1, out_size = 1;  // pixels of a side
  bool batch_norm = false, bias = false, relu = false;
  bool operator==(const NetLayer&) const = default;
};

struct NetShape {
  std::string name;
  int channels = 3, picture_size = 224;
  std::vector<NetLayer> layers;
  bool operator==(const NetShape&) const = default;
};

bool is_pooling(const NetLayer& layer);

/// Of the kernel, with the bias; batch norm's are not among them.
std::int64_t num_weights(const NetLayer& layer);
/// num_weights, and batch norm's scale and shift of each channel.
std::int64_t num_parameters(const NetLayer& layer);
std::int64_t num_parameters(const NetShape& net);
/// Multiply-adds of one sample's forward.
std::int64_t multiply_adds(const NetLayer& layer);
std::int64_t multiply_adds(const NetShape& net);

/// A ResNet as transformers' ResNetConfig describes it; the defaults are ResNet-50.
struct ResNetShape {
  int channels = 3, picture_size = 224, num_classes = 1000;
  int embedding_size = 64;
  std::vector<int> hidden_sizes = {256, 512, 1024, 2048}, depths = {3, 4, 6, 3};
  bool bottleneck = true;
  bool downsample_in_first_stage = false;
  /// The stride is in the block's first convolution, of one pixel, not in the second.
  bool downsample_in_bottleneck = false;
};
NetShape resnet(const std::string& name, const ResNetShape& shape);

/// Of pictures of 224 x 224 pixels and 1000 classes.
const std::vector<std::string>& known_nets();

/// One of known_nets. Throws InvalidInput that lists them.
NetShape find_net(const std::string& name);

}  // namespace frostpipe
