#include "planner/search/stage_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "plan/batch.h"
#include "plan/memory.h"
#include "plan/stages.h"
#include "plan/token_slices.h"
#include "simulator/communication_costs.h"

namespace frostpipe {

/// A device type, and how many micro-batches of each size a replica has.
using ReplicaKind = std::pair<std::string, std::map<int, int>>;
using WorkOfKinds = std::map<ReplicaKind, WorkByLayer>;

/// Work by layer. If the replicas of a pipeline rank have unequal devices, it is that of the one that works longest.
struct PhaseWork {
  WorkOfKinds of_kind;
  std::vector<const WorkOfKinds::value_type*> of_rank;  // by pipeline rank; into of_kind
  std::vector<Nanoseconds> least;                       // minimum of all its work over the pipeline ranks
  std::vector<Nanoseconds> forward, backward;  // of trainable layers: the smaller micro-batch, the fastest device
  Bytes least_output = std::numeric_limits<Bytes>::max();  // over all layers
};

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

/// The micro-batches of one size on one device type.
struct SizeWork {
  int size = 0, count = 0;  // samples per micro-batch; number of micro-batches
  bool is_smaller = false;
  bool splits_backward = false;
  const std::string& device_type;
};

/// Adds the time of slice number `slice` of the micro-batches, which may be all of them, to `here` and `work`. Times
/// through the pipeline use the shortest slice.
void add_slice(PhaseWork& work, WorkByLayer& here, const SizeWork& of, int slice, const Phase& phase,
               const PlanningProblem& problem, LayerCosts& costs) {
  const auto& [profile, cluster, options] = problem;
  const auto& layers = costs.of_phase(phase, of.device_type, of.size, slice);
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

/// Returns whether the replicas of some pipeline rank have devices of different types.
bool have_unequal_replicas(const ParallelLayout& layout, const Cluster& cluster) {
  if (std::ranges::all_of(cluster.devices,
                          [&](const Device& device) { return device.type == cluster.devices[0].type; }))
    return false;
  for (int k = 0; k < layout.pipeline_parallel_size; ++k)
    for (int replica = 1; replica < layout.data_parallel_size; ++replica)
      if (cluster.devices.at(rank_of(layout, k, replica)).type != cluster.devices.at(rank_of(layout, k, 0)).type)
        return true;
  return false;
}

/// Returns how many micro-batches of each size each of the first `replicas` replicas has.
std::vector<std::map<int, int>> counts_of_sizes(const Phase& phase, int replicas, int global_batch_size) {
  const int m = phase.num_micro_batches;
  const auto ranges = split_evenly(global_batch_size, phase.layout.data_parallel_size * m);
  std::vector<std::map<int, int>> counts(replicas);
  for (int replica = 0; replica < replicas; ++replica)
    for (int i = 0; i < m; ++i) {
      const SampleRange& samples = ranges[replica * m + i];
      if (samples.end > samples.begin) ++counts[replica][samples.end - samples.begin];
    }
  return counts;
}

PhaseWork work_of(const Phase& unpartitioned, const PlanningProblem& problem, LayerCosts& costs) {
  const auto& [profile, cluster, options] = problem;
  const ParallelLayout& layout = unpartitioned.layout;
  // Of replicas on equal devices, the first one works longest: it has the larger micro-batches.
  const int replicas = have_unequal_replicas(layout, cluster) ? layout.data_parallel_size : 1;
  const auto counts = counts_of_sizes(unpartitioned, replicas, options.global_batch_size);
  const bool splits = splits_backward(unpartitioned);

  constexpr Nanoseconds kLargest = std::numeric_limits<Nanoseconds>::max();
  const std::size_t n = profile.model.layers.size();
  PhaseWork work{.of_kind = {},
                 .of_rank = {},
                 .least = std::vector<Nanoseconds>(n, kLargest),
                 .forward = std::vector<Nanoseconds>(n, kLargest),
                 .backward = std::vector<Nanoseconds>(n, kLargest)};
  std::map<const WorkByLayer*, Nanoseconds> of_all_layers;
  for (int k = 0; k < layout.pipeline_parallel_size; ++k) {
    const WorkOfKinds::value_type* longest = nullptr;
    for (int replica = 0; replica < replicas; ++replica) {
      const std::string& type = cluster.devices.at(rank_of(layout, k, replica)).type;
      const auto [entry, is_new] = work.of_kind.try_emplace({type, counts[replica]});
      WorkByLayer& here = entry->second;
      if (is_new) {
        for (auto* const sums : {&here.all, &here.forwards, &here.weights}) sums->assign(n, 0);
        for (const auto& [size, count] : counts[replica])
          for (int slice = 0; slice < num_slices(unpartitioned); ++slice)
            add_slice(work, here, {size, count, size == counts[replica].begin()->first, splits, type}, slice,
                      unpartitioned, problem, costs);
        of_all_layers[&here] = std::accumulate(here.all.begin(), here.all.end(), Nanoseconds{0});
      }
      if (longest == nullptr || of_all_layers.at(&here) > of_all_layers.at(&longest->second)) longest = &*entry;
    }
    if (std::ranges::find(work.of_rank, longest) == work.of_rank.end())
      for (std::size_t layer = 0; layer < n; ++layer)
        work.least[layer] = std::min(work.least[layer], longest->second.all[layer]);
    work.of_rank.push_back(longest);
  }
  return work;
}

std::vector<Nanoseconds> sums_before(const std::vector<Nanoseconds>& values) {
  std::vector<Nanoseconds> before(values.size() + 1, 0);
  for (std::size_t layer = 0; layer < values.size(); ++layer) before[layer + 1] = before[layer] + values[layer];
  return before;
}

/// Weights of the pipeline ranks, which are about the speeds of their devices, and the work weighed by them.
struct WeighedWork {
  std::vector<double> of_rank;  // by pipeline rank; the largest is 1
  double work = 0;              // sum over layers of the least product of a rank's weight and its time
  double of_all_ranks() const { return std::accumulate(of_rank.begin(), of_rank.end(), 0.0); }
  double least() const { return std::ranges::min(of_rank); }
};

/// The pipeline ranks whose work is equal.
struct EqualRanks {
  std::vector<double> work;  // by layer
  int count = 0;
  double weight = 1;
};

/// Sets the weight of one group to the one at which the weighed work, divided by the weights of all ranks, is largest
/// while the other groups keep theirs. The quotient is largest where this group and another one are equally good at
/// some layer.
void set_best_weight(std::vector<EqualRanks>& groups, EqualRanks& group) {
  double others = 0, others_work = 0, own_work = 0;
  for (const EqualRanks& other : groups)
    if (&other != &group) others += other.count * other.weight;
  struct Layer {
    double equal_at = 0, others = 0, own = 0;  // the weight at which both are equal; the weighed times at weight 1
  };
  std::vector<Layer> layers;
  for (std::size_t layer = 0; layer < group.work.size(); ++layer) {
    double least = std::numeric_limits<double>::max();
    for (const EqualRanks& other : groups)
      if (&other != &group) least = std::min(least, other.weight * other.work[layer]);
    if (group.work[layer] <= 0 || least <= 0) continue;  // weighed by 0 at any weight
    layers.push_back({least / group.work[layer], least, group.work[layer]});
    own_work += group.work[layer];
  }
  std::ranges::sort(layers, {}, &Layer::equal_at);
  double best = 0;
  for (const Layer& layer : layers) {  // those before it are cheaper on the other groups
    own_work -= layer.own;
    others_work += layer.others;
    const double share =
        (others_work + std::max(0.0, own_work) * layer.equal_at) / (others + group.count * layer.equal_at);
    if (share > best) {
      best = share;
      group.weight = layer.equal_at;
    }
  }
}

/// Returns good weights of the pipeline ranks, of which the largest is 1; none if all ranks take equally long.
std::vector<double> weights_by_speed(const PhaseWork& work) {
  std::vector<EqualRanks> groups;
  std::map<const WorkByLayer*, std::size_t> group_of;
  for (const auto* const of_rank : work.of_rank) {
    const auto [known, is_new] = group_of.try_emplace(&of_rank->second, groups.size());
    if (is_new) groups.push_back({.work = {of_rank->second.all.begin(), of_rank->second.all.end()}});
    ++groups[known->second].count;
  }
  if (groups.size() < 2) return {};
  const auto all_of = [](const auto& values) {
    return std::max(1.0, static_cast<double>(std::accumulate(values.begin(), values.end(), 0.0)));
  };
  for (EqualRanks& group : groups) group.weight = all_of(work.least) / all_of(group.work);
  const int rounds = groups.size() == 2 ? 1 : 4;  // one is exact for two groups
  for (int round = 0; round < rounds; ++round)
    for (std::size_t group = 1; group < groups.size(); ++group) set_best_weight(groups, groups[group]);
  const double largest = std::ranges::max(groups, {}, &EqualRanks::weight).weight;
  std::vector<double> weights;
  for (const auto* const of_rank : work.of_rank)
    weights.push_back(groups[group_of.at(&of_rank->second)].weight / largest);
  return weights;
}

}  // namespace

StageBound::Chord StageBound::Chord::of(const std::function<Nanoseconds(Bytes)>& reduction_ns, Bytes most) {
  if (most == 0) return {};
  const auto latency_ns = static_cast<double>(reduction_ns(0));
  return {latency_ns, (static_cast<double>(reduction_ns(most)) - latency_ns) / static_cast<double>(most)};
}

StageBound::StageBound(const Phase& unpartitioned, const PlanningProblem& problem, LayerCosts& costs)
    : StageBound(unpartitioned, problem, costs, work_of(unpartitioned, problem, costs)) {}

StageBound::StageBound(const Phase& unpartitioned, const PlanningProblem& problem, LayerCosts& costs,
                       const PhaseWork& work)
    : pipeline_ranks_(unpartitioned.layout.pipeline_parallel_size),
      virtual_stages_(unpartitioned.virtual_stages),
      overlaps_(weight_delay(unpartitioned) > 0),
      stages_on_(stages_on_each(unpartitioned)),
      first_trainable_layer_(unpartitioned.first_trainable_layer),
      splits_backward_(splits_backward(unpartitioned)) {
  const auto& [profile, cluster, options] = problem;
  const ParallelLayout& layout = unpartitioned.layout;
  const int n = static_cast<int>(profile.model.layers.size());
  weights_ = weights_by_speed(work);
  for (const auto& [kind, of] : work.of_kind)
    work_[kind] = {sums_before(of.all), sums_before(of.forwards), sums_before(of.weights)};
  for (const auto* const of_rank : work.of_rank) work_of_pipeline_rank_.push_back(&work_.at(of_rank->first));
  chain_forward_ = sums_before(work.forward);
  chain_backward_ = sums_before(work.backward);
  std::vector<Nanoseconds> update(n, std::numeric_limits<Nanoseconds>::max());
  for (const auto& [kind, of] : work.of_kind) {
    const auto& updates = costs.updates(kind.first, options.optimizer);
    for (int layer = 0; layer < n; ++layer)
      update[layer] = layer < first_trainable_layer_
                          ? 0
                          : std::min(update[layer], update_of_tensor_rank(profile.model.layers[layer], updates[layer],
                                                                          layout.tensor_parallel_size));
  }
  update_ = sums_before(update);
  parameters_bytes_.assign(1, 0);
  experts_bytes_.assign(1, 0);
  for (int layer = 0; layer < n; ++layer) {
    const bool trains = layer >= first_trainable_layer_;
    parameters_bytes_.push_back(
        parameters_bytes_.back() +
        (trains ? reduced_gradient_bytes(unpartitioned, profile.model, layer, options.global_batch_size, options.dtype)
                : 0));
    experts_bytes_.push_back(experts_bytes_.back() +
                             (trains ? expert_gradient_bytes(unpartitioned, profile.model, layer, options.dtype) : 0));
  }
  // With frozen layers, messages may come from stages that have run ahead.
  messages_.assign(pipeline_ranks_, 0);
  if (first_trainable_layer_ == 0)
    for (int k = 0; k + 1 < pipeline_ranks_; ++k)
      messages_[k + 1] = messages_[k] + least_message_ns(unpartitioned, cluster, k, work.least_output);
  const bool waits_for_all = !cluster.communication.overlap_gradient_reduction;
  for (int k = 0; k < pipeline_ranks_ && layout.data_parallel_size > 1; ++k) {
    const std::vector<int> replicas = replicas_of(layout, k);
    std::vector<int> ranks = replicas;
    std::sort(ranks.begin(), ranks.end());
    const auto of_all = [&](Bytes bytes) { return all_reduce_ns(cluster, ranks, bytes); };
    const auto of_experts = [&](Bytes bytes) {
      return reduction_of_experts_ns(cluster, profile.model, layout, replicas, bytes);
    };
    reduction_.push_back(waits_for_all ? Chord::of(of_all, parameters_bytes_.back()) : Chord{});
    experts_reduction_.push_back(Chord::of(of_experts, experts_bytes_.back()));
  }
  reduction_.resize(pipeline_ranks_);
  experts_reduction_.resize(pipeline_ranks_);
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
  terms.to_ns = chain_forward_[stage.begin] + messages_[pipeline_rank] + update_[1];
  terms.update_ns = update_[stage.end] - update_[stage.begin];
  terms.back_ns = chain_backward_[stage.begin] + messages_[pipeline_rank];
  if (pipeline_rank > 0 && first_trainable_layer_ == 0) terms.back_ns += reduction_[0].at(parameters_bytes_[1]);
  terms.reduction_ns = reduction_[pipeline_rank].at(parameters_bytes_[stage.end] - parameters_bytes_[stage.begin]);
  if (const Bytes experts = experts_bytes_[stage.end] - experts_bytes_[stage.begin]; experts > 0)
    terms.reduction_ns += experts_reduction_[pipeline_rank].at(experts);
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

Nanoseconds StageBound::least_to_ns(int k) const {
  return overlaps_ ? 0 : chain_forward_[k] + messages_[k] + update_[1];
}

Nanoseconds StageBound::least_back_ns(int k) const {
  if (overlaps_ || splits_backward_) return 0;
  const bool reduces_first = k > 0 && first_trainable_layer_ == 0;
  return chain_backward_[k] + messages_[k] + (reduces_first ? reduction_[0].at(parameters_bytes_[1]) : 0);
}

Nanoseconds StageBound::most_work_ns(int pipeline_rank, Nanoseconds limit_ns) const {
  return std::max<Nanoseconds>(0, limit_ns - least_to_ns(pipeline_rank) - least_back_ns(pipeline_rank) - norm_ns_);
}

double StageBound::least_weighed_work(int layer) const {
  double least = std::numeric_limits<double>::max();
  for (int k = 0; k < pipeline_ranks_; ++k)
    if (k == 0 || work_of_pipeline_rank_[k] != work_of_pipeline_rank_[k - 1])
      least = std::min(least, weight(k) * static_cast<double>(work_ns(k, {layer, layer + 1})));
  return least;
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

Nanoseconds StageBound::of_any_partition(const Phase& unpartitioned, const PhaseWork& work) const {
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
  const bool trains_all = first_trainable_layer_ == 0;
  const int p = pipeline_ranks_;
  const auto by_chain = [&](const WeighedWork& weighed) {
    double product = 1;
    for (const double weight : weighed.of_rank) product *= 1 - share * weight / m;
    const double chain = share > 0 ? weighed.work / m * share / (1 - product) : weighed.work / weighed.of_all_ranks();
    return chain + static_cast<double>(trains_all ? update_[1] + norm_ns_ : 0);
  };
  const auto shared_out = [&](const WeighedWork& weighed) {
    double to = 0, back = 0, reduction = 0;
    double of_byte = std::numeric_limits<double>::max(), of_experts_byte = of_byte;
    for (int k = 0; k < p; ++k) {
      const double weight = weighed.of_rank[k];
      to += weight * static_cast<double>(least_to_ns(k));
      back += weight * static_cast<double>(least_back_ns(k));
      if (trains_all) reduction += weight * static_cast<double>(stages_on_[k].size()) * reduction_[k].latency_ns;
      of_byte = std::min(of_byte, weight * reduction_[k].ns_per_byte);
      of_experts_byte = std::min(of_experts_byte, weight * experts_reduction_[k].ns_per_byte);
    }
    reduction += of_byte * static_cast<double>(parameters_bytes_.back()) +
                 of_experts_byte * static_cast<double>(experts_bytes_.back()) -
                 2 * p * virtual_stages_;  // at() rounds each stage's down
    const double before = std::max(to, weighed.least() * static_cast<double>(update_.back()));
    return (before + weighed.work + std::max(back, reduction)) / weighed.of_all_ranks() + static_cast<double>(norm_ns_);
  };
  const bool is_chain = virtual_stages_ == 1 && !splits_backward_ && !overlaps_;
  const auto bound = [&](const WeighedWork& weighed) { return is_chain ? by_chain(weighed) : shared_out(weighed); };
  double largest = bound({.of_rank = std::vector<double>(p, 1), .work = static_cast<double>(sum)});
  if (!weights_.empty()) {
    WeighedWork weighed{.of_rank = weights_};
    for (int layer = 0; layer < static_cast<int>(work.least.size()); ++layer) weighed.work += least_weighed_work(layer);
    largest = std::max(largest, bound(weighed));
  }
  constexpr double kRounding = 1e-9;
  const Nanoseconds way = is_chain || overlaps_ ? 0 : chain_forward_.back() + chain_backward_.back();
  return std::max({static_cast<Nanoseconds>(largest * (1 - kRounding)), largest_layer, way, of_any()});
}

Nanoseconds bound_of_any_partition(const Phase& unpartitioned, const PlanningProblem& problem, LayerCosts& costs) {
  const PhaseWork work = work_of(unpartitioned, problem, costs);
  return StageBound(unpartitioned, problem, costs, work).of_any_partition(unpartitioned, work);
}

}  // namespace frostpipe
