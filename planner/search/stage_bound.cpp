#include "planner/search/stage_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plan/batch.h"
#include "plan/memory.h"
#include "plan/stages.h"
#include "plan/token_slices.h"

namespace frostpipe {
namespace {

/// Time of one micro-batch on one layer.
struct LayerTime {
  Nanoseconds forward = 0, backward = 0, weights = 0;  // backward is I if it is split
  Nanoseconds all() const { return forward + backward + weights; }
};

LayerTime time_of(const Phase& unpartitioned, bool splits_backward, const Profile& profile, const MeasurementKey& key,
                  const LayerCost& cost) {
  const int layer = key.layer;
  if (layer < unpartitioned.first_trainable_layer) {
    const double computed = computed_fraction(unpartitioned.cache, layer, unpartitioned.first_trainable_layer);
    if (computed == 1) return {.forward = cost.frozen_forward_ns};
    return {.forward = expected_frozen_forward_ns(profile, key, cost, computed * key.micro_batch_size)};
  }
  const bool has_input_gradient = layer > unpartitioned.first_trainable_layer;
  LayerTime time{.forward = cost.forward_ns};
  const Nanoseconds whole = cost.weight_gradient_ns + (has_input_gradient ? cost.input_gradient_ns : 0);
  if (splits_backward) {
    const SplitBackward split = split_backward_of(cost, has_input_gradient);  // DualPipeV has unsplit backwards as well
    time.backward = std::min(whole, split.input_ns);
    time.weights = std::min(whole, split.input_ns + split.weight_ns) - time.backward;
  } else {
    time.backward = whole;
  }
  if (is_recomputed(unpartitioned.recompute, profile.model.layers[layer].kind)) time.backward += cost.forward_ns;
  return time;
}

/// Returns the least time of a message of at least `bytes` between two neighbouring pipeline ranks.
Nanoseconds least_message_ns(const Phase& unpartitioned, const Cluster& cluster, int pipeline_rank, Bytes bytes) {
  Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
  for (int replica = 0; replica < unpartitioned.layout.data_parallel_size; ++replica) {
    const Link& link = link_between(cluster, rank_of(unpartitioned.layout, pipeline_rank, replica),
                                    rank_of(unpartitioned.layout, pipeline_rank + 1, replica))
                           .point_to_point;
    const int parts = unpartitioned.layout.sequence_parallel ? 1 : unpartitioned.layout.tensor_parallel_size;
    least = std::min(least, link.latency_ns + transfer_occupancy_ns(link, bytes / parts));
  }
  return least;
}

/// Work of replica 0, by layer.
struct LayerWork {
  std::map<std::string, WorkByLayer> of_type;  // by device type
  std::vector<Nanoseconds> least;              // minimum of all its work over device types
  std::vector<Nanoseconds> forward, backward;  // of trainable layers: the smaller micro-batch, the fastest device
  Bytes least_output = std::numeric_limits<Bytes>::max();  // over all layers
};

/// The micro-batches of one size on one device type.
struct SizeWork {
  int size = 0, count = 0;  // samples per micro-batch; number of micro-batches
  bool is_smaller = false;
  bool splits_backward = false;
  const std::string& device_type;
};

/// Adds the time of slice number `slice` of the micro-batches, which may be all of them. Times through the pipeline use
/// the shortest slice.
void add_slice(LayerWork& work, const SizeWork& of, int slice, const Phase& phase, const PlanningProblem& problem,
               LayerCosts& costs) {
  const auto& [profile, cluster, options] = problem;
  const auto& layers = costs.of_phase(phase, of.device_type, of.size, slice);
  WorkByLayer& here = work.of_type.at(of.device_type);
  MeasurementKey key{.device_type = of.device_type,
                     .dtype = options.dtype,
                     .micro_batch_size = of.size,
                     .tokens = phase.tokens,
                     .tensor_parallel_size = phase.layout.tensor_parallel_size,
                     .sequence_parallel = phase.layout.sequence_parallel};
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    key.layer = static_cast<int>(layer);
    const LayerTime time = time_of(phase, of.splits_backward, profile, key, layers[layer]);
    here.all[layer] += of.count * time.all();
    here.forwards[layer] += of.count * time.forward;
    here.weights[layer] += of.count * time.weights;
    if (!of.is_smaller) continue;
    const bool trains = static_cast<int>(layer) >= phase.first_trainable_layer;
    work.forward[layer] = trains ? std::min(work.forward[layer], time.forward) : 0;
    work.backward[layer] = trains ? std::min(work.backward[layer], time.backward) : 0;
    work.least_output = std::min(work.least_output, layers[layer].output_activation_bytes);
  }
}

LayerWork work_of(const Phase& unpartitioned, const PlanningProblem& problem, LayerCosts& costs) {
  const auto& [profile, cluster, options] = problem;
  const ParallelLayout& layout = unpartitioned.layout;
  const auto ranges =
      split_evenly(options.global_batch_size, layout.data_parallel_size * unpartitioned.num_micro_batches);
  std::map<int, int> count_of_size;
  for (int i = 0; i < unpartitioned.num_micro_batches; ++i) ++count_of_size[ranges[i].end - ranges[i].begin];
  const int smaller = count_of_size.begin()->first;
  const bool splits = splits_backward(unpartitioned);

  constexpr Nanoseconds kLargest = std::numeric_limits<Nanoseconds>::max();
  const std::size_t n = profile.model.layers.size();
  LayerWork work{.of_type = {},
                 .least = std::vector<Nanoseconds>(n, kLargest),
                 .forward = std::vector<Nanoseconds>(n, kLargest),
                 .backward = std::vector<Nanoseconds>(n, kLargest)};
  for (int k = 0; k < layout.pipeline_parallel_size; ++k) {
    const std::string& type = cluster.devices.at(rank_of(layout, k, 0)).type;
    const auto [entry, is_new] = work.of_type.try_emplace(type);
    if (!is_new) continue;
    WorkByLayer& here = entry->second;
    for (auto* const sums : {&here.all, &here.forwards, &here.weights}) sums->assign(n, 0);
    for (const auto& [size, count] : count_of_size)
      for (int slice = 0; slice < num_slices(unpartitioned); ++slice)
        add_slice(work, {size, count, size == smaller, splits, type}, slice, unpartitioned, problem, costs);
    for (std::size_t layer = 0; layer < n; ++layer) work.least[layer] = std::min(work.least[layer], here.all[layer]);
  }
  return work;
}

std::vector<Nanoseconds> sums_before(const std::vector<Nanoseconds>& values) {
  std::vector<Nanoseconds> before(values.size() + 1, 0);
  for (std::size_t layer = 0; layer < values.size(); ++layer) before[layer + 1] = before[layer] + values[layer];
  return before;
}

}  // namespace

