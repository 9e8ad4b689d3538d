#include "operators/graph/known_nets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace frostpipe {
namespace {

/// Builds a net layer by layer; by default each layer's input is the layer before it.
class NetMaker {
 public:
  NetMaker(const std::string& name, int picture_size) { net_ = {.name = name, .picture_size = picture_size}; }

  struct Convolution {
    int channels = 0, kernel = 1, stride = 1, groups = 1;
    bool bias = false;
    bool relu = true;
    bool tf_padding = false;
    double norm_epsilon = NetLayer().norm_epsilon;
    double relu_limit = NetLayer().relu_limit;
  };

  /// Adds a convolution with batch norm. Its output has as many pixels on a side as its input, divided by the stride
  /// and rounded up.
  int add(const std::string& name, const Convolution& one, std::optional<int> input = std::nullopt) {
    const int from = input.value_or(last());
    const int size = size_of(from), in_last_stride = size % one.stride == 0 ? one.stride : size % one.stride;
    const int all_padding = one.tf_padding ? std::max(one.kernel - in_last_stride, 0) : one.kernel / 2 * 2;
    return push({.name = name,
                 .input = from,
                 .in_channels = channels_of(from),
                 .out_channels = one.channels,
                 .kernel = one.kernel,
                 .stride = one.stride,
                 .padding = all_padding / 2,
                 .groups = one.groups,
                 .padding_after = all_padding % 2,
                 .in_size = size,
                 .out_size = (size + one.stride - 1) / one.stride,
                 .batch_norm = true,
                 .bias = one.bias,
                 .relu = one.relu,
                 .norm_epsilon = one.norm_epsilon,
                 .relu_limit = one.relu_limit});
  }

  int add_maximum(const std::string& name, int kernel, int stride, int padding = 0) {
    return push({.name = name,
                 .kind = NetLayer::Kind::max_pooling,
                 .input = last(),
                 .in_channels = channels_of(last()),
                 .out_channels = channels_of(last()),
                 .kernel = kernel,
                 .stride = stride,
                 .padding = padding,
                 .in_size = size_of(last()),
                 .out_size = (size_of(last()) + 2 * padding - kernel) / stride + 1});
  }

  /// Adds average pooling to size x size pixels, each the mean of a region (AdaptiveAvgPool2d).
  int add_mean(const std::string& name, int size = 1) {
    return push({.name = name,
                 .kind = NetLayer::Kind::average_pooling,
                 .input = last(),
                 .in_channels = channels_of(last()),
                 .out_channels = channels_of(last()),
                 .in_size = size_of(last()),
                 .out_size = size});
  }

  int add_linear(const std::string& name, int outputs, bool relu = false) {
    const int pixels = size_of(last()) * size_of(last());
    return push({.name = name,
                 .input = last(),
                 .in_channels = channels_of(last()) * pixels,
                 .out_channels = outputs,
                 .bias = true,
                 .relu = relu});
  }

  void set_addend(int layer, int addend) { net_.layers[layer].addend = addend; }
  int last() const { return static_cast<int>(net_.layers.size()) - 1; }
  int channels_of(int layer) const { return layer < 0 ? net_.channels : net_.layers[layer].out_channels; }
  int size_of(int layer) const { return layer < 0 ? net_.picture_size : net_.layers[layer].out_size; }
  NetShape take() { return std::move(net_); }

 private:
  int push(NetLayer layer) {
    net_.layers.push_back(std::move(layer));
    return last();
  }

  NetShape net_;
};

/// Adds a residual block. Its shortcut precedes the block's last convolution, which adds the shortcut's output.
void add_residual_block(NetMaker& net, const std::string& name, int channels, int stride, const ResNetShape& shape) {
  constexpr int kReduction = 4;
  const int input = net.last();
  int shortcut = input;
  if (stride > 1 || net.channels_of(input) != channels)
    shortcut = net.add(name + ".shortcut", {.channels = channels, .stride = stride, .relu = false}, input);
  int end = 0;
  if (shape.bottleneck) {
    const bool in_first = shape.downsample_in_bottleneck;
    net.add(name + ".conv1", {.channels = channels / kReduction, .stride = in_first ? stride : 1}, input);
    net.add(name + ".conv2", {.channels = channels / kReduction, .kernel = 3, .stride = in_first ? 1 : stride});
    end = net.add(name + ".conv3", {.channels = channels});
  } else {
    net.add(name + ".conv1", {.channels = channels, .kernel = 3, .stride = stride}, input);
    end = net.add(name + ".conv2", {.channels = channels, .kernel = 3});
  }
  net.set_addend(end, shortcut);
}

/// Adds the kinds of convolutions that both MobileNets have.
class MobileNetMaker : public NetMaker {
 public:
  MobileNetMaker(const std::string& name, const MobileNetShape& shape)
      : NetMaker(name, shape.picture_size), shape_(shape) {}

  int add_convolution(const std::string& name, int channels, int kernel, int stride, int groups = 1, bool relu = true) {
    return add(name, {.channels = channels,
                      .kernel = kernel,
                      .stride = stride,
                      .groups = groups,
                      .relu = relu,
                      .tf_padding = shape_.tf_padding,
                      .norm_epsilon = shape_.norm_epsilon,
                      .relu_limit = shape_.relu6 ? 6 : NetLayer().relu_limit});
  }
  int add_depthwise(const std::string& name, int stride) {
    return add_convolution(name, channels_of(last()), 3, stride, channels_of(last()));
  }

  NetShape classified() {
    add_mean("pool");
    add_linear("fc", shape_.num_classes);
    return take();
  }

