#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "plan/recompute.h"
#include "plan/stages.h"
#include "planner/search/candidate.h"
#include "planner/search/chain_partition.h"
#include "planner/search/shifted_cuts.h"

namespace frostpipe {

/// Computes the missing bytes and the bound of a partition and of those that differ from it by a shift. Only ranks
/// whose stages a shift changes are recomputed.
class CandidateMaker::LoopedPrices {
 public:
  struct Price {
    Bytes missing_bytes = 0;
    Nanoseconds bound_ns = 0;
    auto operator<=>(const Price&) const = default;
  };

  LoopedPrices(CandidateMaker& maker, const Phase& unpartitioned, const StageBound& bound, Partition first)
      : maker_(maker),
        unpartitioned_(unpartitioned),
        memories_(maker, unpartitioned),
        rank_of_stage_(pipeline_ranks_of_stages(unpartitioned)),
        hand_on_(stages_that_hand_on_at_once(unpartitioned)),
        partition_(std::move(first)),
        bounds_(bound, unpartitioned) {
    for (const CutShift& one : cut_shifts(static_cast<int>(partition_.size())))
      shifts_.push_back({.cuts = one, .changed = bounds_.changed_by(one)});
    const std::vector<std::vector<int>> stages_on = stages_on_each(unpartitioned);
    for (int k = 0; k < unpartitioned.layout.pipeline_parallel_size; ++k) {
      ranks_.push_back({.stages = stages_on[k]});
      all_ranks_.push_back(k);
      if (maker.problem_.options.ignore_memory_limit) continue;
      for (const int rank : all_ranks_of(unpartitioned.layout, k))
        if (const auto& limit = maker.problem_.cluster.devices.at(rank).memory_limit_bytes)
          ranks_[k].limits.push_back(*limit);
    }
    for (int stage = 0; stage < static_cast<int>(partition_.size()); ++stage) needs_.push_back(need_of(stage));
    bounds_.take(partition_);
    take_in_flight();
    price_.bound_ns = bounds_.largest();
  }

  const Price& price() const { return price_; }
  const Partition& partition() const { return partition_; }

  /// Takes the shift by `step` layers with the fewest missing bytes, or equally few at the smallest bound; on a tie the
  /// first. Returns false if no shift improves the partition.
  bool take_best_shift(int step) {
    find_ranks_of_interest();
    KnownShift* best = nullptr;
    Price least = price_;
    for (KnownShift& known : shifts_) {
      if (std::ranges::none_of(known.changed, [&](int k) { return ranks_[k].is_of_interest; })) continue;
      price(known, step);
      if (!known.bound_ns) continue;
      Price shifted{.bound_ns = bounds_.with(*known.bound_ns, known.changed)};
      if (least.missing_bytes == 0 && shifted.bound_ns >= least.bound_ns) continue;
      shifted.missing_bytes = missing_with(known);
      if (shifted < least) {
        least = shifted;
        best = &known;
      }
    }
    if (best != nullptr) take(*best);
    return best != nullptr;
  }

 private:
  struct PipelineRank {
    std::vector<int> stages;
    std::vector<Bytes> limits;  // of the replicas that have one
    Bytes missing_bytes = 0;
    bool is_of_interest = false;
    int version = 0;  // counts the changes of its stages
  };

  /// A shift by `step` layers and its result on the ranks that it changes, which holds as long as nothing else changes
  /// them.
  struct KnownShift {
    CutShift cuts;
    std::vector<int> changed;  // pipeline ranks
    int step = 0, version = 0;
    std::optional<Nanoseconds> bound_ns;  // the largest; none if the shift is not allowed
    std::optional<Bytes> missing_bytes;   // none if not computed yet
  };

  static CutShift by_step(const KnownShift& known, int step) {
    return {.first = known.cuts.first, .last = known.cuts.last, .by = known.cuts.by * step};
  }

  /// Makes the result of the shift, except for missing_bytes, valid for the present partition.
  void price(KnownShift& known, int step) {
    int version = in_flight_version_;
    for (const int k : known.changed) version += ranks_[k].version;
    if (known.step == step && known.version == version) return;
    known.step = step;
    known.version = version;
    known.bound_ns = known.missing_bytes = std::nullopt;
    const CutShift one = by_step(known, step);
    if (!shift(partition_, one)) return;
    if (keeps_pins(maker_.problem_.options.pins, partition_))
      known.bound_ns = bounds_.of_changed(partition_, known.changed);
    shift(partition_, one.back());
  }

  void take(const KnownShift& known) {
    shift(partition_, by_step(known, known.step));
    bounds_.take(partition_, known.changed);
    price_.bound_ns = bounds_.largest();
    for (int stage = known.cuts.first; stage <= known.cuts.last + 1; ++stage) needs_[stage] = need_of(stage);
    for (const int k : known.changed) ++ranks_[k].version;
    if (first_to_train_ != first_to_train()) return take_in_flight();
    for (const int k : known.changed) {
      price_.missing_bytes -= ranks_[k].missing_bytes;
      price_.missing_bytes += ranks_[k].missing_bytes = missing_on(k, *in_flight_);
    }
  }