StageBound::StageBound(const Phase& unpartitioned, const PlanningProblem& problem, LayerCosts& costs)
    : pipeline_ranks_(unpartitioned.layout.pipeline_parallel_size),
      virtual_stages_(unpartitioned.virtual_stages),
      overlaps_(weight_delay(unpartitioned) > 0),
      stages_on_(stages_on_each(unpartitioned)),
      first_trainable_layer_(unpartitioned.first_trainable_layer) {
  const auto& [profile, cluster, options] = problem;
  const ParallelLayout& layout = unpartitioned.layout;
  const int n = static_cast<int>(profile.model.layers.size());
  const LayerWork work = work_of(unpartitioned, problem, costs);
  for (const auto& [type, of] : work.of_type)
    work_[type] = {sums_before(of.all), sums_before(of.forwards), sums_before(of.weights)};
  for (int k = 0; k < pipeline_ranks_; ++k)
    work_of_pipeline_rank_.push_back(&work_.at(cluster.devices.at(rank_of(layout, k, 0)).type));
  chain_forward_ = sums_before(work.forward);
  chain_backward_ = sums_before(work.backward);
  std::vector<Nanoseconds> update(n, std::numeric_limits<Nanoseconds>::max());
  for (const auto& [type, of] : work.of_type) {
    const auto& updates = costs.updates(type, options.optimizer);
    for (int layer = 0; layer < n; ++layer)
      update[layer] = layer < first_trainable_layer_
                          ? 0
                          : std::min(update[layer], update_of_tensor_rank(profile.model.layers[layer], updates[layer],
                                                                          layout.tensor_parallel_size));
  }
  update_ = sums_before(update);
  parameters_bytes_.assign(1, 0);
  for (int layer = 0; layer < n; ++layer) {
    const bool trains = layer >= first_trainable_layer_;
    parameters_bytes_.push_back(
        parameters_bytes_.back() +
        (trains ? reduced_gradient_bytes(unpartitioned, profile.model, layer, options.global_batch_size, options.dtype)
                : 0));
  }
  // With frozen layers, messages may come from stages that have run ahead.
  messages_.assign(pipeline_ranks_, 0);
  if (first_trainable_layer_ == 0)
    for (int k = 0; k + 1 < pipeline_ranks_; ++k)
      messages_[k + 1] = messages_[k] + least_message_ns(unpartitioned, cluster, k, work.least_output);
  for (int k = 0; k < pipeline_ranks_; ++k) {
    std::vector<int> ranks = replicas_of(layout, k);
    std::sort(ranks.begin(), ranks.end());
    const bool counts = layout.data_parallel_size > 1 && !cluster.communication.overlap_gradient_reduction &&
                        parameters_bytes_.back() > 0;
    const auto latency = counts ? static_cast<double>(all_reduce_ns(cluster, ranks, 0)) : 0.0;
    reduction_latency_ns_.push_back(latency);
    reduction_ns_per_byte_.push_back(
        counts ? (static_cast<double>(all_reduce_ns(cluster, ranks, parameters_bytes_.back())) - latency) /
                     static_cast<double>(parameters_bytes_.back())
               : 0.0);
  }
  if (num_ranks(layout) > 1 && first_trainable_layer_ == 0) {
    std::vector<int> ranks;
    for (int k = 0; k < pipeline_ranks_; ++k)
      for (const int rank : all_ranks_of(layout, k)) ranks.push_back(rank);
    std::sort(ranks.begin(), ranks.end());
    norm_ns_ = all_reduce_ns(cluster, ranks, 8);
  }
}

