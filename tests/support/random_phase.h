#pragma once
#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/schedule_rules.h"
#include "plan/stages.h"
#include "planner/search/plan_options.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe::test {

/// A random phase on a random cluster, with its profile.
struct RandomCase {
  Profile profile;
  Cluster cluster;
  PlanOptions options;
  Phase phase;
};

/// Returns a random schedule that allows the phase's pipeline ranks, stages and micro-batches.
inline std::string any_schedule(const Phase& phase, const auto& below) {
  std::vector<std::string> possible;
  for (const std::string& name : schedule_names()) {
    try {
      require_shape(name, {.pipeline_parallel_size = phase.layout.pipeline_parallel_size,
                           .num_micro_batches = phase.num_micro_batches,
                           .virtual_stages = phase.virtual_stages});
      possible.push_back(name);
    } catch (const InvalidInput&) {
      continue;
    }
  }
  return possible[below(static_cast<int>(possible.size()))];
}

/// Puts the last devices on a second node, keeping tensor ranks together; half of the time each node's ranks share a
/// card.
inline void put_on_two_nodes(Cluster& cluster, int tensor_ranks, const auto& below) {
  const int num_devices = static_cast<int>(cluster.devices.size());
  for (int rank = tensor_ranks * (1 + below(num_devices / tensor_ranks)); rank < num_devices; ++rank)
    cluster.devices[rank].node = 1;
  cluster.inter_node.point_to_point = {.latency_ns = below(9000), .bandwidth_bytes_per_second = 300'000'000};
  cluster.inter_node.collective = {.latency_ns = below(40000), .bandwidth_bytes_per_second = 300'000'000};
  if (below(2) == 0) cluster.shared_links = {{.name = "card", .nodes = 1, .bandwidth_bytes_per_second = 200'000'000}};
}

/// With several stages per rank, as far as the number of layers allows.
inline RandomCase random_case(std::mt19937& random, int virtual_stages = 1) {
  const auto below = [&](int limit) { return static_cast<int>(random() % limit); };
  RandomCase made;
  const int blocks = 1 + below(4), layers = 2 * blocks + 2;
  std::vector<SyntheticLayer> costs(layers);
  for (auto& layer : costs)
    layer = {.forward_ns = 1000 + below(9000),
             .input_gradient_ns = 1000 + below(9000),
             .weight_gradient_ns = 1000 + below(9000),
             .frozen_forward_ns = 500 + below(5000),
             .update_ns = below(20000),
             .output_activation_bytes = below(2000),
             .saved_activation_bytes = 100 + below(3000),
             .workspace_bytes = below(3000),
             .parameter_count = below(3000),
             .split_backward = SplitBackward{1000 + below(9000), 1000 + below(9000), below(3000)}};
  made.profile = synthetic_profile(blocks, costs);
  const int v = std::min(virtual_stages, layers), p = 1 + below(std::min(4, layers / v)), d = 1 << below(3);
  const int t = 1 + below(2);
  for (Measurement& one : made.profile.measurements) one.key.tensor_parallel_size = t;
  made.cluster = free_cluster(p * d * t, 20000 + below(400000));
  made.cluster.intra_node.point_to_point = {.latency_ns = below(3000), .bandwidth_bytes_per_second = 1'000'000'000};
  made.cluster.intra_node.collective = {.latency_ns = below(20000), .bandwidth_bytes_per_second = 1'000'000'000};
  if (below(2) == 0) put_on_two_nodes(made.cluster, t, below);
  made.cluster.communication.all_reduce = std::array{"ring", "fastest", "direct"}[below(3)];
  made.cluster.communication.overlap_gradient_reduction = below(4) == 0;
  made.options.tokens = kSyntheticTokens;
  made.options.num_steps = 1;
  made.options.tensor_parallel_size = t;
  made.options.global_batch_size = d * (1 + below(12)) + below(d);
  made.phase.layout = {.pipeline_parallel_size = p, .data_parallel_size = d, .tensor_parallel_size = t};
  made.phase.num_micro_batches = 1 + below(made.options.global_batch_size / d);
  if (v > 1) {
    made.phase.virtual_stages = v;
  }
  made.phase.schedule = any_schedule(made.phase, below);
  made.phase.tokens = kSyntheticTokens;
  if (below(3) == 0) made.phase.first_trainable_layer = first_trainable_layer(made.profile.model, 1 + below(blocks));
  if (below(3) == 0) made.phase.recompute = kRecomputeModes[below(3)];
  std::vector<int> cuts;
  for (int layer = 1; layer < layers; ++layer) cuts.push_back(layer);
  std::shuffle(cuts.begin(), cuts.end(), random);
  cuts.resize(p * v - 1);
  std::sort(cuts.begin(), cuts.end());
  cuts.push_back(layers);
  int begin = 0;
  for (const int cut : cuts) {
    made.phase.partition.push_back({begin, cut});
    begin = cut;
  }
  if (below(2) == 0) {
    Model& model = made.profile.model;
    model.vocab_size = model.layers.front().parameter_count / model.hidden_size;
  }
  if (made.phase.first_trainable_layer > 0 && below(2) == 0) {
    made.profile.cache = CacheSpeed{.read = {100, 1'000'000'000}, .write = {100, 1'000'000'000}};
    made.phase.cache = {.on = true, .found = {{made.phase.first_trainable_layer, below(101) / 100.0}}};
  }
  return made;
}

/// Makes about half of the devices of another type, keeping tensor ranks alike. That type is slower or faster, by
/// another factor for every layer. Replicas of a pipeline rank may then be unequal.
inline void make_devices_unequal(RandomCase& made, std::mt19937& random) {
  const int t = made.phase.layout.tensor_parallel_size;
  bool is_other = false;
  for (int rank = 0; rank < static_cast<int>(made.cluster.devices.size()); ++rank) {
    if (rank % t == 0) is_other = random() % 2 == 0;
    if (is_other) made.cluster.devices[rank].type = "other";
  }
  Profile& profile = made.profile;
  const double least = random() % 3 == 0 ? 0.5 : 1.2;
  std::vector<double> factors;
  for (std::size_t layer = 0; layer < profile.model.layers.size(); ++layer)
    factors.push_back(least + static_cast<double>(random() % 1000) / 500);
  for (std::size_t i = 0, measured = profile.measurements.size(); i < measured; ++i) {
    Measurement other = profile.measurements[i];
    other.key.device_type = "other";
    const auto change = [&](Nanoseconds& time) {
      time = static_cast<Nanoseconds>(static_cast<double>(time) * factors[other.key.layer]);
    };
    LayerCost& cost = other.cost;
    for (Nanoseconds* time :
         {&cost.forward_ns, &cost.input_gradient_ns, &cost.weight_gradient_ns, &cost.frozen_forward_ns})
      change(*time);
    if (cost.split_backward) {
      change(cost.split_backward->input_ns);
      change(cost.split_backward->weight_ns);
    }
    profile.measurements.push_back(other);
  }
  for (std::size_t i = 0, updated = profile.updates.size(); i < updated; ++i) {
    profile.updates.push_back(profile.updates[i]);
    profile.updates.back().device_type = "other";
  }
  std::sort(profile.measurements.begin(), profile.measurements.end(),
            [](const Measurement& a, const Measurement& b) { return a.key < b.key; });
}

}  // namespace frostpipe::test
