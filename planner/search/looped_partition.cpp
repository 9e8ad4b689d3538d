#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "plan/recompute.h"
#include "plan/stages.h"
#include "planner/search/candidate.h"
#include "planner/search/chain_partition.h"

namespace frostpipe {

/// What partitions that differ in few stages from a first one lack and are bounded by: only ranks that have those
/// stages are looked at again.
class CandidateMaker::LoopedPrices {
 public:
  struct Price {
    Bytes missing_bytes = 0;
    Nanoseconds bound_ns = 0;
    auto operator<=>(const Price&) const = default;
  };

  LoopedPrices(CandidateMaker& maker, const Phase& unpartitioned, const StageBound& bound)
      : maker_(maker),
        unpartitioned_(unpartitioned),
        bound_(bound),
        memory_(unpartitioned, maker.problem_.profile, maker.problem_.options.optimizer, maker.problem_.options.dtype) {
    ranks_.resize(unpartitioned.layout.pipeline_parallel_size);
    for (int k = 0; k < static_cast<int>(ranks_.size()); ++k) {
      ranks_[k].stages = stages_on(unpartitioned, k);
      ranks_[k].layers = maker.layers_on(unpartitioned, k);
      if (maker.problem_.options.ignore_memory_limit) continue;
      for (const int rank : all_ranks_of(unpartitioned.layout, k))
        if (const auto& limit = maker.problem_.cluster.devices.at(rank).memory_limit_bytes)
          ranks_[k].limits.push_back(*limit);
    }
  }

  /// From now on the first one.
  Price take(Partition first) {
    first_ = std::move(first);
    needs_.clear();
    for (int stage = 0; stage < static_cast<int>(first_.size()); ++stage) needs_.push_back(need_of(first_, stage));
    first_to_train_ = first_trainable_stage(first_, unpartitioned_.first_trainable_layer);
    in_flight_ = &maker_.in_flight(unpartitioned_, first_to_train_);
    for (int k = 0; k < static_cast<int>(ranks_.size()); ++k) {
      ranks_[k].missing_bytes = missing_on(k, first_, first_to_train_);
      ranks_[k].bound_ns = bound_.on_rank(first_, k).total_ns();
    }
    return {missing_bytes(first_), bound_ns(first_)};
  }

  Bytes missing_bytes(const Partition& partition) {
    const int first_to_train = first_trainable_stage(partition, unpartitioned_.first_trainable_layer);
    Bytes missing = 0;
    for (int k = 0; k < static_cast<int>(ranks_.size()); ++k)
      missing += first_to_train == first_to_train_ && is_as_before(partition, k)
                     ? ranks_[k].missing_bytes
                     : missing_on(k, partition, first_to_train);
    return missing;
  }

  Nanoseconds bound_ns(const Partition& partition) const {
    Nanoseconds largest = bound_.of_any();
    for (int k = 0; k < static_cast<int>(ranks_.size()); ++k)
      largest =
          std::max(largest, is_as_before(partition, k) ? ranks_[k].bound_ns : bound_.on_rank(partition, k).total_ns());
    return largest;
  }

 private:
  struct PipelineRank {
    std::vector<int> stages;
    std::vector<LayerCost> layers;
    std::vector<Bytes> limits;  // of the replicas that have one
    Bytes missing_bytes = 0;    // of the first partition, and so is
    Nanoseconds bound_ns = 0;
  };

  bool is_as_before(const Partition& partition, int k) const {
    return std::ranges::all_of(ranks_[k].stages, [&](int stage) { return partition[stage] == first_[stage]; });
  }

  RankMemory need_of(const Partition& partition, int stage) const {
    return memory_.of(partition[stage], ranks_[pipeline_rank_of(unpartitioned_, stage)].layers,
                      hands_on_at_once(unpartitioned_, stage));
  }

  Bytes missing_on(int k, const Partition& partition, int first_to_train) {
    on_rank_.clear();
    for (const int stage : ranks_[k].stages)
      on_rank_.push_back(partition[stage] == first_[stage] ? needs_[stage] : need_of(partition, stage));
    const auto& in_flight =
        first_to_train == first_to_train_ ? *in_flight_ : maker_.in_flight(unpartitioned_, first_to_train);
    const Bytes needed = together(on_rank_, in_flight[k]).total();
    Bytes missing = 0;
    for (const Bytes limit : ranks_[k].limits) missing += std::max<Bytes>(0, needed - limit);
    return missing;
  }