StageBound::Terms StageBound::terms(int pipeline_rank, LayerRange stage) const {
  const auto of_stage = [&](const std::vector<Nanoseconds>& before) { return before[stage.end] - before[stage.begin]; };
  const WorkByLayer& work = *work_of_pipeline_rank_[pipeline_rank];
  Terms terms{.work_ns = of_stage(work.all), .weights_ns = of_stage(work.weights)};
  if (stage.end <= first_trainable_layer_) return terms;
  const auto bytes = static_cast<double>(parameters_bytes_[stage.end] - parameters_bytes_[stage.begin]);
  terms.to_ns = chain_forward_[stage.begin] + messages_[pipeline_rank] + update_[1];
  terms.update_ns = update_[stage.end] - update_[stage.begin];
  const auto reduction_ns = [&](int at, double of_bytes) {
    return static_cast<Nanoseconds>(reduction_latency_ns_[at] + of_bytes * reduction_ns_per_byte_[at]);
  };
  terms.back_ns = chain_backward_[stage.begin] + messages_[pipeline_rank];
  if (pipeline_rank > 0 && first_trainable_layer_ == 0)
    terms.back_ns += reduction_ns(0, static_cast<double>(parameters_bytes_[1]));
  terms.reduction_ns = reduction_ns(pipeline_rank, bytes);
  terms.norm_ns = norm_ns_;
  const auto after = [&](const std::vector<Nanoseconds>& before) { return before.back() - before[stage.end]; };
  const Nanoseconds forwards = of_stage(work.forwards), backwards = terms.work_ns - forwards - terms.weights_ns;
  terms.through_ns = after(chain_forward_) + after(chain_backward_) +
                     2 * (messages_.back() - messages_[pipeline_rank]) +
                     std::max(forwards + of_stage(chain_backward_), of_stage(chain_forward_) + backwards);
  if (overlaps_) terms.to_ns = terms.back_ns = terms.through_ns = 0;
  return terms;
}

