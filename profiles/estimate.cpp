#include "profiles/estimate.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "profiles/slice_lengths.h"

namespace frostpipe {
namespace {

/// What a layer does, keeps and sums, per sample.
struct LayerWork {
  bool is_shared = true;  // tensor ranks share the operations out; else each does all of them
  double flops = 0;
  double output_values = 0, shared_output_values = 0;  // on every tensor rank, and of all of them together
  double kept_values = 0, shared_kept_values = 0;
  double split_values = 0, shared_split_values = 0;  // kept from I to W
  double read_split_values = 0;                      // of split_values: what matrices have read
  /// All-reduces of tensor ranks: of an activation in forward and in input gradient, of a number per token in forward.
  int output_sums = 0, input_gradient_sums = 0, token_sums = 0;
};

/// Tokens of a sample that a pass computes: all of it, or a slice after `context` others.
struct Span {
  int tokens = 0;
  int context = 0;
};

constexpr Bytes kValueBytes = 4;  // float32

/// Sums of what is beyond any profile's bounds still fit into 64 bits.
std::int64_t whole(double amount) { return static_cast<std::int64_t>(std::min(amount, 1e17)); }

class Estimator {
 public:
  Estimator(const TransformerShape& shape, const EstimateOptions& options) : shape_(shape), options_(options) {
    const int largest = *std::max_element(options.tensor_parallel_sizes.begin(), options.tensor_parallel_sizes.end());
    node_ = estimated_cluster({.ranks_per_node = largest}, options.device_type);
  }

  Estimate run() {
    profile_.model = {
        .name = shape_.name, .hidden_size = shape_.hidden, .layers = {}, .edges = {}, .is_causal = shape_.is_causal};
    profile_.machine = "an estimate from counted operations, not a measurement";
    add_embedding();
    for (int block = 0; block < shape_.blocks; ++block) add_block(block);
    add_head();
    profile_.workload = Workload{.name = "samples of " + std::to_string(shape_.tokens) + " tokens",
                                 .num_samples = options_.num_samples,
                                 .tokens = static_cast<double>(shape_.tokens),
                                 .longest_tokens = shape_.tokens,
                                 .global_batch_size = options_.global_batch_size};
    profile_.cache = CacheSpeed{.read = {10'000, 10'000'000'000}, .write = {10'000, 5'000'000'000}};
    return {std::move(profile_), estimated_cluster(options_, options_.device_type)};
  }

 private:
  double activation_values(const Span& span) const { return static_cast<double>(span.tokens) * shape_.hidden; }

  /// In ascending order: of a causal model its token slices, and a whole sample.
  std::vector<Span> spans() const {
    std::vector<Span> spans;
    if (shape_.is_causal)
      for (const int length : slice_lengths(shape_.tokens))
        for (const int context : {0, shape_.tokens / 2}) spans.push_back({length, context});
    spans.push_back({shape_.tokens});
    return spans;
  }

  /// Pairs of a query and a key that it looks at.
  double attended(const Span& span) const {
    const double l = span.tokens, c = span.context;
    return shape_.is_causal ? l * c + l * (l + 1) / 2 : l * l;
  }

  void add_embedding() {
    add({.name = "embedding",
         .kind = LayerKind::embedding,
         .parameter_count = shape_.embedding_parameters,
         .whole_parameter_count = shape_.embedding_parameters - shape_.vocabulary * shape_.hidden},
        [this](const Span& span) -> LayerWork {
          const double values = activation_values(span);
          return {.is_shared = false,
                  .flops = shape_.embedding_flops * span.tokens / shape_.tokens,
                  .output_values = values,
                  .kept_values = values,
                  .split_values = values,
                  .output_sums = shape_.vocabulary > 0};
        });
  }

  void add_block(int block) {
    const std::string name = "block." + std::to_string(block);
    const std::int64_t bias_and_norm = 3 * std::int64_t{shape_.hidden};
    const auto attention = static_cast<std::int64_t>(shape_.hidden) * (4 * shape_.hidden + 6);
    const auto mlp = static_cast<std::int64_t>(shape_.hidden) * (2 * shape_.intermediate + 3) + shape_.intermediate;
    add({.name = name + ".attention",
         .kind = LayerKind::attention,
         .block = block,
         .parameter_count = attention,
         .whole_parameter_count = bias_and_norm},
        [this](const Span& span) { return attention_work(span); });
    add({.name = name + ".mlp",
         .kind = LayerKind::mlp,
         .block = block,
         .parameter_count = mlp,
         .whole_parameter_count = bias_and_norm},
        [this](const Span& span) { return mlp_work(span); });
  }

  LayerWork attention_work(const Span& span) const {
    const double t = span.tokens, h = shape_.hidden, values = activation_values(span);
    return {.flops = 8 * t * h * h + 4 * attended(span) * h,
            .output_values = values,
            .kept_values = 3 * values,
            .shared_kept_values = 4 * values + 2 * shape_.heads * t * (span.context + t),
            .split_values = 2 * values,
            .shared_split_values = 4 * values,
            .read_split_values = values,
            .output_sums = 1,
            .input_gradient_sums = 1};
  }

  LayerWork mlp_work(const Span& span) const {
    const double t = span.tokens, f = shape_.intermediate, values = activation_values(span);
    return {.flops = 4 * t * shape_.hidden * f,
            .output_values = values,
            .kept_values = 3 * values,
            .shared_kept_values = 2 * t * f,
            .split_values = 2 * values,
            .shared_split_values = 2 * t * f,
            .read_split_values = values,
            .output_sums = 1,
            .input_gradient_sums = 1};
  }

