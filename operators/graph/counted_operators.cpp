#include "operators/graph/counted_operators.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace frostpipe {
namespace {

constexpr Bytes kFloat = 4;
/// An update by SGD with momentum reads weight, gradient and momentum, and writes weight and momentum.
constexpr double kUpdatePasses = 5;

using Kind = OperatorKind;

class GraphMaker {
 public:
  GraphMaker(const NetShape& net, int batch) : net_(net) {
    graph_.net = net.name;
    graph_.batch = batch;
  }

  CountedOperators make() {
    for (int layer = 0; layer < num_layers(); ++layer) add_forward(layer);
    const int loss = add("loss", Kind::elementwise, num_layers() - 1, {.bytes = 3.0 * output_bytes(num_layers() - 1)},
                         output_bytes(num_layers() - 1));
    connect({outputs_.back()}, loss);
    gradients_.resize(net_.layers.size());
    gradients_.back() = {loss};
    for (int layer = num_layers() - 1; layer >= 0; --layer) add_backward(layer);
    return {.graph = std::move(graph_), .costs = std::move(costs_)};
  }

 private:
  int num_layers() const { return static_cast<int>(net_.layers.size()); }
  Bytes output_bytes(int layer) const {
    const NetLayer& one = net_.layers[layer];
    return kFloat * graph_.batch * one.out_channels * one.out_size * one.out_size;
  }
  Bytes input_bytes(int layer) const {
    const NetLayer& one = net_.layers[layer];
    return kFloat * graph_.batch * one.in_channels * one.in_size * one.in_size;
  }
  Bytes weight_bytes(int layer) const { return kFloat * num_weights(net_.layers[layer]); }
  /// Returns the bytes that a part of batch norm's statistics, or of their gradient, sends: two numbers per channel.
  Bytes statistics_bytes(int layer) const { return 2 * kFloat * net_.layers[layer].out_channels; }

  int add(const std::string& name, Kind kind, int layer, OperatorCost cost, Bytes output) {
    Operator one{.name = name, .kind = kind, .layer = layer, .output_bytes = output};
    const bool has_weights =
        kind == Kind::forward || kind == Kind::input_gradient || kind == Kind::weight_gradient || kind == Kind::update;
    if (has_weights) one.weight_bytes = weight_bytes(layer);
    if (kind == Kind::norm_update) one.weight_bytes = statistics_bytes(layer);
    graph_.operators.push_back(std::move(one));
    costs_.push_back(cost);
    return static_cast<int>(graph_.operators.size()) - 1;
  }

  void connect(const std::vector<int>& from, int to, OperatorEdgeKind kind = OperatorEdgeKind::samples) {
    for (const int one : from)
      if (one >= 0) graph_.edges.push_back({.from = one, .to = to, .kind = kind});
  }

  int output_of(int layer) const { return layer < 0 ? -1 : outputs_[layer]; }

  /// Returns the cost of a pass over input, weights and output. The input gradient and the weight gradient each cost as
  /// much as the forward.
  OperatorCost product_cost(int layer) const {
    return {.operations = 2.0 * static_cast<double>(multiply_adds(net_.layers[layer])) * graph_.batch,
            .bytes = static_cast<double>(input_bytes(layer) + output_bytes(layer) + weight_bytes(layer))};
  }

  void add_forward(int layer) {
    const NetLayer& one = net_.layers[layer];
    const auto size = static_cast<double>(output_bytes(layer));
    if (is_pooling(one)) {
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
      sums = add(one.name + ".statistics", Kind::statistics, layer, {.bytes = size}, statistics_bytes(layer));
      connect({product}, sums);
      output = add(one.name + ".normalise", Kind::normalise, layer, {.bytes = (one.addend ? 3 : 2) * size},
                   output_bytes(layer));
      connect({product}, output);
      connect({sums}, output, OperatorEdgeKind::statistics);
      if (one.addend) connect({outputs_[*one.addend]}, output);
    }
    products_.push_back(product), statistics_.push_back(sums), outputs_.push_back(output);
  }