Nanoseconds StageBound::at(int pipeline_rank, LayerRange stage) const { return terms(pipeline_rank, stage).total_ns(); }

StageBound::Terms StageBound::on_rank(const Partition& partition, int pipeline_rank) const {
  const std::vector<int>& stages = stages_on_[pipeline_rank];
  Terms sum = terms(pipeline_rank, partition[stages.front()]);
  if (virtual_stages_ > 1) sum.through_ns = 0;
  for (std::size_t i = 1; i < stages.size() && stages[i] < static_cast<int>(partition.size()); ++i) {
    const Terms one = terms(pipeline_rank, partition[stages[i]]);
    sum.work_ns += one.work_ns;
    sum.weights_ns += one.weights_ns;
    sum.update_ns += one.update_ns;
    sum.reduction_ns += one.reduction_ns;
    sum.norm_ns = std::max(sum.norm_ns, one.norm_ns);
  }
  return sum;
}

Nanoseconds StageBound::of_any() const {
  if (virtual_stages_ == 1) return 0;
  return update_[1] + chain_forward_.back() + chain_backward_.back() + 2 * virtual_stages_ * messages_.back() +
         norm_ns_;
}

Nanoseconds StageBound::of(const Partition& partition) const {
  Nanoseconds largest = of_any();
  for (int k = 0; k < pipeline_ranks_; ++k) largest = std::max(largest, on_rank(partition, k).total_ns());
  return largest;
}

Nanoseconds bound_of_any_partition(const Phase& unpartitioned, const PlanningProblem& problem, LayerCosts& costs) {
  const LayerWork work = work_of(unpartitioned, problem, costs);
  const double m = unpartitioned.num_micro_batches;
  Nanoseconds largest_layer = 0, sum = 0;
  double share = 1;  // r
  for (std::size_t layer = 0; layer < work.least.size(); ++layer) {
    largest_layer = std::max(largest_layer, work.least[layer]);
    sum += work.least[layer];
    if (work.least[layer] > 0)
      share = std::min(share, m * static_cast<double>(work.forward[layer] + work.backward[layer]) /
                                  static_cast<double>(work.least[layer]));
  }
  const int p = unpartitioned.layout.pipeline_parallel_size;
  if (weight_delay(unpartitioned) > 0) return std::max(sum / p, largest_layer);
  const bool splits = splits_backward(unpartitioned);
  if (unpartitioned.virtual_stages > 1 || splits) {
    const std::vector<Nanoseconds> forward = sums_before(work.forward), backward = sums_before(work.backward);
    // At least k layers precede rank k's first stage. The rank's own W may overlap with their backward.
    for (int k = 0; k < p; ++k) sum += forward[k] + (splits ? 0 : backward[k]);
    return std::max({sum / p, largest_layer, forward.back() + backward.back()});
  }
  const double mean = static_cast<double>(sum) / m;
  const double bound = share > 0 ? mean * share / (1 - std::pow(1 - share / m, p)) : mean * m / p;
  constexpr double kRounding = 1e-9;
  return std::max(static_cast<Nanoseconds>(bound * (1 - kRounding)), largest_layer);
}

}  // namespace frostpipe
