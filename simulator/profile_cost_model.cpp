#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "plan/batch.h"
#include "plan/memory.h"
#include "plan/stages.h"
#include "plan/token_slices.h"
#include "profiles/error.h"
#include "simulator/communication_costs.h"
#include "simulator/cost_model.h"
#include "simulator/replica_wait.h"

namespace frostpipe {
namespace {

void require_devices(const Cluster& cluster, const ParallelLayout& layout) {
  const int num_devices = static_cast<int>(cluster.devices.size());
  for (int pipeline_rank = 0; pipeline_rank < layout.pipeline_parallel_size; ++pipeline_rank) {
    for (const int rank : all_ranks_of(layout, pipeline_rank))
      if (rank >= num_devices)
        throw InvalidInput("cluster " + cluster.name,
                           "must have a device for each rank of the layout, has " + std::to_string(num_devices),
                           "rank " + std::to_string(rank));
  }
}

Nanoseconds scaled(Nanoseconds duration, double share) {
  return static_cast<Nanoseconds>(static_cast<double>(duration) * share + 0.5);
}

/// Of `entries` cached samples of one size, which may be a mean.
Nanoseconds entries_ns(const Link& speed, double entries, Bytes bytes_each) {
  return scaled(speed.latency_ns + transfer_occupancy_ns(speed, bytes_each), entries);
}

CacheSpeed cache_speed(const Phase& phase, const Profile& profile) {
  if (!phase.cache.on) return {};
  if (profile.cache) return *profile.cache;
  throw InvalidInput("profile: cache", "must be measured for a phase with a cache; profile again", "missing");
}

}  // namespace

/// What a model is made of, each looked up in the profile and the cluster.
class ProfileCostModel::Prices {
 public:
  Prices(const Phase& phase, const StepSettings& settings, const Profile& profile, const Cluster& cluster)
      : phase_(phase),
        layout_(phase.layout),
        partition_(phase.partition),
        settings_(settings),
        profile_(profile),
        cluster_(cluster),
        messages_(cluster, phase.layout),
        side_by_side_(reductions_side_by_side(cluster, phase.layout)),
        splits_backward_(splits_backward(phase)),
        cache_reach_(phase.partition.front().end),
        speed_(cache_speed(phase, profile)) {
    const int entry_tokens = profile.workload ? static_cast<int>(std::ceil(profile.workload->tokens)) : phase.tokens;
    entry_bytes_ = profile.model.hidden_size * entry_tokens * bytes_per_value(DType::kFloat32);
    if (phase.cache.on) writing_stage_ = stage_of_layer(partition_, phase.first_trainable_layer - 1);
  }

  /// A micro-batch of one replica, where it matters which.
  struct Unit {
    int replica = 0, micro_batch = 0;
  };

  /// Of a micro-batch on the rank that runs it, by slice.
  std::vector<StageCost> stage_costs(int stage, Unit unit, int size) {
    std::vector<StageCost> costs;
    for (int slice = 0; slice < num_slices(phase_); ++slice) costs.push_back(stage_cost(stage, unit, size, slice));
    return costs;
  }

  StageCost stage_cost(int stage, Unit unit, int size, int slice) {
    if (size == 0 || !has_tokens(slice)) return {};
    const int rank = rank_of(stage, unit);
    StageCost cost = computed(stage, size, slice, cluster_.devices[rank].type);
    const int here = pipeline_rank_of(phase_, stage);
    if (stage + 1 < num_stages(phase_) && pipeline_rank_of(phase_, stage + 1) != here) {
      const int to = rank_of(stage + 1, unit);
      cost.send_forward = messages_.cost(rank, to, cost.sent_forward_bytes);
      cost.shared_forward = messages_.shared(rank, to, cost.sent_forward_bytes);
    }
    if (stage > 0 && pipeline_rank_of(phase_, stage - 1) != here) {
      const int to = rank_of(stage - 1, unit);
      cost.send_backward = messages_.cost(rank, to, cost.sent_backward_bytes);
      cost.shared_backward = messages_.shared(rank, to, cost.sent_backward_bytes);
    }
    if (stage == 0 && slice == 0) {  // of whole samples
      const double read_fraction = 1 - computed_fraction(phase_.cache, 0, cache_reach_);
      cost.cache_read_ns = entries_ns(speed_.read, size * read_fraction, entry_bytes_);
    }
    if (stage == writing_stage_ && (slice + 1 == num_slices(phase_) || !has_tokens(slice + 1))) {
      const double written_fraction = 1 - fraction_at(phase_.cache.found, phase_.first_trainable_layer);
      cost.cache_write_ns = entries_ns(speed_.write, size * written_fraction, entry_bytes_);
    }
    return cost;
  }

