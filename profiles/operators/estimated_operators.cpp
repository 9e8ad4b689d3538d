#include "profiles/operators/estimated_operators.h"

#include <algorithm>
#include <cmath>

namespace frostpipe {
namespace {

constexpr Bytes kFloat = 4;
/// An update by SGD with momentum reads weight, gradient and momentum, and writes the first and the last.
constexpr double kUpdatePasses = 5;

using Kind = OperatorKind;

class GraphMaker {
 public:
  GraphMaker(const NetShape& net, int batch, const std::vector<Hardware>& devices) : net_(net), devices_(devices) {
    graph_.net = net.name;
    graph_.batch = batch;
  }

  OperatorGraph make() {
    for (int layer = 0; layer < num_layers(); ++layer) add_forward(layer);
    const int loss = add("loss", Kind::elementwise, num_layers() - 1, {.bytes = 3.0 * output_bytes(num_layers() - 1)},
                         output_bytes(num_layers() - 1));
    connect({outputs_.back()}, loss);
    gradients_.resize(net_.layers.size());
    gradients_.back() = {loss};
    for (int layer = num_layers() - 1; layer >= 0; --layer) add_backward(layer);
    return std::move(graph_);
  }

 private:
  /// What an operator computes and moves in its device's memory, of the whole mini-batch.
  struct Cost {
    double operations = 0, bytes = 0;
  };

  int num_layers() const { return static_cast<int>(net_.layers.size()); }
  Bytes output_bytes(int layer) const {
    const NetLayer& one = net_.layers[layer];
    return kFloat * graph_.batch * one.out_channels * one.out_size * one.out_size;
  }
  Bytes input_bytes(int layer) const {
    const NetLayer& one = net_.layers[layer];
    return kFloat * graph_.batch * one.in_channels * one.in_size * one.in_size;
  }
  Bytes weight_bytes(int layer) const { return kFloat * num_parameters(net_.layers[layer]); }

  int add(const std::string& name, Kind kind, int layer, Cost cost, Bytes output) {
    Operator one{.name = name, .kind = kind, .layer = layer, .output_bytes = output};
    const bool has_weights =
        kind == Kind::forward || kind == Kind::input_gradient || kind == Kind::weight_gradient || kind == Kind::update;
    if (has_weights) one.weight_bytes = weight_bytes(layer);
    for (const auto& device : devices_) {
      const DeviceRates rates = rates_of(device);
      const double seconds = std::max(cost.operations / rates.flops_per_second, cost.bytes / rates.bytes_per_second);
      one.times.push_back({.device_class = device.name,
                           .overhead_ns = kOperatorOverheadNs,
                           .work_ns = static_cast<Nanoseconds>(std::llround(1e9 * seconds))});
    }
    graph_.operators.push_back(std::move(one));
    return static_cast<int>(graph_.operators.size()) - 1;
  }

  void connect(const std::vector<int>& from, int to, OperatorEdgeKind kind = OperatorEdgeKind::samples) {
    for (const int one : from)
      if (one >= 0) graph_.edges.push_back({.from = one, .to = to, .kind = kind});
  }

  int output_of(int layer) const { return layer < 0 ? -1 : outputs_[layer]; }

  /// Of a pass over input, weights and output: each of the three gradients has the forward's.
  Cost product_cost(int layer) const {
    return {.operations = 2.0 * static_cast<double>(multiply_adds(net_.layers[layer])) * graph_.batch,
            .bytes = static_cast<double>(input_bytes(layer) + output_bytes(layer) + weight_bytes(layer))};
  }

