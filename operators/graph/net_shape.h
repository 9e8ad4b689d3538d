#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace frostpipe {

/// A convolution, a linear layer (a convolution of one pixel) or a pooling, with what may follow it, in this order:
/// batch norm, the addition of another layer's output, ReLU. A linear layer reads its input's channels and pixels as
/// one row.
struct NetLayer {
  /// Average pooling gives the mean of one region for each pixel of its output (AdaptiveAvgPool2d); its kernel, stride
  /// and padding are ignored.
  enum class Kind { convolution, max_pooling, average_pooling };
  std::string name;
  Kind kind = Kind::convolution;
  int input = -1;                            // the layer whose output it reads; -1 = the picture
  std::optional<int> addend = std::nullopt;  // the layer whose output is added before the ReLU
  int in_channels = 0, out_channels = 0, kernel = 1, stride = 1, padding = 0, groups = 1;
  int padding_after = 0;          // additional padding to the right and below, as in TensorFlow
  int in_size = 1, out_size = 1;  // pixels on a side
  bool batch_norm = false, bias = false, relu = false;
  double norm_epsilon = 1e-5;
  double relu_limit = std::numeric_limits<double>::infinity();  // upper limit of the output: 6 for ReLU6
  bool operator==(const NetLayer&) const = default;
};

struct NetShape {
  std::string name;
  int channels = 3, picture_size = 224;
  std::vector<NetLayer> layers;
  bool operator==(const NetShape&) const = default;
};

bool is_pooling(const NetLayer& layer);

/// Returns a hash of the layers and the shape of pictures, which does not depend on the net's name. Not cryptographic.
std::string fingerprint(const NetShape& net);

/// Returns the number of parameters of the kernel and the bias, without those of batch norm.
std::int64_t num_weights(const NetLayer& layer);
/// Returns num_weights() plus batch norm's scale and shift of each channel.
std::int64_t num_parameters(const NetLayer& layer);
std::int64_t num_parameters(const NetShape& net);
/// Returns the multiply-adds of one sample's forward.
std::int64_t multiply_adds(const NetLayer& layer);
std::int64_t multiply_adds(const NetShape& net);

}  // namespace frostpipe
