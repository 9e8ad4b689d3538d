#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "plan/batch.h"
#include "plan/stages.h"
#include "simulator/communication_costs.h"
#include "simulator/cost_model.h"
#include "simulator/profile_prices.h"

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

}  // namespace

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
  const std::vector<std::vector<int>> stages_on = stages_on_each(phase);
  const std::vector<int> pipeline_ranks = pipeline_ranks_of_stages(phase);
  reduces_norm_ = are_first_to_train(phase);
  for (int stage = 0; stage < stages; ++stage) {
    tensor_sum_ns_.push_back(prices.sum_over_tensor_ranks_ns(stage));
    reduce_gradient_.push_back(prices.reduce_gradient(stage, smaller_size_));
    const std::vector<int>& on_rank = stages_on[pipeline_ranks[stage]];
    exchanges_tied_.push_back(stage == on_rank.back() && (on_rank.front() == 0 || stage + 1 == stages));
    std::vector<std::pair<Prices::Place, int>> known;  // places with the index of their costs
    for (int index = 0; index < costs_per_stage_; ++index) {
      const Prices::Unit unit = replica_of_list_.empty()
                                    ? Prices::Unit{index}
                                    : Prices::Unit{index / num_micro_batches_, index % num_micro_batches_};
      const Prices::Place place = prices.place_of(stage, unit);
      const auto same = std::ranges::find_if(known, [&](const auto& one) { return one.first == place; });
      if (same != known.end()) {
        cost_of_rank_.push_back(same->second);
        continue;
      }
      cost_of_rank_.push_back(static_cast<int>(rank_costs_.size()));
      if (cluster.shared_links.empty()) known.emplace_back(place, cost_of_rank_.back());
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
      const int of_layout = replica_of(pipeline_rank, replica);  // its own micro-batches have its costs
      const Segment update = compute(rank_cost(action.stage, of_layout, of_layout * num_micro_batches_).update_ns);
      if (gradient_norm_ == Segment() || !reduces_norm_.at(action.stage)) return {update};
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
