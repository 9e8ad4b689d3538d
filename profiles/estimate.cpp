#include "profiles/estimate.h"

#include <algorithm>
#include <numeric>

namespace frostpipe {
namespace {

/// One layer's share of the work, per sample.
struct LayerWork {
  double flops = 0;
  double kept_values = 0;                            // on every tensor rank
  double shared_values = 0;                          // kept by all tensor ranks together
  double split_values = 0, shared_split_values = 0;  // the same of what is kept from I to W
};

constexpr Bytes kValueBytes = 4;  // float32

class Estimator {
 public:
  Estimator(const TransformerShape& shape, const EstimateOptions& options) : shape_(shape), options_(options) {
    const int largest = *std::max_element(options.tensor_parallel_sizes.begin(), options.tensor_parallel_sizes.end());
    node_ = estimated_cluster({.ranks_per_node = largest}, options.device_type);
  }

  Estimate run() {
    const double t = shape_.tokens, h = shape_.hidden, f = shape_.intermediate;
    profile_.model = {.name = shape_.name, .hidden_size = shape_.hidden, .layers = {}, .edges = {}};
    profile_.machine = "an estimate from counted operations, not a measurement";
    add("embedding", LayerKind::embedding, std::nullopt, shape_.embedding_parameters,
        {.flops = shape_.embedding_flops, .kept_values = t * h, .split_values = t * h});
    const auto attention = static_cast<std::int64_t>(shape_.hidden) * (4 * shape_.hidden + 6);
    const auto mlp = static_cast<std::int64_t>(shape_.hidden) * (2 * shape_.intermediate + 3) + shape_.intermediate;
    for (int block = 0; block < shape_.blocks; ++block) {
      const std::string name = "block." + std::to_string(block);
      add(name + ".attention", LayerKind::attention, block, attention,
          {8 * t * h * h + 4 * t * t * h, 3 * t * h, 4 * t * h + 2 * shape_.heads * t * t, 2 * t * h, 4 * t * h});
      add(name + ".mlp", LayerKind::mlp, block, mlp, {4 * t * h * f, 3 * t * h, 2 * t * f, 2 * t * h, 2 * t * f});
    }
    const double predictions = shape_.head_on_every_token ? t : 1;
    add("head", LayerKind::head, std::nullopt, static_cast<std::int64_t>(shape_.outputs) * (shape_.hidden + 1),
        {2 * predictions * h * shape_.outputs, t * h, shape_.head_on_every_token ? predictions * shape_.outputs : 0,
         predictions * h, predictions * shape_.outputs});
    profile_.workload = Workload{.name = "samples of " + std::to_string(shape_.tokens) + " tokens",
                                 .num_samples = options_.num_samples,
                                 .tokens = static_cast<double>(shape_.tokens),
                                 .longest_tokens = shape_.tokens,
                                 .global_batch_size = options_.global_batch_size};
    profile_.cache = CacheSpeed{.read = {10'000, 10'000'000'000}, .write = {10'000, 5'000'000'000}};
    return {std::move(profile_), estimated_cluster(options_, options_.device_type)};
  }

 private:
  void add(std::string name, LayerKind kind, std::optional<int> block, std::int64_t parameters, const LayerWork& work) {
    const int layer = static_cast<int>(profile_.model.layers.size());
    if (layer > 0) profile_.model.edges.push_back({layer - 1, layer});
    profile_.model.layers.push_back(
        {.name = std::move(name), .kind = kind, .block = block, .parameter_count = parameters});
    for (int size = 1;; size = std::min(2 * size, options_.global_batch_size)) {
      for (const int tensor_ranks : options_.tensor_parallel_sizes)
        add_measurement(layer, kind, size, tensor_ranks, work);
      if (size == options_.global_batch_size) break;
    }
    const double update = 28.0 * static_cast<double>(parameters) / options_.rates.bytes_per_second;
    profile_.updates.push_back({.layer = layer,
                                .device_type = options_.device_type,
                                .optimizer = Optimizer::kAdamW,
                                .update_ns = options_.rates.overhead_ns + static_cast<Nanoseconds>(1e9 * update)});
  }

