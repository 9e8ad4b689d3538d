#include "simulator/iteration_timer.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "plan/stages.h"
#include "simulator/iteration_path.h"
#include "simulator/profile_prices.h"
#include "simulator/simulate.h"
#include "simulator/steady_state.h"

namespace frostpipe {
/// The costs for simulating only replica 0 of replicas that are alike. The others behave in the same way, so a
/// collective over replicas becomes a fixed time, and one over all ranks synchronizes only replica 0's ranks.
class FirstReplica final : public CostModel {
 public:
  FirstReplica(const CostModel& all, const ParallelLayout& alone) : all_(all) {
    for (int pipeline_rank = 0; pipeline_rank < alone.pipeline_parallel_size; ++pipeline_rank)
      ranks_.push_back(rank_of(alone, pipeline_rank, 0));
    std::sort(ranks_.begin(), ranks_.end());
  }
  std::vector<Segment> segments(const Action& action, int pipeline_rank, int /*replica*/) const override {
    if (action.kind != ActionKind::reduce_gradient && action.kind != ActionKind::optimizer_step)
      return all_.segments(action, pipeline_rank, 0);
    const auto [known, is_new] =
        collectives_.try_emplace({action.kind, action.stage});  // cached, since a thousand ranks may take part
    if (!is_new) return known->second;
    known->second = all_.segments(action, pipeline_rank, 0);
    for (Segment& segment : known->second) {
      std::erase_if(segment.collective_ranks,
                    [&](int rank) { return !std::binary_search(ranks_.begin(), ranks_.end(), rank); });
      if (segment.collective_ranks.size() < 2) segment.collective_ranks.clear();
    }
    return known->second;
  }
  Nanoseconds compute_ns(const Action& action, int pipeline_rank, int /*replica*/) const override {
    return all_.compute_ns(action, pipeline_rank, 0);
  }
  TransferCost transfer(const Action& send, int /*replica*/) const override { return all_.transfer(send, 0); }
  /// Drops the cached collectives of a stage whose costs have changed.
  void forget(int stage) {
    for (const ActionKind kind : {ActionKind::reduce_gradient, ActionKind::optimizer_step})
      collectives_.erase({kind, stage});
  }

 private:
  const CostModel& all_;
  std::vector<int> ranks_;
  mutable std::map<std::pair<ActionKind, int>, std::vector<Segment>> collectives_;  // by kind and stage
};

namespace {

constexpr std::size_t kMaxPaths = 8;

ParallelLayout first_replica_of(const ParallelLayout& layout) {
  ParallelLayout alone{.pipeline_parallel_size = layout.pipeline_parallel_size};
  alone.placement = pipeline_of(layout, 0);
  return alone;
}

/// Returns whether two phases differ at most in their partitions and predictions.
bool are_alike_but_for_cuts(Phase one, const Phase& other) {
  one.partition = other.partition;
  one.predicted = other.predicted;
  return one == other;
}

}  // namespace

/// The prepared simulation of phases that differ only in their partitions, with the costs of the last of them.
class IterationTimer::Prepared {
 public:
  Prepared(const Phase& phase, const StepSettings& settings, LayerCosts& layers, const Cluster& cluster)
      : phase_(phase),
        first_to_train_(first_trainable_stage(phase)),
        prices_(phase_, settings, layers, cluster),
        of_all_(prices_),
        layout_(layout_of_lists(phase.layout)),
        schedule_(schedule_of(phase)),
        programs_(pipeline_rank_programs(schedule_)) {
    if (!simulates_one()) return;
    layout_ = first_replica_of(phase.layout);
    of_first_.emplace(of_all_, layout_);
  }

