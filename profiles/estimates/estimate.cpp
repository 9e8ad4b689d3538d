#include "profiles/estimates/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "profiles/estimates/layer_work.h"
#include "profiles/slice_lengths.h"
#include "profiles/transformer/parameters.h"

namespace frostpipe {
namespace {

/// The number of values that a forward's operations other than matrix products read or write, on average, for each
/// value that is kept. It was counted by hand, per token, with hidden size h and MLP width f: norm, rotary positions
/// and residual of attention move 9 h and keep 6 h; norm, activation and residual of an MLP move 5 h + 2 f and keep
/// 2 h + 2 f, or with a gate move 5 h + 3 f and keep 2 h + 3 f.
constexpr double kMovesOfValues = 1.5;

/// Rounds to an integer, bounded so that sums of values beyond any profile's bounds still fit into 64 bits.
std::int64_t whole(double amount) { return static_cast<std::int64_t>(std::min(amount, 1e17)); }

class Estimator {
 public:
  Estimator(const EstimatedModel& model, const EstimateOptions& options) : model_(model), options_(options) {
    const int largest = *std::max_element(options.tensor_parallel_sizes.begin(), options.tensor_parallel_sizes.end());
    EstimateOptions of_one_node = options;
    of_one_node.num_nodes = 1;
    of_one_node.ranks_per_node = largest;
    node_ = estimated_cluster(of_one_node, options.device_type);
  }

  Estimate run() {
    profile_.model = model_of(model_.config, model_.name);
    profile_.model.expert_parallel_size = options_.expert_parallel_size;
    profile_.machine = "an estimate from counted operations, not a measurement";
    for (int layer = 0; layer < static_cast<int>(profile_.model.layers.size()); ++layer) add_layer(layer);
    profile_.workload = Workload{.name = "samples of " + std::to_string(model_.tokens) + " tokens",
                                 .num_samples = options_.num_samples,
                                 .tokens = static_cast<double>(model_.tokens),
                                 .longest_tokens = model_.tokens,
                                 .global_batch_size = options_.global_batch_size};
    profile_.forward_flops = forward_flops(model_.config, model_.tokens);
    profile_.cache = CacheSpeed{.read = {10'000, 10'000'000'000}, .write = {10'000, 5'000'000'000}};
    return {std::move(profile_), estimated_cluster(options_, options_.device_type)};
  }

 private:
  double activation_values(const PassTokens& span) const {
    return static_cast<double>(span.tokens) * profile_.model.hidden_size;
  }

  /// Returns the spans for which the profile has costs, ascending: the token slices of a causal model, a whole sample.
  std::vector<PassTokens> spans() const {
    std::vector<PassTokens> spans;
    if (profile_.model.is_causal)
      for (const int length : slice_lengths(model_.tokens))
        for (const int context : {0, model_.tokens / 2}) spans.push_back({length, context, /*is_slice=*/true});
    spans.push_back({model_.tokens});
    return spans;
  }

  void add_layer(int layer) {
    std::vector<std::pair<PassTokens, LayerWork>> works;
    for (const PassTokens& span : spans()) works.emplace_back(span, layer_work(model_.config, layer, span));
    for (int size = 1;; size = std::min(2 * size, options_.global_batch_size)) {
      for (const auto& [span, work] : works)
        for (const int tensor_ranks : options_.tensor_parallel_sizes) {
          add_measurement(layer, size, span, {tensor_ranks}, work);
          if (options_.sequence_parallel && tensor_ranks > 1)
            add_measurement(layer, size, span, {tensor_ranks, /*sequence_parallel=*/true}, work);
        }
      if (size == options_.global_batch_size) break;
    }
    const double update_bytes = options_.dtype == DType::kFloat32 ? 28 : 30;
    const double update = update_bytes * static_cast<double>(held_parameter_count(profile_.model, layer)) /
                          options_.rates.bytes_per_second;
    profile_.updates.push_back({.layer = layer,
                                .device_type = options_.device_type,
                                .dtype = options_.dtype,
                                .optimizer = Optimizer::kAdamW,
                                .update_ns = options_.rates.overhead_ns + whole(1e9 * update)});
  }

  /// The number of ranks that share the layer, and whether they split the activations between matrices by tokens.
  struct Sharing {
    int ranks = 1;
    bool sequence_parallel = false;
  };