  void add_measurement(int layer, LayerKind kind, int size, int tensor_ranks, const LayerWork& work) {
    const auto pass = options_.rates.overhead_ns + static_cast<Nanoseconds>(1e9 * size * work.flops / tensor_ranks /
                                                                            options_.rates.flops_per_second);
    const auto values = [&](double per_sample) { return static_cast<Bytes>(size * per_sample) * kValueBytes; };
    const double activation = static_cast<double>(shape_.tokens) * shape_.hidden;
    const bool in_block = kind == LayerKind::attention || kind == LayerKind::mlp;
    const Nanoseconds reduction =
        in_block ? all_reduce_ns(node_, tensor_ranks_of(tensor_ranks), values(activation)) : 0;
    profile_.measurements.push_back(
        {.key = {.layer = layer,
                 .device_type = options_.device_type,
                 .micro_batch_size = size,
                 .tokens = shape_.tokens,
                 .tensor_parallel_size = tensor_ranks},
         .cost = {.forward_ns = pass + reduction,
                  .input_gradient_ns = pass + reduction,
                  .weight_gradient_ns = pass,
                  .frozen_forward_ns = pass + reduction,
                  .output_activation_bytes =
                      values(kind == LayerKind::head ? shape_.outputs * (shape_.head_on_every_token ? shape_.tokens : 1)
                                                     : activation),
                  .saved_activation_bytes = values(work.kept_values + work.shared_values / tensor_ranks),
                  .workspace_bytes = values(2 * activation),
                  .split_backward = SplitBackward{
                      .input_ns = pass + reduction,
                      .weight_ns = pass,
                      .kept_bytes = values(work.split_values + work.shared_split_values / tensor_ranks)}}});
  }

  static std::vector<int> tensor_ranks_of(int size) {
    std::vector<int> ranks(size);
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  const TransformerShape& shape_;
  const EstimateOptions& options_;
  Cluster node_;  // all tensor ranks in one
  Profile profile_;
};

}  // namespace

const std::vector<TransformerShape>& known_shapes() {
  static const std::vector<TransformerShape> shapes{
      {.name = "vit-b16",
       .blocks = 12,
       .hidden = 768,
       .intermediate = 3072,
       .heads = 12,
       .tokens = 197,
       .embedding_parameters = 16 * 16 * 3 * 768 + 768 + 768 + 197 * 768,
       .embedding_flops = 2.0 * 196 * 768 * 768,
       .outputs = 1000},
      {.name = "bert-large",
       .blocks = 24,
       .hidden = 1024,
       .intermediate = 4096,
       .heads = 16,
       .tokens = 384,
       .embedding_parameters = (30522 + 512 + 2 + 2) * 1024,
       .embedding_flops = 20.0 * 384 * 1024,
       .outputs = 2},
  };
  return shapes;
}

Estimate estimate(const TransformerShape& shape, const EstimateOptions& options) {
  return Estimator(shape, options).run();
}

Cluster estimated_cluster(const EstimateOptions& options, const std::string& device_type) {
  const int num_ranks = options.num_nodes * options.ranks_per_node;
  Cluster cluster{.name = std::to_string(num_ranks) + " estimated devices",
                  .devices = {},
                  .intra_node = {.point_to_point = {10'000, 12'000'000'000}, .collective = {10'000, 10'000'000'000}},
                  .inter_node = {.point_to_point = {20'000, 5'000'000'000}, .collective = {20'000, 5'000'000'000}}};
  for (int rank = 0; rank < num_ranks; ++rank) {
    cluster.devices.push_back(
        {.type = device_type, .node = rank / options.ranks_per_node, .memory_limit_bytes = options.memory_limit_bytes});
  }
  return cluster;
}

}  // namespace frostpipe