  int first_to_train() const { return first_trainable_stage(partition_, unpartitioned_.first_trainable_layer); }

  void take_in_flight() {
    first_to_train_ = first_to_train();
    in_flight_ = &maker_.in_flight(unpartitioned_, first_to_train_);
    ++in_flight_version_;
    price_.missing_bytes = 0;
    for (int k = 0; k < static_cast<int>(ranks_.size()); ++k)
      price_.missing_bytes += ranks_[k].missing_bytes = missing_on(k, *in_flight_);
  }

  /// Marks the ranks of interest: a shift can only improve a partition if it changes a rank that lacks bytes, the rank
  /// with the largest bound, or the first trainable stage.
  void find_ranks_of_interest() {
    bool has_largest = false;
    for (int k = 0; k < static_cast<int>(ranks_.size()); ++k) {
      const bool is_largest = !has_largest && bounds_.of_rank(k) == price_.bound_ns;
      has_largest = has_largest || is_largest;
      ranks_[k].is_of_interest = is_largest || ranks_[k].missing_bytes > 0;
    }
    if (unpartitioned_.first_trainable_layer > 0 && price_.missing_bytes > 0)
      ranks_[rank_of_stage_[first_to_train_]].is_of_interest = true;
  }

  RankMemory need_of(int stage) const {
    return memories_.on(rank_of_stage_[stage]).of(partition_[stage], hand_on_[stage]);
  }

  /// Returns the missing bytes of the partition after an allowed shift.
  Bytes missing_with(KnownShift& known) {
    if (!known.missing_bytes) {
      const CutShift one = by_step(known, known.step);
      shift(partition_, one);
      std::vector<RankMemory> before;
      for (int stage = one.first; stage <= one.last + 1; ++stage)
        before.push_back(std::exchange(needs_[stage], need_of(stage)));
      std::optional<Bytes> of_all;  // if another stage is now the first to train
      if (const int first = first_to_train(); first == first_to_train_)
        known.missing_bytes = missing_on(known.changed, *in_flight_);
      else
        of_all = missing_on(all_ranks_, maker_.in_flight(unpartitioned_, first));
      std::ranges::move(before, needs_.begin() + one.first);
      shift(partition_, one.back());
      if (of_all) return *of_all;
    }
    Bytes missing = price_.missing_bytes + *known.missing_bytes;
    for (const int k : known.changed) missing -= ranks_[k].missing_bytes;
    return missing;
  }

  Bytes missing_on(const std::vector<int>& pipeline_ranks, const std::vector<std::vector<StagesInFlight>>& in_flight) {
    Bytes missing = 0;
    for (const int k : pipeline_ranks) missing += missing_on(k, in_flight);
    return missing;
  }

  /// Returns the missing bytes on pipeline rank k with `needs_`.
  Bytes missing_on(int k, const std::vector<std::vector<StagesInFlight>>& in_flight) {
    if (ranks_[k].limits.empty()) return 0;
    on_rank_.clear();
    for (const int stage : ranks_[k].stages) on_rank_.push_back(needs_[stage]);
    const Bytes needed = together(on_rank_, in_flight[k]).total();
    Bytes missing = 0;
    for (const Bytes limit : ranks_[k].limits) missing += std::max<Bytes>(0, needed - limit);
    return missing;
  }

