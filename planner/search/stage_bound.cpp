#include "planner/search/stage_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "plan/memory.h"
#include "plan/stages.h"
#include "planner/search/speed_weights.h"
#include "simulator/communication_costs.h"

namespace frostpipe {
namespace {

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
  const ParallelLayout& layout = unpartitioned.layout;
  weights_ = weights_by_speed(work);
  for (const auto& [kind, of] : work.of_kind)
    work_[kind] = {sums_before(of.all), sums_before(of.forwards), sums_before(of.weights)};
  for (const auto* const of_rank : work.of_rank) work_of_pipeline_rank_.push_back(&work_.at(of_rank->first));
  chain_forward_ = sums_before(work.forward);
  chain_backward_ = sums_before(work.backward);
  add_updates(work, problem, layout, costs);
  add_gradients(unpartitioned, problem);
  // With frozen layers, messages may come from stages that have run ahead.
  messages_.assign(pipeline_ranks_, 0);
  if (first_trainable_layer_ == 0)
    for (int k = 0; k + 1 < pipeline_ranks_; ++k)
      messages_[k + 1] = messages_[k] + least_message_ns(unpartitioned, problem.cluster, k, work.least_output);
  if (num_ranks(layout) > 1 && first_trainable_layer_ == 0) {
    std::vector<int> ranks;
    for (int k = 0; k < pipeline_ranks_; ++k)
      for (const int rank : all_ranks_of(layout, k)) ranks.push_back(rank);
    std::sort(ranks.begin(), ranks.end());
    norm_ns_ = all_reduce_ns(problem.cluster, ranks, 8);
  }
}

/// Adds the least time of an update, by layer.
void StageBound::add_updates(const PhaseWork& work, const PlanningProblem& problem, const ParallelLayout& layout,
                             LayerCosts& costs) {
  const Model& model = problem.profile.model;
  const int n = static_cast<int>(model.layers.size());
  std::vector<Nanoseconds> update(n, std::numeric_limits<Nanoseconds>::max());
  for (const auto& [kind, of] : work.of_kind) {
    const auto& updates = costs.updates(kind.first, problem.options.optimizer);
    for (int layer = 0; layer < n; ++layer)
      update[layer] = layer < first_trainable_layer_
                          ? 0
                          : std::min(update[layer], update_of_tensor_rank(model.layers[layer], updates[layer],
                                                                          layout.tensor_parallel_size));
  }
  update_ = sums_before(update);
}

/// Adds the bytes of gradients and the times of their reductions.
void StageBound::add_gradients(const Phase& unpartitioned, const PlanningProblem& problem) {
  const auto& [profile, cluster, options] = problem;
  const ParallelLayout& layout = unpartitioned.layout;
  const int n = static_cast<int>(profile.model.layers.size());
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