  /// Switches to the partition of `phase`. Returns false if this preparation cannot be used for `phase`, because it
  /// differs in more than its partition, uses the cache, trains from another stage on, or changes whether all replicas
  /// are alike.
  bool take(const Phase& phase) {
    if (phase.cache.on || first_trainable_stage(phase) != first_to_train_ || !are_alike_but_for_cuts(phase_, phase))
      return false;
    std::vector<int> changed;
    for (int stage = 0; stage < static_cast<int>(phase.partition.size()); ++stage)
      if (phase.partition[stage] != phase_.partition[stage]) changed.push_back(stage);
    phase_.partition = phase.partition;
    for (const int stage : changed) {
      of_all_.price(stage, prices_);
      if (of_first_) of_first_->forget(stage);
      for (IterationPath& path : paths_) path.price(stage, costs());
    }
    return of_first_.has_value() == simulates_one();
  }

  Nanoseconds iteration_ns() const {
    const int iterations = iterations_until_steady(schedule_);
    std::optional<Timing> timing;
    if (programs_ && !costs().shares_links())
      timing = time_on_fast_path(schedule_, *programs_, layout_, costs(), iterations);
    if (!timing) timing = simulate_timing(schedule_, layout_, costs(), iterations);
    return steady_period_ns(*timing, schedule_);
  }

  Nanoseconds traced_iteration_ns() {
    if (!programs_ || costs().shares_links() || iterations_until_steady(schedule_) != kTracedIterations)
      return iteration_ns();
    const auto traced = trace_on_fast_path(schedule_, *programs_, layout_, costs());
    FROSTPIPE_CHECK(traced.has_value(), "ranks of a schedule that was built do not wait forever");
    if (!traced->path.empty()) {
      if (paths_.size() == kMaxPaths) paths_.pop_back();
      paths_.emplace(paths_.begin(), traced->path, costs(),
                     [&](const Action& action, int replica) { return of_all_.size_of(action, replica); });
    }
    return steady_period_ns(traced->timing, schedule_);
  }

  /// Returns whether a known path takes at least `least_ns`.
  bool has_path_of(Nanoseconds least_ns) {
    const auto found = std::ranges::find_if(paths_, [&](const auto& path) { return path.length_ns() >= least_ns; });
    if (found == paths_.end()) return false;
    std::rotate(paths_.begin(), found, found + 1);
    return true;
  }

 private:
  bool simulates_one() const { return phase_.layout.data_parallel_size > 1 && of_all_.replicas_are_alike(); }
  const CostModel& costs() const { return of_first_ ? static_cast<const CostModel&>(*of_first_) : of_all_; }

  Phase phase_;
  int first_to_train_;
  ProfileCostModel::Prices prices_;
  ProfileCostModel of_all_;
  ParallelLayout layout_;                 // of the ranks that are simulated
  std::optional<FirstReplica> of_first_;  // if all replicas are alike
  Schedule schedule_;
  std::optional<std::vector<PipelineRankProgram>> programs_;
  std::vector<IterationPath> paths_;  // of the last phases; the path that was useful last is first
};

IterationTimer::IterationTimer(const StepSettings& settings, LayerCosts& costs, const Cluster& cluster)
    : settings_(settings), costs_(costs), cluster_(cluster) {}
IterationTimer::~IterationTimer() = default;

IterationTimer::Prepared& IterationTimer::prepared_for(const Phase& phase) {
  if (!prepared_ || !prepared_->take(phase)) {
    prepared_.reset();
    prepared_ = std::make_unique<Prepared>(phase, settings_, costs_, cluster_);
  }
  return *prepared_;
}

Nanoseconds IterationTimer::iteration_ns(const Phase& phase) { return prepared_for(phase).iteration_ns(); }

std::optional<Nanoseconds> IterationTimer::iteration_ns_below(const Phase& phase, Nanoseconds limit_ns) {
  const Nanoseconds time = prepared_for(phase).traced_iteration_ns();
  return time < limit_ns ? std::optional(time) : std::nullopt;
}

bool IterationTimer::may_be_below(const Phase& phase, Nanoseconds limit_ns) {
  return !prepared_for(phase).has_path_of(limit_ns);
}

}  // namespace frostpipe