  /// Of the optimizer on that rank.
  Nanoseconds update_ns(int stage, Unit unit) {
    const std::string& device_type = cluster_.devices[rank_of(stage, unit)].type;
    const auto [known, is_new] = updates_.try_emplace({stage, device_type}, 0);
    if (!is_new) return known->second;
    for (int layer = first_trained(stage); layer < partition_[stage].end; ++layer)
      known->second +=
          update_of_tensor_rank(profile_.model.layers[layer],
                                update_cost_of(profile_, layer, device_type, settings_.dtype, settings_.optimizer),
                                layout_.tensor_parallel_size);
    return known->second;
  }

  /// The reduction of a stage's gradients, and the wait for it; `smallest`: samples of the smallest micro-batch, beside
  /// whose backward the first layers' are reduced where the cluster does that.
  Segment reduce_gradient(int stage, int smallest) const {
    Bytes bytes_of_all = 0;
    std::vector<LayerGradient> gradients;
    for (int layer = partition_[stage].end - 1; layer >= first_trained(stage); --layer) {
      const Bytes bytes =
          reduced_gradient_bytes(phase_, profile_.model, layer, settings_.global_batch_size, settings_.dtype);
      bytes_of_all += bytes;
      if (!cluster_.communication.overlap_gradient_reduction || smallest == 0) continue;
      const LayerCost cost = cost_of_slice(  // whose backward is the last
          profile_, phase_, key_of(layer, smallest, cluster_.devices[rank_of(stage, {})].type), 0);
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

  /// Of gradients of parameters that every tensor rank has whole, each from its own tokens: with sequence parallelism.
  Nanoseconds sum_over_tensor_ranks_ns(int stage) const {
    if (!layout_.sequence_parallel) return 0;
    std::int64_t count = 0;
    for (int layer = first_trained(stage); layer < partition_[stage].end; ++layer)
      count += profile_.model.layers[layer].whole_parameter_count;
    return all_reduce_segment(cluster_, tensor_ranks_of(layout_, pipeline_rank_of(phase_, stage), 0),
                              count * kept_bytes_per_value(settings_.dtype), /*side_by_side=*/1)
        .duration_ns;
  }

  /// By replica; none where nothing is tied.
  std::vector<Segment> reduce_tied() const {
    std::vector<Segment> reductions;
    const Bytes bytes = tied_gradient_bytes(phase_, profile_.model, settings_.dtype);
    if (bytes == 0) return reductions;
    for (int replica = 0; replica < layout_.data_parallel_size; ++replica)
      reductions.push_back(all_reduce_segment(
          cluster_, {rank_of(0, {replica}), rank_of(num_stages(phase_) - 1, {replica})}, bytes, side_by_side_));
    return reductions;
  }

 private:
  int rank_of(int stage, Unit unit) const {
    const MeshCoordinate runner = runner_of(layout_, pipeline_rank_of(phase_, stage), unit.replica, unit.micro_batch);
    return frostpipe::rank_of(layout_, runner.pipeline_rank, runner.replica);
  }
  int first_trained(int stage) const { return std::max(partition_[stage].begin, phase_.first_trainable_layer); }

  /// Of a sample of mean length.
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

  /// What does not depend on where a stage's neighbours are: the same for all replicas on one type of device.
  const StageCost& computed(int stage, int size, int slice, const std::string& device_type) {
    const auto [known, is_new] = computed_.try_emplace({stage, size, slice, device_type});
    StageCost& cost = known->second;
    if (!is_new) return cost;
    for (int layer = partition_[stage].begin; layer < partition_[stage].end; ++layer)
      add_layer(cost, layer, key_of(layer, size, device_type), slice);
    const auto sent_behind = [&](int layer) {
      return cost_of_slice(profile_, phase_, key_of(layer, size, device_type), slice).output_activation_bytes;
    };
    if (stage + 1 < num_stages(phase_)) cost.sent_forward_bytes = sent_behind(partition_[stage].end - 1);
    if (stage > 0) cost.sent_backward_bytes = sent_behind(partition_[stage].begin - 1);
    return cost;
  }

  void add_layer(StageCost& cost, int layer, const MeasurementKey& key, int slice) const {
    const LayerCost measured = cost_of_slice(profile_, phase_, key, slice);
    if (layer < phase_.first_trainable_layer) {
      const double computed = computed_fraction(phase_.cache, layer, cache_reach_);
      cost.forward_ns += computed == 1
                             ? measured.frozen_forward_ns
                             : expected_frozen_forward_ns(profile_, key, measured, computed * key.micro_batch_size);
      return;
    }
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
  const Profile& profile_;
  const Cluster& cluster_;
  Messages messages_;
  int side_by_side_;
  bool splits_backward_;
  int cache_reach_;  // where stage 0's layers end
  CacheSpeed speed_;
  Bytes entry_bytes_ = 0;  // of a mean sample in the cache
  std::optional<int> writing_stage_;
  std::map<std::tuple<int, int, int, std::string>, StageCost> computed_;  // by stage, size, slice and device type
  std::map<std::pair<int, std::string>, Nanoseconds> updates_;            // by stage and device type
};

ProfileCostModel::ProfileCostModel(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                   const Cluster& cluster)
    : data_parallel_size_(phase.layout.data_parallel_size),
      num_micro_batches_(phase.num_micro_batches),
      costs_per_stage_(data_parallel_size_) {
  const int stages = static_cast<int>(phase.partition.size());
  FROSTPIPE_CHECK(stages == num_stages(phase), "a validated phase has virtual_stages stages per pipeline rank");
  require_devices(cluster, phase.layout);
  for (const SampleRange& range : split_evenly(settings.global_batch_size, data_parallel_size_ * num_micro_batches_))
    micro_batch_sizes_.push_back(range.end - range.begin);
  smaller_size_ = micro_batch_sizes_.back();
  if (const ParallelLayout lists = layout_of_lists(phase.layout); !phase.layout.vacant.empty()) {
    costs_per_stage_ = data_parallel_size_ * num_micro_batches_;
    for (const int rank : pipeline_of(lists, 0))
      replica_of_list_.push_back(find_coordinate(phase.layout, rank)->replica);
  }
  Prices prices(phase, settings, profile, cluster);
  for (int stage = 0; stage < stages; ++stage) {
    tensor_sum_ns_.push_back(prices.sum_over_tensor_ranks_ns(stage));
    reduce_gradient_.push_back(prices.reduce_gradient(stage, smaller_size_));
    meets_for_norm_.push_back(is_first_to_train(phase, stage));
    const std::vector<int> on_rank = stages_on(phase, pipeline_rank_of(phase, stage));
    exchanges_tied_.push_back(stage == on_rank.back() && (on_rank.front() == 0 || stage + 1 == stages));
    for (int index = 0; index < costs_per_stage_; ++index) {
      const Prices::Unit unit = replica_of_list_.empty()
                                    ? Prices::Unit{index}
                                    : Prices::Unit{index / num_micro_batches_, index % num_micro_batches_};
      RankCost cost{.smaller = prices.stage_costs(stage, unit, smaller_size_), .larger = {}};
      if (micro_batch_sizes_.front() > smaller_size_) cost.larger = prices.stage_costs(stage, unit, smaller_size_ + 1);
      cost.update_ns = prices.update_ns(stage, unit);
      for (const std::vector<StageCost>* slices : {&cost.smaller, &cost.larger})
        for (const StageCost& part : *slices)
          shares_links_ = shares_links_ || !part.shared_forward.empty() || !part.shared_backward.empty();
      rank_costs_.push_back(std::move(cost));
    }
  }
  reduce_tied_ = prices.reduce_tied();
  gradient_norm_ = gradient_norm_segment(cluster, phase);
}

bool ProfileCostModel::replicas_are_alike() const {
  if (shares_links_ || !replica_of_list_.empty() || micro_batch_sizes_.front() != micro_batch_sizes_.back())
    return false;
  for (std::size_t i = 0; i < rank_costs_.size(); ++i)
    if (rank_costs_[i] != rank_costs_[i - i % data_parallel_size_]) return false;
  return true;
}

const ProfileCostModel::RankCost& ProfileCostModel::rank_cost(int stage, int replica, int micro_batch) const {
  return rank_costs_.at(stage * costs_per_stage_ + (replica_of_list_.empty() ? replica : micro_batch));
}

const ProfileCostModel::StageCost& ProfileCostModel::stage_cost(const Action& action, int replica) const {
  const RankCost& cost = rank_cost(action.stage, replica, *action.micro_batch);
  const int size = micro_batch_sizes_.at(replica * num_micro_batches_ + *action.micro_batch);
  return (size == smaller_size_ ? cost.smaller : cost.larger).at(action.slice.value_or(0));
}

std::vector<Segment> ProfileCostModel::segments(const Action& action, int pipeline_rank, int replica) const {
  const auto compute = [](Nanoseconds duration) { return Segment{.duration_ns = duration, .collective_ranks = {}}; };
  if (is_compute(action.kind)) return {compute(compute_ns(action, 0, replica))};
  switch (action.kind) {
    case ActionKind::cache_read:
      return {compute(stage_cost(action, replica).cache_read_ns)};
    case ActionKind::cache_write:
      return {compute(stage_cost(action, replica).cache_write_ns)};
    case ActionKind::reduce_gradient: {
      std::vector<Segment> segments;
      if (tensor_sum_ns_.at(action.stage) > 0) segments.push_back(compute(tensor_sum_ns_[action.stage]));
      if (data_parallel_size_ > 1) segments.push_back(reduce_gradient_.at(action.stage));
      if (!reduce_tied_.empty() && exchanges_tied_.at(action.stage))
        segments.push_back(reduce_tied_.at(replica_of(pipeline_rank, replica)));
      return segments;
    }
    case ActionKind::optimizer_step: {
      const int of_layout = replica_of(pipeline_rank, replica);  // which runs its own micro-batches
      const Segment update = compute(rank_cost(action.stage, of_layout, of_layout * num_micro_batches_).update_ns);
      if (gradient_norm_ == Segment() || !meets_for_norm_.at(action.stage)) return {update};
      return {gradient_norm_, update};
    }
    default:
      throw InvalidInput("action " + to_string(action), "must have a cost in a profile", "none is defined");
  }
}

Nanoseconds ProfileCostModel::compute_ns(const Action& action, int /*pipeline rank*/, int replica) const {
  const StageCost& cost = stage_cost(action, replica);
  switch (action.kind) {
    case ActionKind::backward:
      return cost.recompute_ns + cost.input_gradient_ns + cost.weight_gradient_ns;
    case ActionKind::input_gradient:
      return cost.recompute_ns + cost.split.input_ns;
    case ActionKind::weight_gradient:
      return cost.split.weight_ns;
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