  CandidateMaker& maker_;
  const Phase& unpartitioned_;
  RankMemories memories_;
  std::vector<int> rank_of_stage_;
  std::vector<bool> hand_on_;
  Partition partition_;
  RankBounds bounds_;
  std::vector<PipelineRank> ranks_;
  std::vector<int> all_ranks_;
  std::vector<KnownShift> shifts_;
  Price price_;
  std::vector<RankMemory> needs_;    // of all stages
  std::vector<RankMemory> on_rank_;  // of the stages being summed
  int first_to_train_ = 0;           // stage
  int in_flight_version_ = 0;        // counts the changes of in_flight_
  const std::vector<std::vector<StagesInFlight>>* in_flight_ = nullptr;
};

namespace {

/// Returns a number h such that a rank's peak is at least the bytes that h micro-batches keep on each of its stages:
/// the larger of the most micro-batches that all stages hold at one moment, and the least mean of a stage over all
/// moments.
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

/// Returns the first step of the shifts, which are halved down to one layer: for long stages, about a hundredth of a
/// stage.
int first_step(int num_layers, int num_stages) {
  constexpr unsigned kStepsOfAStage = 64;
  return static_cast<int>(std::bit_floor(std::max(1U, num_layers / (kStepsOfAStage * num_stages))));
}

/// The least value of each layer over all ranks, and the sum over layers.
struct LeastOfLayers {
  explicit LeastOfLayers(std::size_t num_layers) : of_layer(num_layers, std::numeric_limits<double>::max()) {}
  void take(std::size_t layer, double value) { of_layer[layer] = std::min(of_layer[layer], value); }
  double all() const { return std::accumulate(of_layer.begin(), of_layer.end(), 0.0); }
  std::vector<double> of_layer;
};

}  // namespace

bool CandidateMaker::may_fit_looped(const Phase& unpartitioned, const StageBound& bound, Nanoseconds limit_ns) {
  const RankMemories memories(*this, unpartitioned);
  const std::vector<Layer>& layers = problem_.profile.model.layers;
  const int p = unpartitioned.layout.pipeline_parallel_size, n = static_cast<int>(layers.size());
  LeastOfLayers lasting(n), kept(n), work(n);
  const std::vector<LayerCost>* known = nullptr;  // of the previous rank, which often has a device of the same type
  for (int k = 0; k < p; ++k) {
    const std::vector<LayerCost>& costs = layers_on(unpartitioned, k);
    if (std::exchange(known, &costs) == &costs) continue;
    for (int layer = 0; layer < n; ++layer) {
      lasting.take(layer, static_cast<double>(memories.on(k).of({layer, layer + 1}).lasting()));
      const bool is_kept = !is_recomputed(unpartitioned.recompute, layers[layer].kind);
      kept.take(layer, is_kept ? static_cast<double>(costs[layer].saved_activation_bytes) : 0);
    }
  }
  for (int layer = 0; layer < n; ++layer) work.take(layer, bound.least_weighed_work(layer));
  const double all_lasting = lasting.all(), all_kept = kept.all(), all_work = work.all();
  const bool knows_in_flight = unpartitioned.first_trainable_layer == 0;
  // If the whole needs nothing, a part has no share in it and every rank has enough.
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  const auto has_of = [](double room, double whole) {
    return whole > 0 ? room / whole : std::numeric_limits<double>::max();
  };
  double shares = 0, least_held = std::numeric_limits<double>::max(), max_held = 0;
  bool is_bound_by_time = false;
  for (int k = 0; k < p; ++k) {
    const double held = knows_in_flight ? held_of_each_stage(in_flight(unpartitioned, 0)[k]) : 0;
    const auto limit = limit_of(unpartitioned, k);
    const double by_time = has_of(bound.weight(k) * static_cast<double>(bound.most_work_ns(k, limit_ns)), all_work);
    const double by_memory = limit ? has_of(static_cast<double>(*limit), all_lasting + held * all_kept) : by_time;
    shares += std::min(by_time, by_memory);
    is_bound_by_time = is_bound_by_time || by_time <= by_memory;
    if (by_memory >= by_time) continue;
    least_held = std::min(least_held, held);
    max_held = std::max(max_held, held);
  }
  double needed = 0;
  for (int layer = 0; layer < n; ++layer) {
    double least = is_bound_by_time ? share(work.of_layer[layer], all_work) : std::numeric_limits<double>::max();
    for (const double held : {least_held, max_held}) {
      if (least_held > max_held) break;
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

const Partition& CandidateMaker::with_even_stages(const Phase& unpartitioned, const StageBound& bound) {
  const int n = static_cast<int>(problem_.profile.model.layers.size());
  const std::vector<int> rank_of_stage = pipeline_ranks_of_stages(unpartitioned);
  std::map<const std::vector<Nanoseconds>*, int> types;  // by their work, numbered in order of first use
  std::vector<Nanoseconds> work_of_stages;
  for (const int k : rank_of_stage) {
    const std::vector<Nanoseconds>& work = bound.work_before(k);
    const auto [type, is_new] = types.try_emplace(&work, static_cast<int>(types.size()));
    if (is_new) work_of_stages.insert(work_of_stages.end(), work.begin(), work.end());
    work_of_stages.push_back(type->second);
  }
  const auto [known, is_new] = even_stages_.try_emplace(std::move(work_of_stages));
  if (!is_new) return known->second;
  const auto by_work = [&](int stage, int begin, int first, auto&& visit) {
    for (int end = first; end <= n;) {
      const Nanoseconds work = bound.work_ns(rank_of_stage[stage], {begin, end});
      end = visit(end, work, work);
    }
  };
  auto even = cut_chain(n, num_stages(unpartitioned), keeping_pins(problem_.options.pins, by_work));
  return known->second = std::move(even->partition);
}

Candidate CandidateMaker::shifted(const Phase& unpartitioned, const StageBound& bound, Nanoseconds limit_ns) {
  const int n = static_cast<int>(problem_.profile.model.layers.size());
  LoopedPrices prices(*this, unpartitioned, bound, with_even_stages(unpartitioned, bound));
  const bool is_hopeless = prices.price().missing_bytes == 0 && prices.price().bound_ns / 11 > limit_ns / 10;
  for (int step = is_hopeless ? 0 : first_step(n, num_stages(unpartitioned)); step > 0; step /= 2)
    while (prices.take_best_shift(step)) continue;
  Phase phase = unpartitioned;
  phase.partition = prices.partition();
  Candidate candidate = with_memory(std::move(phase));
  candidate.bound_ns = prices.price().bound_ns;
  return candidate;
}

}  // namespace frostpipe
