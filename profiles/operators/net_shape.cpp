#include "profiles/operators/net_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "profiles/error.h"

namespace frostpipe {
namespace {

constexpr int kClasses = 1000;

/// Adds layer after layer; the last one is the input of the next.
class NetMaker {
 public:
  NetMaker(const std::string& name, int channels, int picture_size) {
    net_ = {.name = name, .channels = channels, .picture_size = picture_size};
  }

  struct Convolution {
    int channels = 0, kernel = 1, stride = 1, groups = 1;
    bool bias = false;
    bool relu = true;
  };
  struct Pooling {
    NetLayer::Kind kind = NetLayer::Kind::average_pooling;
    int kernel = 1, stride = 1, padding = 0;
  };

  /// With batch norm. Its output has as many pixels as its input has, divided by the stride.
  int add(const std::string& name, const Convolution& one, std::optional<int> input = std::nullopt) {
    const int from = input.value_or(last());
    const int size = size_of(from);
    return push({.name = name,
                 .input = from,
                 .in_channels = channels_of(from),
                 .out_channels = one.channels,
                 .kernel = one.kernel,
                 .stride = one.stride,
                 .padding = one.kernel / 2,
                 .groups = one.groups,
                 .in_size = size,
                 .out_size = (size + one.stride - 1) / one.stride,
                 .batch_norm = true,
                 .bias = one.bias,
                 .relu = one.relu});
  }

  int add_pooling(const std::string& name, const Pooling& one) {
    const int size = size_of(last());
    return push({.name = name,
                 .kind = one.kind,
                 .input = last(),
                 .in_channels = channels_of(last()),
                 .out_channels = channels_of(last()),
                 .kernel = one.kernel,
                 .stride = one.stride,
                 .padding = one.padding,
                 .in_size = size,
                 .out_size = (size + 2 * one.padding - one.kernel) / one.stride + 1});
  }

  /// The mean of all pixels.
  int add_mean(const std::string& name) { return add_pooling(name, {.kernel = size_of(last())}); }

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

/// The shortcut comes before the block's last convolution, which adds it.
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

NetShape vgg16() {
  NetMaker net("vgg-16-bn", 3, 224);
  const std::vector<std::pair<int, int>> stages = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
  for (int stage = 0; stage < static_cast<int>(stages.size()); ++stage) {
    const auto [channels, count] = stages[stage];
    for (int i = 0; i < count; ++i)
      net.add(fmt::format("stage{}.conv{}", stage + 1, i + 1), {.channels = channels, .kernel = 3, .bias = true});
    net.add_pooling(fmt::format("pool{}", stage + 1), {.kind = NetLayer::Kind::max_pooling, .kernel = 2, .stride = 2});
  }
  net.add_linear("fc1", 4096, true);
  net.add_linear("fc2", 4096, true);
  net.add_linear("fc3", kClasses);
  return net.take();
}

NetShape mobilenet() {
  NetMaker net("mobilenet", 3, 224);
  net.add("conv1", {.channels = 32, .kernel = 3, .stride = 2});
  const std::vector<std::pair<int, int>> blocks = {{64, 1},  {128, 2},  {128, 1}, {256, 2}, {256, 1},
                                                   {512, 2}, {512, 1},  {512, 1}, {512, 1}, {512, 1},
                                                   {512, 1}, {1024, 2}, {1024, 1}};
  for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
    const int channels = net.channels_of(net.last());
    net.add(fmt::format("block{}.depthwise", i + 1),
            {.channels = channels, .kernel = 3, .stride = blocks[i].second, .groups = channels});
    net.add(fmt::format("block{}.pointwise", i + 1), {.channels = blocks[i].first});
  }
  net.add_mean("pool");
  net.add_linear("fc", kClasses);
  return net.take();
}

template <class Count>
std::int64_t sum_over(const NetShape& net, Count count) {
  return std::accumulate(net.layers.begin(), net.layers.end(), std::int64_t{0},
                         [&](std::int64_t sum, const NetLayer& layer) { return sum + count(layer); });
}

std::int64_t num_kernel_weights(const NetLayer& layer) {
  if (is_pooling(layer)) return 0;
  return std::int64_t{layer.out_channels} * (layer.in_channels / layer.groups) * layer.kernel * layer.kernel;
}

}  // namespace

bool is_pooling(const NetLayer& layer) { return layer.kind != NetLayer::Kind::convolution; }

std::int64_t num_weights(const NetLayer& layer) {
  return num_kernel_weights(layer) + (layer.bias ? layer.out_channels : 0);
}

std::int64_t num_parameters(const NetLayer& layer) {
  return num_weights(layer) + (layer.batch_norm ? 2 * layer.out_channels : 0);
}

std::int64_t num_parameters(const NetShape& net) {
  return sum_over(net, [](const NetLayer& layer) { return num_parameters(layer); });
}

std::int64_t multiply_adds(const NetLayer& layer) {
  return num_kernel_weights(layer) * layer.out_size * layer.out_size;
}

std::int64_t multiply_adds(const NetShape& net) {
  return sum_over(net, [](const NetLayer& layer) { return multiply_adds(layer); });
}

NetShape resnet(const std::string& name, const ResNetShape& shape) {
  NetMaker net(name, shape.channels, shape.picture_size);
  net.add("conv1", {.channels = shape.embedding_size, .kernel = 7, .stride = 2});
  net.add_pooling("pool1", {.kind = NetLayer::Kind::max_pooling, .kernel = 3, .stride = 2, .padding = 1});
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

const std::vector<std::string>& known_nets() {
  static const std::vector<std::string> names = {"resnet-18", "resnet-50", "vgg-16-bn", "mobilenet"};
  return names;
}

NetShape find_net(const std::string& name) {
  if (name == "resnet-18")
    return resnet(name, {.hidden_sizes = {64, 128, 256, 512}, .depths = {2, 2, 2, 2}, .bottleneck = false});
  if (name == "resnet-50") return resnet(name, {});
  if (name == "vgg-16-bn") return vgg16();
  if (name == "mobilenet") return mobilenet();
  throw InvalidInput("net", fmt::format("must be one of {}", fmt::join(known_nets(), ", ")), "\"" + name + "\"");
}

}  // namespace frostpipe
