#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "plan/batch.h"
#include "plan/stages.h"
#include "simulator/communication_costs.h"
#include "simulator/cost_model.h"
#include "simulator/profile_prices.h"

namespace frostpipe {
ProfileCostModel::ProfileCostModel(Prices& prices)
    : data_parallel_size_(prices.phase().layout.data_parallel_size),
      num_micro_batches_(prices.phase().num_micro_batches),
      costs_per_stage_(data_parallel_size_) {
  const Phase& phase = prices.phase();
  const int stages = static_cast<int>(phase.partition.size());
  for (const SampleRange& range :
       split_evenly(prices.settings().global_batch_size, data_parallel_size_ * num_micro_batches_))
    micro_batch_sizes_.push_back(range.end - range.begin);
  smaller_size_ = micro_batch_sizes_.back();
  if (const ParallelLayout lists = layout_of_lists(phase.layout); !phase.layout.vacant.empty()) {
    costs_per_stage_ = data_parallel_size_ * num_micro_batches_;
    for (const int rank : pipeline_of(lists, 0))
      replica_of_list_.push_back(find_coordinate(phase.layout, rank)->replica);
  }
  const std::vector<std::vector<int>> stages_on = stages_on_each(phase);
  const std::vector<int> pipeline_ranks = pipeline_ranks_of_stages(phase);
  reduces_norm_ = are_first_to_train(phase);
  tensor_sum_ns_.resize(stages);
  reduce_gradient_.resize(stages);
  for (int stage = 0; stage < stages; ++stage) {
    const std::vector<int>& on_rank = stages_on[pipeline_ranks[stage]];
    exchanges_tied_.push_back(stage == on_rank.back() && (on_rank.front() == 0 || stage + 1 == stages));
    std::vector<std::pair<Prices::Place, int>> known;  // places with the index of their costs
    for (int index = 0; index < costs_per_stage_; ++index) {
      const Prices::Place place = prices.place_of(stage, unit_of(index));
      const auto same = std::ranges::find_if(known, [&](const auto& one) { return one.first == place; });
      cost_of_rank_.push_back(same == known.end() ? static_cast<int>(rank_costs_.size()) : same->second);
      if (same != known.end()) continue;
      if (!prices.links_are_shared()) known.emplace_back(place, cost_of_rank_.back());
      rank_costs_.emplace_back();
    }
    price(stage, prices);
  }
  reduce_tied_ = prices.reduce_tied();
  gradient_norm_ = prices.gradient_norm();
}

ProfileCostModel::Unit ProfileCostModel::unit_of(int index) const {
  return replica_of_list_.empty() ? Unit{index} : Unit{index / num_micro_batches_, index % num_micro_batches_};
}

void ProfileCostModel::price(int stage, Prices& prices) {
  prices.forget(stage);
  tensor_sum_ns_[stage] = prices.sum_over_tensor_ranks_ns(stage);
  reduce_gradient_[stage] = prices.reduce_gradient(stage, smaller_size_);
  int next = cost_of_rank_[stage * costs_per_stage_];
  for (int index = 0; index < costs_per_stage_; ++index) {
    if (cost_of_rank_[stage * costs_per_stage_ + index] != next) continue;  // priced already
    const Unit unit = unit_of(index);
    RankCost& cost = rank_costs_[next++] = {.smaller = prices.stage_costs(stage, unit, smaller_size_), .larger = {}};
    if (micro_batch_sizes_.front() > smaller_size_) cost.larger = prices.stage_costs(stage, unit, smaller_size_ + 1);
    cost.update_ns = prices.update_ns(stage, unit);
    for (const std::vector<StageCost>* slices : {&cost.smaller, &cost.larger})
      for (const StageCost& part : *slices)
        shares_links_ = shares_links_ || !part.shared_forward.empty() || !part.shared_backward.empty();
  }
}

ProfileCostModel::ProfileCostModel(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                   const Cluster& cluster)
    : ProfileCostModel(*std::make_unique<Prices>(
          phase, settings, *std::make_unique<LayerCosts>(profile, settings.dtype, phase.layout.sequence_parallel),
          cluster)) {}

bool ProfileCostModel::replicas_are_alike() const {
  if (shares_links_ || !replica_of_list_.empty() || micro_batch_sizes_.front() != micro_batch_sizes_.back())
    return false;
  const auto takes_as_long_as_the_first = [&](const Segment& one) {
    return one.duration_ns == reduce_tied_.front().duration_ns;
  };
  if (!std::ranges::all_of(reduce_tied_, takes_as_long_as_the_first)) return false;
  for (std::size_t i = 0; i < cost_of_rank_.size(); ++i) {
    const int own = cost_of_rank_[i], first = cost_of_rank_[i - i % data_parallel_size_];
    if (own != first && rank_costs_[own] != rank_costs_[first]) return false;
  }
  return true;
}

const ProfileCostModel::RankCost& ProfileCostModel::rank_cost(int stage, int replica, int micro_batch) const {
  return rank_costs_[cost_of_rank_.at(stage * costs_per_stage_ + (replica_of_list_.empty() ? replica : micro_batch))];
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
      const int of_layout = replica_of(pipeline_rank, replica);  // its update is priced with its own micro-batches
      const Segment update = compute(rank_cost(action.stage, of_layout, of_layout * num_micro_batches_).update_ns);
      if (gradient_norm_ == Segment() || !reduces_norm_.at(action.stage)) return {update};
      return {gradient_norm_, update};
    }
    default:
      throw InvalidInput("action " + to_string(action), "must have a cost in a profile", "without one");
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