  void add_head() {
    const std::int64_t parameters = std::int64_t{shape_.outputs} * (shape_.hidden + 1);
    add({.name = "head",
         .kind = LayerKind::head,
         .parameter_count = parameters,
         .whole_parameter_count = shape_.head_on_every_token ? 0 : parameters},
        [this](const Span& span) { return head_work(span); });
  }

  LayerWork head_work(const Span& span) const {
    const bool is_vocabulary = shape_.head_on_every_token;
    const double predictions = is_vocabulary ? span.tokens : 1, outputs = predictions * shape_.outputs;
    return {.is_shared = is_vocabulary,
            .flops = 2 * shape_.hidden * outputs,
            .output_values = is_vocabulary ? 0 : outputs,
            .shared_output_values = is_vocabulary ? outputs : 0,
            .kept_values = activation_values(span),
            .shared_kept_values = is_vocabulary ? outputs : 0,
            .split_values = predictions * shape_.hidden + (is_vocabulary ? 0 : outputs),
            .shared_split_values = is_vocabulary ? outputs : 0,
            .read_split_values = predictions * shape_.hidden,
            .input_gradient_sums = is_vocabulary,
            .token_sums = is_vocabulary ? 3 : 0};
  }

  void add(Layer described, const std::function<LayerWork(const Span&)>& work_of) {
    const int layer = static_cast<int>(profile_.model.layers.size());
    if (layer > 0) profile_.model.edges.push_back({layer - 1, layer});
    const double update = 28.0 * static_cast<double>(described.parameter_count) / options_.rates.bytes_per_second;
    profile_.model.layers.push_back(std::move(described));
    for (int size = 1;; size = std::min(2 * size, options_.global_batch_size)) {
      for (const Span& span : spans())
        for (const int tensor_ranks : options_.tensor_parallel_sizes) {
          add_measurement(layer, size, span, {tensor_ranks}, work_of(span));
          if (options_.sequence_parallel && tensor_ranks > 1)
            add_measurement(layer, size, span, {tensor_ranks, /*split_tokens=*/true}, work_of(span));
        }
      if (size == options_.global_batch_size) break;
    }
    profile_.updates.push_back({.layer = layer,
                                .device_type = options_.device_type,
                                .optimizer = Optimizer::kAdamW,
                                .update_ns = options_.rates.overhead_ns + whole(1e9 * update)});
  }

  /// How many ranks share the layer, and whether they split what lies between matrices by tokens.
  struct Sharing {
    int ranks = 1;
    bool split_tokens = false;
  };

  /// What exchanges of activations add to a layer's times.
  struct Exchanges {
    Nanoseconds forward = 0;
    Nanoseconds input_gradient = 0;   // of the backward, what only an input's gradient needs
    Nanoseconds weight_gradient = 0;  // the rest of it
    Nanoseconds read_again = 0;       // of the latter, what W does
  };

  Exchanges exchanges_of(const LayerWork& work, const Sharing& sharing, Bytes activation_bytes) const {
    if (!sharing.split_tokens) {
      const Nanoseconds sum = all_reduce_ns(node_, tensor_ranks_of(sharing.ranks), activation_bytes);
      return {.forward = work.output_sums * sum, .input_gradient = work.input_gradient_sums * sum};
    }
    const Nanoseconds half = all_gather_ns(node_, sharing.ranks, activation_bytes),  // a reduce-scatter takes as long
        in = work.input_gradient_sums * half, out = work.output_sums * half;
    return {.forward = in + out, .input_gradient = in, .weight_gradient = out + in, .read_again = in};
  }

  void add_measurement(int layer, int size, const Span& span, const Sharing& sharing, const LayerWork& work) {
    const int n = sharing.ranks;
    const double flops = size * work.flops / (work.is_shared ? n : 1);
    const auto pass = options_.rates.overhead_ns + whole(1e9 * flops / options_.rates.flops_per_second);
    const auto bytes = [&](double on_each, double shared = 0) {
      return whole(size * (on_each + shared / n)) * kValueBytes;
    };
    /// Of what lies between matrices.
    const auto split = [&](double values) { return sharing.split_tokens ? values / n : values; };
    const bool is_last = profile_.model.layers[layer].kind == LayerKind::head;
    const Exchanges exchanges = exchanges_of(work, sharing, bytes(activation_values(span)));
    const Nanoseconds token_sums =
        work.token_sums * all_reduce_ns(node_, tensor_ranks_of(n), bytes(static_cast<double>(span.tokens)));
    const Nanoseconds forward = pass + exchanges.forward + token_sums;
    const double split_values = work.split_values - work.read_split_values + split(work.read_split_values);
    profile_.measurements.push_back(
        {.key = {.layer = layer,
                 .device_type = options_.device_type,
                 .micro_batch_size = size,
                 .tokens = span.tokens,
                 .context_tokens = span.context,
                 .tensor_parallel_size = n,
                 .sequence_parallel = sharing.split_tokens},
         .cost = {.forward_ns = forward,
                  .input_gradient_ns = pass + exchanges.input_gradient,
                  .weight_gradient_ns = pass + exchanges.weight_gradient,
                  .frozen_forward_ns = forward,
                  .output_activation_bytes =
                      bytes(is_last ? work.output_values : split(work.output_values), work.shared_output_values),
                  .saved_activation_bytes = bytes(split(work.kept_values), work.shared_kept_values),
                  .workspace_bytes = bytes(2 * activation_values(span)),
                  .split_backward = SplitBackward{
                      .input_ns = pass + exchanges.input_gradient + exchanges.weight_gradient - exchanges.read_again,
                      .weight_ns = pass + exchanges.read_again,
                      .kept_bytes = bytes(split_values, work.shared_split_values)}}});
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
       .vocabulary = 30522,
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
