#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "plan/batch.h"
#include "plan/memory.h"
#include "profiles/error.h"
#include "simulator/cost_model.h"

namespace frostpipe {
namespace {

void require_devices(const Cluster& cluster, const ParallelLayout& layout) {
  const int num_devices = static_cast<int>(cluster.devices.size());
  for (int stage = 0; stage < layout.pipeline_parallel_size; ++stage) {
    for (const int rank : replicas_of(layout, stage)) {
      if (rank < num_devices) continue;
      throw InvalidInput("cluster " + cluster.name,
                         "must have a device for each rank of the layout, has " + std::to_string(num_devices),
                         "rank " + std::to_string(rank));
    }
  }
}

bool between_nodes(const Cluster& cluster, int rank, int other) {
  return cluster.devices[rank].node != cluster.devices[other].node;
}

/// An activation from the t tensor ranks of one place to those of another, which differ from `from_rank` and `to_rank`
/// by the same offset.
class Messages {
 public:
  Messages(const Cluster& cluster, int tensor_parallel_size) : cluster_(cluster), t_(tensor_parallel_size) {}

  TransferCost cost(int from_rank, int to_rank, Bytes bytes) const {
    const Link& link = link_between(cluster_, from_rank, to_rank).point_to_point;
    if (!scatters(from_rank, to_rank))
      return {.occupancy_ns = transfer_occupancy_ns(link, bytes), .latency_ns = link.latency_ns};
    return {.occupancy_ns = transfer_occupancy_ns(link, (bytes + t_ - 1) / t_),
            .latency_ns = link.latency_ns + all_gather_ns(cluster_, t_, bytes)};
  }

  std::vector<SharedOccupancy> shared(int from_rank, int to_rank, Bytes bytes) const {
    std::vector<SharedOccupancy> occupancies;
    const Bytes of_all = scatters(from_rank, to_rank) ? bytes : bytes * t_;
    for (const SharedUse& use : shared_links_between(cluster_, from_rank, to_rank))
      occupancies.push_back(
          {use.link, transfer_occupancy_ns({.bandwidth_bytes_per_second = use.bandwidth_bytes_per_second}, of_all)});
    return occupancies;
  }

 private:
  bool scatters(int from_rank, int to_rank) const {
    return t_ > 1 && cluster_.communication.scatter_gather && between_nodes(cluster_, from_rank, to_rank);
  }

