#include "planner/search/shifted_cuts.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <utility>

#include "plan/stages.h"
#include "planner/search/pins.h"

namespace frostpipe {
namespace {

constexpr int kFewCuts = 7;  // with up to 8 stages, neighbouring cuts are also shifted together

}  // namespace

std::vector<CutShift> cut_shifts(int num_stages) {
  std::vector<CutShift> all;
  const int cuts = num_stages - 1;
  const int together = cuts <= kFewCuts ? cuts : 1;
  for (int first = 0; first < cuts; ++first)
    for (int last = first; last < std::min(cuts, first + together); ++last)
      for (const int by : {-1, 1}) all.push_back({first, last, by});
  return all;
}

bool shift(Partition& partition, const CutShift& one) {
  const LayerRange& shorter = partition[one.by < 0 ? one.first : one.last + 1];
  if (shorter.end - shorter.begin <= std::abs(one.by)) return false;
  for (int cut = one.first; cut <= one.last; ++cut)
    partition[cut].end = partition[cut + 1].begin = partition[cut].end + one.by;
  return true;
}

RankBounds::RankBounds(const StageBound& bound, const Phase& unpartitioned)
    : bound_(bound),
      rank_of_stage_(pipeline_ranks_of_stages(unpartitioned)),
      of_rank_(unpartitioned.layout.pipeline_parallel_size),
      descending_(of_rank_.size()) {
  std::iota(descending_.begin(), descending_.end(), 0);
}

void RankBounds::take(const Partition& partition) {
  for (int k = 0; k < static_cast<int>(of_rank_.size()); ++k) of_rank_[k] = bound_.on_rank(partition, k).total_ns();
  sort_ranks();
}

void RankBounds::take(const Partition& partition, std::span<const int> changed) {
  for (const int k : changed) of_rank_[k] = bound_.on_rank(partition, k).total_ns();
  sort_ranks();
}

void RankBounds::sort_ranks() {
  std::ranges::sort(descending_, std::greater<>(), [&](int k) { return of_rank_[k]; });
}

Nanoseconds RankBounds::of_changed(const Partition& partition, std::span<const int> changed) const {
  Nanoseconds largest = 0;
  for (const int k : changed) largest = std::max(largest, bound_.on_rank(partition, k).total_ns());
  return largest;
}

Nanoseconds RankBounds::with(Nanoseconds largest, std::span<const int> changed) const {
  largest = std::max(bound_.of_any(), largest);
  for (const int k : descending_)
    if (std::ranges::find(changed, k) == changed.end()) return std::max(largest, of_rank_[k]);
  return largest;
}

Nanoseconds RankBounds::largest() const { return std::max(bound_.of_any(), of_rank_[descending_.front()]); }

std::vector<int> RankBounds::changed_by(const CutShift& one) const {
  std::vector<int> changed;
  for (int stage = one.first; stage <= one.last + 1; ++stage)
    if (const int k = rank_of_stage_[stage]; std::ranges::find(changed, k) == changed.end()) changed.push_back(k);
  return changed;
}

Phase with_shifted_cuts(Phase current, const PlanningProblem& problem, CandidateMaker& maker,
                        const PredictBelow& predicted_below) {
  const StageBound bound = maker.bound_of(current);
  RankBounds bounds(bound, current);
  const std::vector<CutShift> shifts = cut_shifts(static_cast<int>(current.partition.size()));
  for (bool better = true; better;) {
    better = false;
    Partition partition = current.partition;
    bounds.take(partition);
    for (const CutShift& one : shifts) {
      if (!shift(partition, one)) continue;
      const std::vector<int> changed = bounds.changed_by(one);
      if (keeps_pins(problem.options.pins, partition) &&
          bounds.with(bounds.of_changed(partition, changed), changed) < current.predicted.iteration_ns) {
        Phase phase = current;
        phase.partition = partition;
        if (auto next = predicted_below(phase, current.predicted.iteration_ns)) {
          current = *std::move(next);
          better = true;
        }
      }
      shift(partition, one.back());
    }
  }
  return current;
}

Phase with_shifted_or_even_cuts(const Phase& phase, const PlanningProblem& problem, CandidateMaker& maker,
                                const PredictBelow& predicted_below) {
  Phase shifted = with_shifted_cuts(phase, problem, maker, predicted_below);
  const auto even = maker.with_even_work(phase);
  if (!even || even->missing_bytes > 0) return shifted;
  const auto predicted = predicted_below(even->phase, kNoLimit);
  if (!predicted) return shifted;
  Phase other = with_shifted_cuts(*predicted, problem, maker, predicted_below);
  return other.predicted.iteration_ns < shifted.predicted.iteration_ns ? other : shifted;
}

}  // namespace frostpipe