  /// The time that tensor ranks' exchanges of activations, and those with experts, add to a layer.
  struct Exchanges {
    Nanoseconds forward = 0;
    Nanoseconds input_gradient = 0;   // part of the backward that only the input's gradient needs
    Nanoseconds weight_gradient = 0;  // the rest of the backward
    Nanoseconds read_again = 0;       // part of weight_gradient that belongs to W
  };

  /// Returns the time to send the tokens of a micro-batch to their experts, or back. Neighbouring replicas share a
  /// node, and tokens go to all replicas alike, over both kinds of links at once.
  Nanoseconds all_to_all_ns(int tensor_ranks, Bytes bytes) const {
    const int size = options_.expert_parallel_size;
    if (size == 1 || bytes == 0) return 0;
    const int in_node = std::clamp(options_.ranks_per_node / tensor_ranks, 1, size);
    const Link &near = node_.intra_node.collective, &far = node_.inter_node.collective;
    const Nanoseconds within = transfer_occupancy_ns(near, bytes * (in_node - 1) / size);
    if (in_node == size) return near.latency_ns + within;
    return far.latency_ns + std::max(within, transfer_occupancy_ns(far, bytes * (size - in_node) / size));
  }

  Exchanges exchanges_of(const LayerWork& work, const Sharing& sharing, Bytes activation_bytes) const {
    if (!sharing.sequence_parallel) {
      const Nanoseconds sum = all_reduce_ns(node_, tensor_ranks_of(sharing.ranks), activation_bytes);
      return {.forward = work.output_sums * sum, .input_gradient = work.input_gradient_sums * sum};
    }
    const Nanoseconds half = all_gather_ns(node_, sharing.ranks, activation_bytes),  // a reduce-scatter takes as long
        in = work.input_gradient_sums * half, out = work.output_sums * half;
    return {.forward = in + out, .input_gradient = in, .weight_gradient = out + in, .read_again = in};
  }

  /// Returns the bytes of a vocabulary's logits and their gradient, which exist for a part of the tokens at a time; the
  /// parts are equal.
  Bytes logits_bytes(const LayerWork& work, int size, const PassTokens& span, int tensor_ranks) const {
    const std::int64_t tokens = std::int64_t{size} * span.tokens,
                       parts = (tokens + kTokensOfLogits - 1) / kTokensOfLogits;
    const double of_part = static_cast<double>(tokens) / static_cast<double>(parts);
    return whole(of_part * work.logits_values / tensor_ranks) * bytes_per_value(options_.dtype);
  }

  void add_measurement(int layer, int size, const PassTokens& span, const Sharing& sharing, const LayerWork& work) {
    const int n = sharing.ranks;
    const auto time_of = [&](double flops) {
      return whole(1e9 * size * flops / (work.is_shared ? n : 1) / options_.rates.flops_per_second);
    };
    const Nanoseconds overhead = options_.rates.overhead_ns, pairs = time_of(work.weightless_flops),
                      pairs_backward = time_of(2.5 * work.weightless_flops), products = time_of(work.flops) - pairs;
    const auto bytes = [&](double on_each, double shared = 0) {
      return whole(size * (on_each + shared / n)) * bytes_per_value(options_.dtype);
    };
    /// Returns the values per rank of an activation between matrices.
    const auto split = [&](double values) { return sharing.sequence_parallel ? values / n : values; };
    Exchanges exchanges = exchanges_of(work, sharing, bytes(activation_values(span)));
    const Nanoseconds routing = 2 * all_to_all_ns(n, bytes(split(work.routed_values)));
    exchanges.forward += routing;
    exchanges.input_gradient += routing;
    const Nanoseconds token_sums =
        work.token_sums * all_reduce_ns(node_, tensor_ranks_of(n), bytes(static_cast<double>(span.tokens)));
    const Bytes made = bytes(split(work.kept_values), work.shared_kept_values + span.tokens * work.logits_values);
    const Nanoseconds moved = whole(1e9 * kMovesOfValues * static_cast<double>(made) / options_.rates.bytes_per_second);
    const Nanoseconds forward = overhead + products + pairs + moved + exchanges.forward + token_sums;
    const Nanoseconds backward = 2 * (overhead + products + moved) + pairs_backward + exchanges.input_gradient +
                                 exchanges.weight_gradient,
                      later = work.is_backward_whole ? 0 : overhead + products + exchanges.read_again;
    const double split_values = work.split_values - work.read_split_values + split(work.read_split_values);
    profile_.measurements.push_back(
        {.key = {.layer = layer,
                 .device_type = options_.device_type,
                 .dtype = options_.dtype,
                 .micro_batch_size = size,
                 .tokens = span.tokens,
                 .context_tokens = span.context,
                 .tensor_parallel_size = n,
                 .sequence_parallel = sharing.sequence_parallel},
         .cost = {
             .forward_ns = forward,
             .input_gradient_ns = overhead + products + exchanges.input_gradient,
             .weight_gradient_ns = overhead + products + pairs_backward + 2 * moved + exchanges.weight_gradient,
             .frozen_forward_ns = forward,
             .output_activation_bytes = bytes(split(work.output_values)),
             .saved_activation_bytes = bytes(split(work.kept_values), work.shared_kept_values),
             .workspace_bytes = std::max(bytes(2 * activation_values(span)), bytes(0, work.shared_workspace_values)) +
                                logits_bytes(work, size, span, n),
             .split_backward = SplitBackward{.input_ns = backward - later,
                                             .weight_ns = later,
                                             .kept_bytes = bytes(split_values, work.shared_split_values)}}});
  }