  const Cluster& cluster_;
  int t_;
};

/// Most gradient reductions that leave one node at the same time: every stage there has one for each of its tensor
/// ranks.
int reductions_side_by_side(const Cluster& cluster, const ParallelLayout& layout) {
  std::map<int, std::set<int>> stages_on;  // by node, those whose replicas are elsewhere too
  for (int stage = 0; stage < layout.pipeline_parallel_size; ++stage) {
    const std::vector<int> ranks = replicas_of(layout, stage);
    if (std::none_of(ranks.begin(), ranks.end(),
                     [&](int other) { return between_nodes(cluster, ranks.front(), other); }))
      continue;
    for (const int rank : ranks) stages_on[cluster.devices[rank].node].insert(stage);
  }
  std::size_t most = 1;
  for (const auto& [node, stages] : stages_on) most = std::max(most, stages.size());
  return static_cast<int>(most) * layout.tensor_parallel_size;
}

Segment all_reduce(const Cluster& cluster, std::vector<int> ranks, Bytes bytes, int side_by_side) {
  std::sort(ranks.begin(), ranks.end());
  const Nanoseconds duration = all_reduce_ns(cluster, ranks, bytes, side_by_side);
  return {.duration_ns = duration, .collective_ranks = std::move(ranks)};
}

/// One trainable layer in the last backward.
struct LayerGradient {
  Nanoseconds backward_ns = 0;
  Bytes bytes = 0;
};

/// What is left of a stage's reduction behind its last backward where every layer's goes as soon as it can; layers in
/// the order of the backward.
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

Nanoseconds scaled(Nanoseconds duration, double share) {
  return static_cast<Nanoseconds>(static_cast<double>(duration) * share + 0.5);
}

/// Of so many entries of one size.
Nanoseconds entries_ns(const Link& speed, double entries, Bytes bytes_each) {
  return scaled(speed.latency_ns + transfer_occupancy_ns(speed, bytes_each), entries);
}

CacheSpeed cache_speed(const Phase& phase, const Profile& profile) {
  if (!phase.cache.on) return {};
  if (profile.cache) return *profile.cache;
  throw InvalidInput("profile: cache", "must be measured for a phase with a cache; profile again", "missing");
}

}  // namespace

ProfileCostModel::ProfileCostModel(const Phase& phase, int global_batch_size, std::string_view optimizer,
                                   std::string_view dtype, const Profile& profile, const Cluster& cluster)
    : data_parallel_size_(phase.layout.data_parallel_size), num_micro_batches_(phase.num_micro_batches) {
  const Partition& partition = phase.partition;
  const ParallelLayout& layout = phase.layout;
  const int stages = static_cast<int>(partition.size());
  FROSTPIPE_CHECK(stages == layout.pipeline_parallel_size, "a validated phase has one stage per position");
  require_devices(cluster, layout);

  for (const SampleRange& range : split_evenly(global_batch_size, data_parallel_size_ * num_micro_batches_)) {
    micro_batch_sizes_.push_back(range.end - range.begin);
  }
  smaller_size_ = micro_batch_sizes_.back();

  const auto key_of = [&](int layer, int size, const std::string& device_type) {
    return MeasurementKey{.layer = layer,
                          .device_type = device_type,
                          .dtype = std::string(dtype),
                          .micro_batch_size = size,
                          .tokens = phase.tokens,
                          .tensor_parallel_size = layout.tensor_parallel_size};
  };
  const auto layer_cost = [&](int layer, int size, const std::string& device_type) {
    return cost_of(profile, key_of(layer, size, device_type));
  };
  const Messages messages(cluster, layout.tensor_parallel_size);
  const int side_by_side = reductions_side_by_side(cluster, layout);
  const int cache_reach = partition.front().end;
  const double read_fraction = 1 - computed_fraction(phase.cache, 0, cache_reach);
  const double written_fraction = 1 - fraction_at(phase.cache.found, phase.first_trainable_layer);
  const CacheSpeed speed = cache_speed(phase, profile);
  const int entry_tokens = profile.workload ? static_cast<int>(std::ceil(profile.workload->tokens)) : phase.tokens;
  const Bytes entry_bytes = profile.model.hidden_size * entry_tokens * bytes_per_value("float32");
  const int writing_stage = phase.cache.on ? stage_of_layer(partition, phase.first_trainable_layer - 1) : -1;
  // What does not depend on where a stage's neighbours are: the same for all replicas on one type of device.
  std::map<std::tuple<int, int, std::string>, StageCost> computed;
  const auto compute_stage = [&](int stage, int size, const std::string& device_type) {
    const auto [known, is_new] = computed.try_emplace({stage, size, device_type});
    StageCost& cost = known->second;
    if (!is_new) return cost;
    for (int layer = partition[stage].begin; layer < partition[stage].end; ++layer) {
      const LayerCost measured = layer_cost(layer, size, device_type);
      if (layer < phase.first_trainable_layer) {
        const double computed = computed_fraction(phase.cache, layer, cache_reach);
        cost.forward_ns += computed == 1
                               ? measured.frozen_forward_ns
                               : expected_frozen_forward_ns(profile, key_of(layer, size, device_type), computed * size);
      } else {
        cost.forward_ns += measured.forward_ns;
        cost.weight_gradient_ns += measured.weight_gradient_ns;
        if (layer > phase.first_trainable_layer) cost.input_gradient_ns += measured.input_gradient_ns;
        if (is_recomputed(phase.recompute, profile.model.layers[layer].kind)) cost.recompute_ns += measured.forward_ns;
      }
    }
    if (stage + 1 < stages)
      cost.sent_forward_bytes = layer_cost(partition[stage].end - 1, size, device_type).output_activation_bytes;
    if (stage > 0)
      cost.sent_backward_bytes = layer_cost(partition[stage].begin - 1, size, device_type).output_activation_bytes;
    return cost;
  };
  const auto measure_stage = [&](int stage, int replica, int size) {
    if (size == 0) return StageCost();
    const int rank = rank_of(layout, stage, replica);
    StageCost cost = compute_stage(stage, size, cluster.devices[rank].type);
    if (stage + 1 < stages) {
      const Bytes bytes = cost.sent_forward_bytes;
      const int to = rank_of(layout, stage + 1, replica);
      cost.send_forward = messages.cost(rank, to, bytes);
      cost.shared_forward = messages.shared(rank, to, bytes);
    }
    if (stage > 0) {
      const Bytes bytes = cost.sent_backward_bytes;
      const int to = rank_of(layout, stage - 1, replica);
      cost.send_backward = messages.cost(rank, to, bytes);
      cost.shared_backward = messages.shared(rank, to, bytes);
    }
    shares_links_ = shares_links_ || !cost.shared_forward.empty() || !cost.shared_backward.empty();
    if (stage == 0) cost.cache_read_ns = entries_ns(speed.read, size * read_fraction, entry_bytes);
    if (stage == writing_stage) cost.cache_write_ns = entries_ns(speed.write, size * written_fraction, entry_bytes);
    return cost;
  };

  std::map<std::pair<int, std::string>, Nanoseconds> updates;  // by stage and device type
  const auto update_of = [&](int stage, int first_trained, const std::string& device_type) {
    const auto [known, is_new] = updates.try_emplace({stage, device_type}, 0);
    if (!is_new) return known->second;
    for (int layer = first_trained; layer < partition[stage].end; ++layer)
      known->second += update_cost_of(profile, layer, device_type, dtype, optimizer) / layout.tensor_parallel_size;
    return known->second;
  };

  std::vector<int> training_ranks;
  for (int stage = 0; stage < stages; ++stage) {
    const int first_trained = std::max(partition[stage].begin, phase.first_trainable_layer);
    Bytes gradient_bytes = 0;
    std::vector<LayerGradient> gradients;
    for (int layer = partition[stage].end - 1; layer >= first_trained; --layer) {
      const Bytes bytes = reduced_gradient_bytes(phase, profile.model, layer, global_batch_size, dtype);
      gradient_bytes += bytes;
      if (!cluster.communication.overlap_gradient_reduction || smaller_size_ == 0) continue;
      const LayerCost cost = layer_cost(layer, smaller_size_, cluster.devices[rank_of(layout, stage, 0)].type);
      gradients.push_back(
          {cost.weight_gradient_ns + (layer > phase.first_trainable_layer ? cost.input_gradient_ns : 0), bytes});
    }
    for (int replica = 0; replica < data_parallel_size_; ++replica) {
      const int rank = rank_of(layout, stage, replica);
      RankCost cost{.smaller = measure_stage(stage, replica, smaller_size_), .larger = {}};
      if (micro_batch_sizes_.front() > smaller_size_) cost.larger = measure_stage(stage, replica, smaller_size_ + 1);
      cost.update_ns = update_of(stage, first_trained, cluster.devices[rank].type);
      rank_costs_.push_back(cost);
      if (first_trained < partition[stage].end) training_ranks.push_back(rank);
    }
    reduce_gradient_.push_back(all_reduce(cluster, replicas_of(layout, stage), gradient_bytes, side_by_side));
    if (!gradients.empty())
      reduce_gradient_.back().duration_ns =
          exposed_reduction_ns(cluster, replicas_of(layout, stage), gradients, side_by_side);
  }
  if (const Bytes bytes = tied_gradient_bytes(phase, profile.model, dtype); bytes > 0) {
    for (int replica = 0; replica < data_parallel_size_; ++replica)
      reduce_tied_.push_back(all_reduce(cluster, {rank_of(layout, 0, replica), rank_of(layout, stages - 1, replica)},
                                        bytes, side_by_side));
  }
  gradient_norm_ = all_reduce(cluster, training_ranks, /*bytes=*/8, /*side_by_side=*/1);
}

bool ProfileCostModel::replicas_are_alike() const {
  if (shares_links_ || micro_batch_sizes_.front() != micro_batch_sizes_.back()) return false;
  for (std::size_t i = 0; i < rank_costs_.size(); ++i)
    if (rank_costs_[i] != rank_costs_[i - i % data_parallel_size_]) return false;
  return true;
}

const ProfileCostModel::RankCost& ProfileCostModel::rank_cost(int stage, int replica) const {
  return rank_costs_.at(stage * data_parallel_size_ + replica);
}

const ProfileCostModel::StageCost& ProfileCostModel::stage_cost(const Action& action, int replica) const {
  const RankCost& cost = rank_cost(action.stage, replica);
  const int size = micro_batch_sizes_.at(replica * num_micro_batches_ + *action.micro_batch);
  return size == smaller_size_ ? cost.smaller : cost.larger;
}

std::vector<Segment> ProfileCostModel::segments(const Action& action, int /*position*/, int replica) const {
  const auto compute = [](Nanoseconds duration) { return Segment{.duration_ns = duration, .collective_ranks = {}}; };
  if (is_compute(action.kind)) return {compute(compute_ns(action, 0, replica))};
  switch (action.kind) {
    case ActionKind::cache_read:
      return {compute(stage_cost(action, replica).cache_read_ns)};
    case ActionKind::cache_write:
      return {compute(stage_cost(action, replica).cache_write_ns)};
    case ActionKind::reduce_gradient: {
      const bool is_end = action.stage == 0 || action.stage + 1 == static_cast<int>(reduce_gradient_.size());
      std::vector<Segment> segments;
      if (data_parallel_size_ > 1) segments.push_back(reduce_gradient_.at(action.stage));
      if (is_end && !reduce_tied_.empty()) segments.push_back(reduce_tied_.at(replica));
      return segments;
    }
    case ActionKind::optimizer_step:
      if (gradient_norm_.collective_ranks.size() < 2) return {compute(rank_cost(action.stage, replica).update_ns)};
      return {gradient_norm_, compute(rank_cost(action.stage, replica).update_ns)};
    default:
      throw InvalidInput("action " + to_string(action), "must have a cost in a profile", "none is defined");
  }
}

Nanoseconds ProfileCostModel::compute_ns(const Action& action, int /*position*/, int replica) const {
  const StageCost& cost = stage_cost(action, replica);
  switch (action.kind) {
    case ActionKind::backward:
      return cost.recompute_ns + cost.input_gradient_ns + cost.weight_gradient_ns;
    case ActionKind::input_gradient:
      return cost.recompute_ns + cost.input_gradient_ns;
    case ActionKind::weight_gradient:
      return cost.weight_gradient_ns;
    default:
      return cost.forward_ns;
  }
}

TransferCost ProfileCostModel::transfer(const Action& send, int replica) const {
  const StageCost& cost = stage_cost(send, replica);
  return send.kind == ActionKind::send_forward ? cost.send_forward : cost.send_backward;
}

std::vector<SharedOccupancy> ProfileCostModel::shared_occupancies(const Action& send, int replica) const {
  const StageCost& cost = stage_cost(send, replica);
  return send.kind == ActionKind::send_forward ? cost.shared_forward : cost.shared_backward;
}

}  // namespace frostpipe