  void add_forward(int layer) {
    const NetLayer& one = net_.layers[layer];
    const auto size = static_cast<double>(output_bytes(layer));
    if (one.kind == NetLayer::Kind::pooling) {
      const int pooled = add(one.name, Kind::elementwise, layer,
                             {.bytes = static_cast<double>(input_bytes(layer)) + size}, output_bytes(layer));
      connect({output_of(one.input)}, pooled);
      products_.push_back(pooled), statistics_.push_back(pooled), outputs_.push_back(pooled);
      return;
    }
    const int product = add(one.name, Kind::forward, layer, product_cost(layer), output_bytes(layer));
    connect({output_of(one.input)}, product);
    int sums = product, output = product;
    if (one.batch_norm) {
      sums = add(one.name + ".statistics", Kind::statistics, layer, {.bytes = size}, 2 * kFloat * one.out_channels);
      connect({product}, sums);
      output = add(one.name + ".normalise", Kind::normalise, layer, {.bytes = (one.addend ? 3 : 2) * size},
                   output_bytes(layer));
      connect({product}, output);
      connect({sums}, output, OperatorEdgeKind::statistics);
      if (one.addend) connect({outputs_[*one.addend]}, output);
    }
    products_.push_back(product), statistics_.push_back(sums), outputs_.push_back(output);
  }

  /// gradients_[layer] are the operators whose outputs add up to the gradient of the layer's output.
  void add_backward(int layer) {
    const NetLayer& one = net_.layers[layer];
    const auto size = static_cast<double>(output_bytes(layer));
    std::vector<int> gradient = gradients_[layer];
    if (one.kind == NetLayer::Kind::pooling) {
      const int pooled = add(one.name + ".gradient", Kind::elementwise_gradient, layer,
                             {.bytes = static_cast<double>(input_bytes(layer)) + size}, input_bytes(layer));
      connect(gradient, pooled);
      gradients_[one.input].push_back(pooled);
      return;
    }
    if (one.addend) {
      const int sum = add(one.name + ".sum_gradient", Kind::elementwise_gradient, layer,
                          {.bytes = (static_cast<double>(gradient.size()) + 2) * size}, output_bytes(layer));
      connect(gradient, sum);
      gradient = {sum};
      gradients_[*one.addend].push_back(sum);
    }
    if (one.batch_norm) gradient = {add_batch_norm_backward(layer, gradient)};
    if (one.input >= 0) {
      const int of_input =
          add(one.name + ".input_gradient", Kind::input_gradient, layer, product_cost(layer), input_bytes(layer));
      connect(gradient, of_input);
      gradients_[one.input].push_back(of_input);
    }
    const int of_weights = add(one.name + ".weight_gradient", Kind::weight_gradient, layer, product_cost(layer), 0);
    connect(gradient, of_weights);
    connect({output_of(one.input)}, of_weights);
    const int update = add(one.name + ".update", Kind::update, layer,
                           {.bytes = kUpdatePasses * static_cast<double>(weight_bytes(layer))}, 0);
    connect({of_weights}, update, OperatorEdgeKind::weight_gradient);
  }

  int add_batch_norm_backward(int layer, const std::vector<int>& gradient) {
    const NetLayer& one = net_.layers[layer];
    const auto size = static_cast<double>(output_bytes(layer));
    const int sums = add(one.name + ".statistics_gradient", Kind::statistics_gradient, layer, {.bytes = 2 * size},
                         2 * kFloat * one.out_channels);
    connect(gradient, sums);
    connect({products_[layer]}, sums);
    connect({statistics_[layer]}, sums, OperatorEdgeKind::statistics);
    const int apply = add(one.name + ".normalise_gradient", Kind::normalise_gradient, layer, {.bytes = 3 * size},
                          output_bytes(layer));
    connect(gradient, apply);
    connect({products_[layer]}, apply);
    connect({sums}, apply, OperatorEdgeKind::statistics);
    return apply;
  }

  const NetShape& net_;
  const std::vector<Hardware>& devices_;
  OperatorGraph graph_;
  /// By layer: the convolution, its batch norm's statistics and what the next layers read; the same operator where a
  /// layer has no more.
  std::vector<int> products_, statistics_, outputs_;
  std::vector<std::vector<int>> gradients_;
};

}  // namespace

OperatorGraph estimated_operators(const NetShape& net, int batch, const std::vector<Hardware>& devices) {
  return GraphMaker(net, batch, devices).make();
}

}  // namespace frostpipe
