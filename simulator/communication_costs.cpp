#include "simulator/communication_costs.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "plan/stages.h"

namespace frostpipe {
namespace {

bool between_nodes(const Cluster& cluster, int rank, int other) {
  return cluster.devices[rank].node != cluster.devices[other].node;
}

}  // namespace

TransferCost Messages::cost(int from_rank, int to_rank, Bytes bytes) const {
  const Link& link = link_between(cluster_, from_rank, to_rank).point_to_point;
  if (!scatters(from_rank, to_rank))
    return {.occupancy_ns = transfer_occupancy_ns(link, bytes), .latency_ns = link.latency_ns};
  return {.occupancy_ns = transfer_occupancy_ns(link, (bytes + t_ - 1) / t_),
          .latency_ns = link.latency_ns + all_gather_ns(cluster_, t_, bytes)};
}

std::vector<SharedOccupancy> Messages::shared(int from_rank, int to_rank, Bytes bytes) const {
  std::vector<SharedOccupancy> occupancies;
  const Bytes of_all = scatters(from_rank, to_rank) ? bytes : bytes * t_;
  for (const SharedUse& use : shared_links_between(cluster_, from_rank, to_rank))
    occupancies.push_back(
        {use.link, transfer_occupancy_ns({.bandwidth_bytes_per_second = use.bandwidth_bytes_per_second}, of_all)});
  return occupancies;
}

bool Messages::scatters(int from_rank, int to_rank) const {
  return t_ > 1 && !splits_tokens_ && cluster_.communication.scatter_gather &&
         between_nodes(cluster_, from_rank, to_rank);
}

int reductions_side_by_side(const Cluster& cluster, const ParallelLayout& layout) {
  std::map<int, std::set<int>> pipeline_ranks_on;  // by node, those that have replicas on other nodes too
  for (int pipeline_rank = 0; pipeline_rank < layout.pipeline_parallel_size; ++pipeline_rank) {
    const std::vector<int> ranks = replicas_of(layout, pipeline_rank);
    if (std::none_of(ranks.begin(), ranks.end(),
                     [&](int other) { return between_nodes(cluster, ranks.front(), other); }))
      continue;
    for (const int rank : ranks) pipeline_ranks_on[cluster.devices[rank].node].insert(pipeline_rank);
  }
  std::size_t most = 1;
  for (const auto& [node, pipeline_ranks] : pipeline_ranks_on) most = std::max(most, pipeline_ranks.size());
  return static_cast<int>(most) * layout.tensor_parallel_size;
}

Segment all_reduce_segment(const Cluster& cluster, std::vector<int> ranks, Bytes bytes, int side_by_side) {
  std::sort(ranks.begin(), ranks.end());
  const Nanoseconds duration = all_reduce_ns(cluster, ranks, bytes, side_by_side);
  return {.duration_ns = duration, .collective_ranks = std::move(ranks)};
}

Bytes expert_gradient_bytes(const Phase& phase, const Model& model, int layer, DType dtype) {
  const int share = model.expert_parallel_size;
  if (share == 1) return 0;
  return model.layers.at(layer).expert_parameter_count / (share * phase.layout.tensor_parallel_size) *
         kept_bytes_per_value(dtype);
}

Nanoseconds reduction_of_experts_ns(const Cluster& cluster, const Model& model, const ParallelLayout& layout,
                                    const std::vector<int>& replicas, Bytes bytes) {
  const int share = model.expert_parallel_size;
  std::vector<int> alike;  // replicas with the same experts as the first
  for (std::size_t i = 0; i < replicas.size(); i += share) alike.push_back(replicas[i]);
  return all_reduce_ns(cluster, alike, bytes, share * reductions_side_by_side(cluster, layout));
}

Nanoseconds expert_reduction_ns(const Cluster& cluster, const Model& model, const Phase& phase, int stage,
                                DType dtype) {
  const LayerRange& layers = phase.partition[stage];
  Bytes bytes = 0;
  for (int layer = std::max(layers.begin, phase.first_trainable_layer); layer < layers.end; ++layer)
    bytes += expert_gradient_bytes(phase, model, layer, dtype);
  if (bytes == 0) return 0;
  return reduction_of_experts_ns(cluster, model, phase.layout, replicas_of_stage(phase, stage), bytes);
}

Nanoseconds exposed_reduction_ns(const Cluster& cluster, std::vector<int> ranks,
                                 const std::vector<LayerGradient>& gradients, int side_by_side) {
  std::sort(ranks.begin(), ranks.end());
  Nanoseconds computed = 0, reduced = 0;
  for (const LayerGradient& gradient : gradients) {
    computed += gradient.backward_ns;
    reduced = std::max(computed, reduced) + all_reduce_ns(cluster, ranks, gradient.bytes, side_by_side);
  }
  return reduced - computed;
}

Segment gradient_norm_segment(const Cluster& cluster, const Phase& phase) {
  const ParallelLayout& layout = phase.layout;
  std::vector<int> training, reducing;
  const std::vector<bool> are_training = trains(phase);
  for (int pipeline_rank = 0; pipeline_rank < layout.pipeline_parallel_size; ++pipeline_rank) {
    if (!are_training[pipeline_rank]) continue;
    const std::vector<int> all = all_ranks_of(layout, pipeline_rank), first = replicas_of(layout, pipeline_rank);
    training.insert(training.end(), all.begin(), all.end());
    reducing.insert(reducing.end(), first.begin(), first.end());
  }
  Segment norm = all_reduce_segment(cluster, std::move(training), /*bytes=*/8, /*side_by_side=*/1);
  std::sort(reducing.begin(), reducing.end());
  norm.collective_ranks = reducing.size() > 1 ? std::move(reducing) : std::vector<int>();
  return norm;
}

}  // namespace frostpipe