  /// Adds a layer's operators of the backward. gradients_[layer] are the operators whose outputs add up to the gradient
  /// of the layer's output.
  void add_backward(int layer) {
    const NetLayer& one = net_.layers[layer];
    const auto size = static_cast<double>(output_bytes(layer));
    std::vector<int> gradient = gradients_[layer];
    if (is_pooling(one)) {
      const int pooled = add(one.name + ".gradient", Kind::elementwise_gradient, layer,
                             {.bytes = static_cast<double>(input_bytes(layer)) + size}, input_bytes(layer));
      connect(gradient, pooled);
      if (one.kind == NetLayer::Kind::max_pooling) connect({output_of(one.input)}, pooled);
      gradients_[one.input].push_back(pooled);
      return;
    }
    if (one.addend) {
      const int sum = add(one.name + ".sum_gradient", Kind::elementwise_gradient, layer,
                          {.bytes = (static_cast<double>(gradient.size()) + 2) * size}, output_bytes(layer));
      connect(gradient, sum);
      if (one.relu) connect({outputs_[layer]}, sum);
      gradient = {sum};
      gradients_[*one.addend].push_back(sum);
    }
    if (one.batch_norm) gradient = {add_batch_norm_backward(layer, gradient)};
    const bool masks = one.relu && !one.batch_norm;  // the forward itself applied the ReLU
    if (one.input >= 0) {
      const int of_input =
          add(one.name + ".input_gradient", Kind::input_gradient, layer, product_cost(layer), input_bytes(layer));
      connect(gradient, of_input);
      if (masks) connect({products_[layer]}, of_input);
      gradients_[one.input].push_back(of_input);
    }
    const int of_weights = add(one.name + ".weight_gradient", Kind::weight_gradient, layer, product_cost(layer), 0);
    connect(gradient, of_weights);
    if (masks) connect({products_[layer]}, of_weights);
    connect({output_of(one.input)}, of_weights);
    const int update = add(one.name + ".update", Kind::update, layer,
                           {.bytes = kUpdatePasses * static_cast<double>(weight_bytes(layer))}, 0);
    connect({of_weights}, update, OperatorEdgeKind::weight_gradient);
  }

  int add_batch_norm_backward(int layer, const std::vector<int>& gradient) {
    const NetLayer& one = net_.layers[layer];
    const auto size = static_cast<double>(output_bytes(layer));
    const int sums = add(one.name + ".statistics_gradient", Kind::statistics_gradient, layer, {.bytes = 2 * size},
                         statistics_bytes(layer));
    connect(gradient, sums);
    connect({products_[layer]}, sums);
    connect({statistics_[layer]}, sums, OperatorEdgeKind::statistics);
    const int apply = add(one.name + ".normalise_gradient", Kind::normalise_gradient, layer, {.bytes = 3 * size},
                          output_bytes(layer));
    connect(gradient, apply);
    connect({products_[layer]}, apply);
    connect({statistics_[layer], sums}, apply, OperatorEdgeKind::statistics);
    const int update = add(one.name + ".norm_update", Kind::norm_update, layer,
                           {.bytes = kUpdatePasses * static_cast<double>(statistics_bytes(layer))}, 0);
    connect({statistics_[layer], sums}, update, OperatorEdgeKind::statistics);
    return apply;
  }

  const NetShape& net_;
  OperatorGraph graph_;
  std::vector<OperatorCost> costs_;
  /// Operators by layer: the convolution, its batch norm's statistics, and the one whose output the next layers read.
  /// They are the same operator if the layer consists of only one.
  std::vector<int> products_, statistics_, outputs_;
  std::vector<std::vector<int>> gradients_;
};

}  // namespace

void require_batch(const NetShape& net, int batch) {
  const auto bytes_per_sample = [](const NetLayer& layer) {
    return kFloat * layer.out_channels * layer.out_size * layer.out_size;
  };
  const NetLayer& largest = *std::ranges::max_element(net.layers, {}, bytes_per_sample);
  const std::int64_t most = kMaxOperatorBytes / bytes_per_sample(largest);
  if (batch > most)
    throw InvalidInput("--global-batch",
                       fmt::format("must be at most {} for {}, so that the output of {} has at most {}", most, net.name,
                                   largest.name, format_bytes(kMaxOperatorBytes)),
                       std::to_string(batch));
}

CountedOperators counted_operators(const NetShape& net, int batch) { return GraphMaker(net, batch).make(); }

}  // namespace frostpipe