 private:
  const MobileNetShape& shape_;
};

/// Returns a multiple of depth_divisible_by near the value, but at least min_depth and nine tenths of the value.
int rounded_channels(double value, const MobileNetV2Shape& shape) {
  const double whole = std::nearbyint(value);
  const int divisor = shape.depth_divisible_by;
  const int rounded = static_cast<int>(whole + divisor / 2.0) / divisor * divisor;
  const int channels = std::max(shape.common.min_depth, rounded);
  return channels < 0.9 * whole ? channels + divisor : channels;
}

}  // namespace

NetShape resnet(const std::string& name, const ResNetShape& shape) {
  NetMaker net(name, shape.picture_size);
  net.add("conv1", {.channels = shape.embedding_size, .kernel = 7, .stride = 2});
  net.add_maximum("pool1", 3, 2, 1);
  for (int stage = 0; stage < static_cast<int>(shape.depths.size()); ++stage)
    for (int block = 0; block < shape.depths[stage]; ++block) {
      const bool halves = block == 0 && (stage > 0 || shape.downsample_in_first_stage);
      add_residual_block(net, fmt::format("stage{}.{}", stage + 1, block), shape.hidden_sizes[stage], halves ? 2 : 1,
                         shape);
    }
  net.add_mean("pool2");
  net.add_linear("fc", shape.num_classes);
  return net.take();
}

NetShape vgg(const std::string& name, const VggShape& shape) {
  constexpr int kClassified = 7;  // pixels on a side that the classifier reads
  NetMaker net(name, shape.picture_size);
  for (int stage = 0; stage < static_cast<int>(shape.depths.size()); ++stage) {
    for (int i = 0; i < shape.depths[stage]; ++i)
      net.add(fmt::format("stage{}.conv{}", stage + 1, i + 1),
              {.channels = shape.hidden_sizes[stage], .kernel = 3, .bias = true});
    net.add_maximum(fmt::format("pool{}", stage + 1), 2, 2);
  }
  const int size = shape.classifier_size ? kClassified : 1;
  if (net.size_of(net.last()) != size) net.add_mean("mean", size);
  if (shape.classifier_size) {
    net.add_linear("fc1", *shape.classifier_size, true);
    net.add_linear("fc2", *shape.classifier_size, true);
  }
  net.add_linear(shape.classifier_size ? "fc3" : "fc", shape.num_classes);
  return net.take();
}

NetShape mobilenet(const std::string& name, const MobileNetShape& shape) {
  MobileNetMaker net(name, shape);
  const auto multiplied = [&](int channels) {
    return std::max(static_cast<int>(channels * shape.depth_multiplier), shape.min_depth);
  };
  net.add_convolution("conv1", multiplied(32), 3, 2);
  const std::vector<std::pair<int, int>> blocks = {{64, 1},  {128, 2},  {128, 1}, {256, 2}, {256, 1},
                                                   {512, 2}, {512, 1},  {512, 1}, {512, 1}, {512, 1},
                                                   {512, 1}, {1024, 2}, {1024, 1}};
  for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
    net.add_depthwise(fmt::format("block{}.depthwise", i + 1), blocks[i].second);
    net.add_convolution(fmt::format("block{}.pointwise", i + 1), multiplied(blocks[i].first), 1, 1);
  }
  return net.classified();
}

NetShape mobilenet_v2(const std::string& name, const MobileNetV2Shape& shape) {
  MobileNetMaker net(name, shape.common);
  const auto multiplied = [&](int channels) {
    return rounded_channels(channels * shape.common.depth_multiplier, shape);
  };
  net.add_convolution("stem.first", multiplied(32), 3, 2);
  if (!shape.first_layer_is_expansion) net.add_convolution("stem.expand", multiplied(32), 1, 1);
  net.add_depthwise("stem.depthwise", 1);
  net.add_convolution("stem.reduce", multiplied(16), 1, 1, 1, false);
  const std::vector<std::pair<int, int>> blocks = {{24, 2},  {24, 1},  {32, 2},  {32, 1}, {32, 1}, {64, 2},
                                                   {64, 1},  {64, 1},  {64, 1},  {96, 1}, {96, 1}, {96, 1},
                                                   {160, 2}, {160, 1}, {160, 1}, {320, 1}};
  for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
    const auto [channels, stride] = blocks[i];
    const std::string name_of_block = fmt::format("block{}.", i + 1);
    const int input = net.last(), in_channels = net.channels_of(input);
    net.add_convolution(name_of_block + "expand", rounded_channels(in_channels * shape.expand_ratio, shape), 1, 1);
    net.add_depthwise(name_of_block + "depthwise", stride);
    const int end = net.add_convolution(name_of_block + "reduce", multiplied(channels), 1, 1, 1, false);
    if (stride == 1 && net.channels_of(end) == in_channels) net.set_addend(end, input);
  }
  const bool keeps_last = shape.finegrained_output && shape.common.depth_multiplier < 1;
  net.add_convolution("last", keeps_last ? 1280 : multiplied(1280), 1, 1);
  return net.classified();
}

const std::vector<std::string>& known_nets() {
  static const std::vector<std::string> names = {"resnet-18", "resnet-50", "vgg-16-bn", "mobilenet"};
  return names;
}

NetShape find_net(const std::string& name) {
  if (name == "resnet-18")
    return resnet(name, {.hidden_sizes = {64, 128, 256, 512}, .depths = {2, 2, 2, 2}, .bottleneck = false});
  if (name == "resnet-50") return resnet(name, {});
  if (name == "vgg-16-bn") return vgg(name, {});
  if (name == "mobilenet") return mobilenet(name, {});
  throw InvalidInput("net", fmt::format("must be one of {}", fmt::join(known_nets(), ", ")), "\"" + name + "\"");
}

}  // namespace frostpipe
