#pragma once
// Implementation header of profile_cost_model.cpp and iteration_timer.cpp.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "plan/memory.h"
#include "plan/stages.h"
#include "plan/token_slices.h"
#include "simulator/communication_costs.h"
#include "simulator/cost_model.h"
#include "simulator/layer_costs.h"
#include "simulator/replica_wait.h"

namespace frostpipe {

/// Computes the parts of a ProfileCostModel from the layers' costs and the cluster. Its arguments must outlive it.
/// Without a cache, the phase's partition may change if forget() is called for the stages whose layers change.
class ProfileCostModel::Prices {
 public:
  Prices(const Phase& phase, const StepSettings& settings, LayerCosts& costs, const Cluster& cluster)
      : phase_(phase),
        layout_(phase.layout),
        partition_(phase.partition),
        settings_(settings),
        costs_(costs),
        profile_(costs.profile()),
        cluster_(checked(cluster, phase)),
        messages_(cluster, phase.layout),
        side_by_side_(reductions_side_by_side(cluster, phase.layout)),
        splits_backward_(splits_backward(phase)),
        pipeline_ranks_(pipeline_ranks_of_stages(phase)),
        cache_reach_(phase.partition.front().end),
        speed_(cache_speed(phase, costs.profile())) {
    const int entry_tokens = profile_.workload ? static_cast<int>(std::ceil(profile_.workload->tokens)) : phase.tokens;
    entry_bytes_ = profile_.model.hidden_size * entry_tokens * bytes_per_value(DType::kFloat32);
    for (int k = 0; k < layout_.pipeline_parallel_size && layout_.vacant.empty(); ++k)
      for (int replica = 0; replica < layout_.data_parallel_size; ++replica)
        ranks_.push_back(frostpipe::rank_of(layout_, k, replica));
    if (phase.cache.on) writing_stage_ = stage_of_layer(partition_, phase.first_trainable_layer - 1);
  }

  using Unit = ProfileCostModel::Unit;

  const Phase& phase() const { return phase_; }
  const StepSettings& settings() const { return settings_; }
  bool links_are_shared() const { return !cluster_.shared_links.empty(); }
  Segment gradient_norm() const { return gradient_norm_segment(cluster_, phase_); }

  /// Drops the cached costs of a stage whose layers have changed.
  void forget(int stage) {
    computed_.erase(computed_.lower_bound({stage, 0, 0, ""}), computed_.lower_bound({stage + 1, 0, 0, ""}));
    updates_.erase(updates_.lower_bound({stage, ""}), updates_.lower_bound({stage + 1, ""}));
  }

  /// Returns the costs of a micro-batch on the rank that runs it, by slice.
  std::vector<StageCost> stage_costs(int stage, Unit unit, int size) {
    std::vector<StageCost> costs;
    for (int slice = 0; slice < num_slices(phase_); ++slice) costs.push_back(stage_cost(stage, unit, size, slice));
    return costs;
  }

  StageCost stage_cost(int stage, Unit unit, int size, int slice) {
    if (size == 0 || !has_tokens(slice)) return {};
    const int rank = rank_of(stage, unit);
    StageCost cost = computed(stage, size, slice, cluster_.devices[rank].type);
    const int here = pipeline_ranks_[stage];
    if (stage + 1 < num_stages() && pipeline_ranks_[stage + 1] != here) {
      const int to = rank_of(stage + 1, unit);
      cost.send_forward = messages_.cost(rank, to, cost.sent_forward_bytes);
      cost.shared_forward = messages_.shared(rank, to, cost.sent_forward_bytes);
    }
    if (stage > 0 && pipeline_ranks_[stage - 1] != here) {
      const int to = rank_of(stage - 1, unit);
      cost.send_backward = messages_.cost(rank, to, cost.sent_backward_bytes);
      cost.shared_backward = messages_.shared(rank, to, cost.sent_backward_bytes);
    }
    if (stage == 0 && slice == 0) {  // entries are of whole samples
      const double read_fraction = 1 - computed_fraction(phase_.cache, 0, cache_reach_);
      cost.cache_read_ns = entries_ns(speed_.read, size * read_fraction, entry_bytes_);
    }
    if (stage == writing_stage_ && (slice + 1 == num_slices(phase_) || !has_tokens(slice + 1))) {
      const double written_fraction = 1 - fraction_at(phase_.cache.found, phase_.first_trainable_layer);
      cost.cache_write_ns = entries_ns(speed_.write, size * written_fraction, entry_bytes_);
    }
    return cost;
  }

  /// The inputs of a stage's costs that depend on the rank: ranks with equal places have equal costs.
  struct Place {
    std::string_view device_type;
    const LinkClass *to_next = nullptr, *to_previous = nullptr;
    bool operator==(const Place&) const = default;
  };
  Place place_of(int stage, Unit unit) const {
    const int rank = rank_of(stage, unit);
    Place place{.device_type = cluster_.devices[rank].type};
    if (stage + 1 < num_stages()) place.to_next = &link_between(cluster_, rank, rank_of(stage + 1, unit));
    if (stage > 0) place.to_previous = &link_between(cluster_, rank, rank_of(stage - 1, unit));
    return place;
  }