  static std::vector<int> tensor_ranks_of(int size) {
    std::vector<int> ranks(size);
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  const EstimatedModel& model_;
  const EstimateOptions& options_;
  Cluster node_;  // one node with all tensor ranks
  Profile profile_;
};

}  // namespace

Estimate estimate(const EstimatedModel& model, const EstimateOptions& options) {
  const std::int64_t experts = model.config.experts.count;
  if (options.expert_parallel_size > 1 && (experts == 0 || experts % options.expert_parallel_size != 0))
    throw InvalidInput("--expert-parallel",
                       experts == 0 ? fmt::format("must be 1: {} has no experts", model.name)
                                    : fmt::format("must divide the {} experts of {}", experts, model.name),
                       std::to_string(options.expert_parallel_size));
  return Estimator(model, options).run();
}

void require_tensor_ranks(const TransformerConfig& config, const EstimateOptions& options) {
  const std::int64_t most = max_tensor_ranks(config);
  const auto require = [](bool holds, const std::string& rule, int size) {
    if (!holds) throw InvalidInput("--tensor-parallel", rule, std::to_string(size));
  };
  for (const int size : options.tensor_parallel_sizes) {
    require(options.ranks_per_node % size == 0,
            fmt::format("must divide the {} ranks of a node", options.ranks_per_node), size);
    require(size <= most, fmt::format("must be at most {}, the model's attention heads that can be shared", most),
            size);
  }
}

void apply(const Hardware& hardware, EstimateOptions& options) {
  constexpr double kReached = 0.8;
  const auto set = [](LinkClass& speed, const std::optional<double>& peak) {
    if (!peak) return;
    speed.point_to_point.bandwidth_bytes_per_second = speed.collective.bandwidth_bytes_per_second =
        static_cast<std::int64_t>(kReached * *peak);
  };
  options.rates = rates_of(hardware, options.dtype);
  if (!hardware.name.empty()) options.device_type = hardware.name;
  options.memory_limit_bytes = hardware.memory_bytes;
  set(options.intra_node, hardware.node_bytes_per_second);
  set(options.inter_node, hardware.network_bytes_per_second);
  if (hardware.network_bytes_per_second) options.all_reduce = "hierarchical";
}

Cluster estimated_cluster(const EstimateOptions& options, const std::string& device_type) {
  const int num_ranks = options.num_nodes * options.ranks_per_node;
  Cluster cluster{.name = std::to_string(num_ranks) + " estimated devices",
                  .devices = {},
                  .intra_node = options.intra_node,
                  .inter_node = options.inter_node,
                  .communication = {.all_reduce = options.all_reduce}};
  for (int rank = 0; rank < num_ranks; ++rank) {
    cluster.devices.push_back(
        {.type = device_type, .node = rank / options.ranks_per_node, .memory_limit_bytes = options.memory_limit_bytes});
  }
  return cluster;
}

}  // namespace frostpipe
