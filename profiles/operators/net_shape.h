#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace frostpipe {

/// A convolution, a linear layer (a convolution of one pixel) or a pooling, with what follows it: batch norm, the
/// addition of another layer's output, ReLU.
struct NetLayer {
  enum class Kind { convolution, pooling };
  std::string name;
  Kind kind = Kind::convolution;
  int input = -1;                            // the layer whose output it reads; -1 = the picture
  std::optional<int> addend = std::nullopt;  // the layer whose output is added before the ReLU
  int in_channels = 0, out_channels = 0, kernel = 1, groups = 1;
  int in_size = 1, out_size = 1;  // pixels of a side
  bool batch_norm = false, bias = false;
};

struct NetShape {
  std::string name;
  std::vector<NetLayer> layers;
};

/// Of a layer, with its batch norm's two per channel.
std::int64_t num_parameters(const NetLayer& layer);
std::int64_t num_parameters(const NetShape& net);
/// Multiply-adds of one sample's forward.
std::int64_t multiply_adds(const NetLayer& layer);
std::int64_t multiply_adds(const NetShape& net);

/// Of pictures of 224 x 224 pixels and 1000 classes.
const std::vector<std::string>& known_nets();

/// One of known_nets. Throws InvalidInput that lists them.
NetShape find_net(const std::string& name);

}  // namespace frostpipe