  /// Returns the time of the optimizer step of a stage on that rank.
  Nanoseconds update_ns(int stage, Unit unit) {
    const std::string& device_type = cluster_.devices[rank_of(stage, unit)].type;
    const auto [known, is_new] = updates_.try_emplace({stage, device_type}, 0);
    if (!is_new) return known->second;
    if (first_trained(stage) >= partition_[stage].end) return 0;
    const std::vector<Nanoseconds>& updates = costs_.updates(device_type, settings_.optimizer);
    for (int layer = first_trained(stage); layer < partition_[stage].end; ++layer)
      known->second +=
          update_of_tensor_rank(profile_.model.layers[layer], updates[layer], layout_.tensor_parallel_size);
    return known->second;
  }

  /// Returns the reduction of a stage's gradients, with the time that replicas wait for each other. `smallest` is the
  /// number of samples of the smallest micro-batch, with whose backward reductions overlap if the cluster asks for
  /// that.
  Segment reduce_gradient(int stage, int smallest) const {
    Bytes bytes_of_all = 0;
    std::vector<LayerGradient> gradients;
    for (int layer = partition_[stage].end - 1; layer >= first_trained(stage); --layer) {
      const Bytes bytes =
          reduced_gradient_bytes(phase_, profile_.model, layer, settings_.global_batch_size, settings_.dtype);
      bytes_of_all += bytes;
      if (!cluster_.communication.overlap_gradient_reduction || smallest == 0) continue;
      const LayerCost& cost =  // of slice 0, whose backward is the last
          costs_.of_phase(phase_, cluster_.devices[rank_of(stage, {})].type, smallest, 0)[layer];
      const bool has_input_gradient = layer > phase_.first_trainable_layer;
      const Nanoseconds whole = cost.weight_gradient_ns + (has_input_gradient ? cost.input_gradient_ns : 0);
      gradients.push_back({splits_backward_ ? split_backward_of(cost, has_input_gradient).weight_ns : whole, bytes});
    }
    const std::vector<int> replicas = replicas_of_stage(phase_, stage);
    Segment reduction = all_reduce_segment(cluster_, replicas, bytes_of_all, side_by_side_);
    if (!gradients.empty()) reduction.duration_ns = exposed_reduction_ns(cluster_, replicas, gradients, side_by_side_);
    reduction.duration_ns += expert_reduction_ns(cluster_, profile_.model, phase_, stage, settings_.dtype);
    reduction.duration_ns += replica_wait_ns(phase_, settings_, profile_, cluster_.devices[rank_of(stage, {})].type);
    return reduction;
  }

  /// Returns the time to add, with sequence parallelism, the gradients of parameters that every tensor rank holds
  /// whole, since each rank computes them from its own tokens. Without sequence parallelism it is 0.
  Nanoseconds sum_over_tensor_ranks_ns(int stage) const {
    if (!layout_.sequence_parallel) return 0;
    std::int64_t count = 0;
    for (int layer = first_trained(stage); layer < partition_[stage].end; ++layer)
      count += profile_.model.layers[layer].whole_parameter_count;
    return all_reduce_segment(cluster_, tensor_ranks_of(layout_, pipeline_ranks_[stage], 0),
                              count * kept_bytes_per_value(settings_.dtype), /*side_by_side=*/1)
        .duration_ns;
  }

  /// Returns the reductions of tied gradients by replica; empty without tied parameters.
  std::vector<Segment> reduce_tied() const {
    std::vector<Segment> reductions;
    const Bytes bytes = tied_gradient_bytes(phase_, profile_.model, settings_.dtype);
    if (bytes == 0) return reductions;
    for (int replica = 0; replica < layout_.data_parallel_size; ++replica)
      reductions.push_back(all_reduce_segment(cluster_, {rank_of(0, {replica}), rank_of(num_stages() - 1, {replica})},
                                              bytes, side_by_side_));
    return reductions;
  }

 private:
  /// Returns the cluster if it has the devices of the phase.
  static const Cluster& checked(const Cluster& cluster, const Phase& phase) {
    FROSTPIPE_CHECK(static_cast<int>(phase.partition.size()) == frostpipe::num_stages(phase),
                    "a validated phase has virtual_stages stages per pipeline rank");
    const int num_devices = static_cast<int>(cluster.devices.size());
    for (int pipeline_rank = 0; pipeline_rank < phase.layout.pipeline_parallel_size; ++pipeline_rank)
      for (const int rank : all_ranks_of(phase.layout, pipeline_rank))
        if (rank >= num_devices)
          throw InvalidInput("cluster " + cluster.name,
                             "must have a device for each rank of the layout, such as rank " + std::to_string(rank),
                             "with " + std::to_string(num_devices) + " devices");
    return cluster;
  }