  CandidateMaker& maker_;
  const Phase& unpartitioned_;
  const StageBound& bound_;
  StageMemory memory_;
  std::vector<PipelineRank> ranks_;
  Partition first_;
  std::vector<RankMemory> needs_;    // its stages'
  std::vector<RankMemory> on_rank_;  // of the stages that are looked at
  int first_to_train_ = 0;           // stage of it
  const std::vector<std::vector<StagesInFlight>>* in_flight_ = nullptr;
};

namespace {

/// Micro-batches of which a rank holds something of each of its stages, at least: at its fullest moment, or in the mean
/// of its moments, which is no more than the fullest.
double held_of_each_stage(const std::vector<StagesInFlight>& moments) {
  if (moments.empty()) return 0;
  std::int64_t most = 0;
  std::vector<double> sums(moments.front().size(), 0);
  for (const StagesInFlight& moment : moments) {
    most = std::max(most, std::ranges::min(moment, {}, &InFlight::before_backward).before_backward);
    for (std::size_t i = 0; i < moment.size(); ++i) sums[i] += static_cast<double>(moment[i].before_backward);
  }
  return std::max(static_cast<double>(most), std::ranges::min(sums) / static_cast<double>(moments.size()));
}

/// Of each layer the least on any rank, and of all together.
struct LeastOfLayers {
  explicit LeastOfLayers(std::size_t num_layers) : of_layer(num_layers, std::numeric_limits<double>::max()) {}
  void take(std::size_t layer, double value) { of_layer[layer] = std::min(of_layer[layer], value); }
  double all() const { return std::accumulate(of_layer.begin(), of_layer.end(), 0.0); }
  std::vector<double> of_layer;
};

}  // namespace

bool CandidateMaker::may_fit_looped(const Phase& unpartitioned, const StageBound& bound, Nanoseconds limit_ns) {
  const StageMemory memory(unpartitioned, problem_.profile, problem_.options.optimizer, problem_.options.dtype);
  const std::vector<Layer>& layers = problem_.profile.model.layers;
  const int p = unpartitioned.layout.pipeline_parallel_size, n = static_cast<int>(layers.size());
  LeastOfLayers lasting(n), kept(n), work(n);
  const std::vector<LayerCost>* known = nullptr;  // of the rank before, which often has a device of the same type
  for (int k = 0; k < p; ++k) {
    const std::vector<LayerCost>& costs = layers_on(unpartitioned, k);
    if (std::exchange(known, &costs) == &costs) continue;
    for (int layer = 0; layer < n; ++layer) {
      lasting.take(layer, static_cast<double>(memory.of({layer, layer + 1}, costs).lasting()));
      const bool is_kept = !is_recomputed(unpartitioned.recompute, layers[layer].kind);
      kept.take(layer, is_kept ? static_cast<double>(costs[layer].saved_activation_bytes) : 0);
      work.take(layer, static_cast<double>(bound.terms(k, {layer, layer + 1}).work_ns));
    }
  }
  const double all_lasting = lasting.all(), all_kept = kept.all(), all_work = work.all();
  const bool knows_in_flight = unpartitioned.first_trainable_layer == 0;
  // Of nothing any rank has enough.
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  const auto has_of = [](double room, double whole) {
    return whole > 0 ? room / whole : std::numeric_limits<double>::max();
  };
  const double by_time = has_of(static_cast<double>(limit_ns), all_work);
  double shares = 0, least_held = std::numeric_limits<double>::max(), most_held = 0;
  bool is_bound_by_time = false;
  for (int k = 0; k < p; ++k) {
    const double held = knows_in_flight ? held_of_each_stage(in_flight(unpartitioned, 0)[k]) : 0;
    const auto limit = limit_of(unpartitioned, k);
    const double by_memory = limit ? has_of(static_cast<double>(*limit), all_lasting + held * all_kept) : by_time;
    shares += std::min(by_time, by_memory);
    is_bound_by_time = is_bound_by_time || by_time <= by_memory;
    if (by_memory >= by_time) continue;
    least_held = std::min(least_held, held);
    most_held = std::max(most_held, held);
  }
  double needed = 0;
  for (int layer = 0; layer < n; ++layer) {
    double least = is_bound_by_time ? share(work.of_layer[layer], all_work) : std::numeric_limits<double>::max();
    for (const double held : {least_held, most_held}) {
      if (least_held > most_held) break;
      least =
          std::min(least, share(lasting.of_layer[layer] + held * kept.of_layer[layer], all_lasting + held * all_kept));
    }
    needed += least;
  }
  constexpr double kRounding = 1e-9;
  return needed * (1 - kRounding) <= shares;
}

std::optional<Candidate> CandidateMaker::looped_partition(const Phase& unpartitioned, Nanoseconds limit_ns) {
  const StageBound bound = bound_of(unpartitioned);
  if (!may_fit_looped(unpartitioned, bound, limit_ns)) return std::nullopt;
  return shifted(unpartitioned, bound, limit_ns);
}

Candidate CandidateMaker::shifted(const Phase& unpartitioned, const StageBound& bound, Nanoseconds limit_ns) {
  const int n = static_cast<int>(problem_.profile.model.layers.size());
  std::vector<int> rank_of_stage;
  for (int stage = 0; stage < num_stages(unpartitioned); ++stage)
    rank_of_stage.push_back(pipeline_rank_of(unpartitioned, stage));
  const auto by_work = [&](int stage, int begin, auto&& visit) {
    for (int end = begin + 1; end <= n; ++end) {
      const Nanoseconds work = bound.work_ns(rank_of_stage[stage], {begin, end});
      if (!visit(end, work, work)) return;
    }
  };
  Partition best = cut_chain(n, num_stages(unpartitioned), keeping_pins(problem_.options.pins, by_work))->partition;
  LoopedPrices prices(*this, unpartitioned, bound);
  LoopedPrices::Price price = prices.take(best);
  const bool is_hopeless = price.missing_bytes == 0 && price.bound_ns / 11 > limit_ns / 10;
  for (bool better = !is_hopeless; better;) {
    better = false;
    for (Partition& partition : neighbours(best)) {
      if (!keeps_pins(problem_.options.pins, partition)) continue;
      LoopedPrices::Price shifted{.bound_ns = prices.bound_ns(partition)};
      if (price.missing_bytes == 0 && shifted.bound_ns >= price.bound_ns) continue;
      shifted.missing_bytes = prices.missing_bytes(partition);
      if (shifted >= price) continue;
      price = shifted;
      best = std::move(partition);
      better = true;
    }
    if (better) prices.take(best);
  }
  Phase phase = unpartitioned;
  phase.partition = std::move(best);
  Candidate candidate = with_memory(std::move(phase));
  candidate.bound_ns = price.bound_ns;
  return candidate;
}

}  // namespace frostpipe