  /// Returns the time for `entries` cached samples of one size; their number may be fractional.
  static Nanoseconds entries_ns(const Link& speed, double entries, Bytes bytes_each) {
    const auto one = static_cast<double>(speed.latency_ns + transfer_occupancy_ns(speed, bytes_each));
    return static_cast<Nanoseconds>(one * entries + 0.5);
  }

  static CacheSpeed cache_speed(const Phase& phase, const Profile& profile) {
    if (!phase.cache.on) return {};
    if (profile.cache) return *profile.cache;
    throw InvalidInput("profile: cache", "must be measured for a phase with a cache; profile again", "missing");
  }

  int num_stages() const { return static_cast<int>(partition_.size()); }
  int rank_of(int stage, Unit unit) const {
    if (layout_.vacant.empty()) return ranks_[pipeline_ranks_[stage] * layout_.data_parallel_size + unit.replica];
    const MeshCoordinate runner = runner_of(layout_, pipeline_ranks_[stage], unit.replica, unit.micro_batch);
    return frostpipe::rank_of(layout_, runner.pipeline_rank, runner.replica);
  }
  int first_trained(int stage) const { return std::max(partition_[stage].begin, phase_.first_trainable_layer); }

  /// Returns whether a sample of mean length has tokens in the slice.
  bool has_tokens(int slice) const {
    return num_slices(phase_) == 1 || tokens_of_slice(phase_, slice).of(phase_.tokens).count() > 0;
  }

  MeasurementKey key_of(int layer, int size, const std::string& device_type) const {
    return {.layer = layer,
            .device_type = device_type,
            .dtype = settings_.dtype,
            .micro_batch_size = size,
            .tokens = phase_.tokens,
            .tensor_parallel_size = layout_.tensor_parallel_size,
            .sequence_parallel = layout_.sequence_parallel};
  }

  /// Returns the part of a stage's cost that does not depend on its neighbours, equal for all replicas on one type of
  /// device.
  const StageCost& computed(int stage, int size, int slice, const std::string& device_type) {
    const auto [known, is_new] = computed_.try_emplace({stage, size, slice, device_type});
    StageCost& cost = known->second;
    if (!is_new) return cost;
    const std::vector<LayerCost>& layers = costs_.of_phase(phase_, device_type, size, slice);
    for (int layer = partition_[stage].begin; layer < partition_[stage].end; ++layer) {
      if (layer < phase_.first_trainable_layer)
        cost.forward_ns += frozen_forward_ns(layers[layer], layer, size, device_type);
      else
        add_trainable(cost, layers[layer], layer);
    }
    if (stage + 1 < num_stages()) cost.sent_forward_bytes = layers[partition_[stage].end - 1].output_activation_bytes;
    if (stage > 0) cost.sent_backward_bytes = layers[partition_[stage].begin - 1].output_activation_bytes;
    return cost;
  }

  Nanoseconds frozen_forward_ns(const LayerCost& measured, int layer, int size, const std::string& device_type) const {
    const double computed = computed_fraction(phase_.cache, layer, cache_reach_);
    if (computed == 1) return measured.frozen_forward_ns;
    return expected_frozen_forward_ns(profile_, key_of(layer, size, device_type), measured, computed * size);
  }

  void add_trainable(StageCost& cost, const LayerCost& measured, int layer) const {
    cost.forward_ns += measured.forward_ns;
    cost.weight_gradient_ns += measured.weight_gradient_ns;
    const bool has_input_gradient = layer > phase_.first_trainable_layer;
    if (has_input_gradient) cost.input_gradient_ns += measured.input_gradient_ns;
    if (splits_backward_) {
      const SplitBackward split = split_backward_of(measured, has_input_gradient);
      cost.split.input_ns += split.input_ns;
      cost.split.weight_ns += split.weight_ns;
    }
    if (is_recomputed(phase_.recompute, profile_.model.layers[layer].kind)) cost.recompute_ns += measured.forward_ns;
  }

  const Phase& phase_;
  const ParallelLayout& layout_;
  const Partition& partition_;
  const StepSettings& settings_;
  LayerCosts& costs_;
  const Profile& profile_;
  const Cluster& cluster_;
  Messages messages_;
  int side_by_side_;
  bool splits_backward_;
  std::vector<int> pipeline_ranks_;  // by stage
  std::vector<int> ranks_;           // by pipeline rank and replica; empty with vacant coordinates
  int cache_reach_;                  // end of stage 0's layers
  CacheSpeed speed_;
  Bytes entry_bytes_ = 0;  // bytes of a mean sample in the cache
  std::optional<int> writing_stage_;
  std::map<std::tuple<int, int, int, std::string>, StageCost> computed_;  // by stage, size, slice and device type
  std::map<std::pair<int, std::string>, Nanoseconds> updates_;            // by stage and device type
};

}  // namespace frostpipe
