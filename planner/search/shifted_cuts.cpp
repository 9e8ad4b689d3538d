#include "planner/search/shifted_cuts.h"

#include <algorithm>
#include <cstdlib>
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
      is_changed_(of_rank_.size(), false) {}

void RankBounds::take(const Partition& partition) {
  for (int k = 0; k < static_cast<int>(of_rank_.size()); ++k) of_rank_[k] = bound_.on_rank(partition, k).total_ns();
}

void RankBounds::take(const Partition& partition, const CutShift& one) {
  for (const int k : changed_by(one)) of_rank_[k] = bound_.on_rank(partition, k).total_ns();
}

Nanoseconds RankBounds::with(const Partition& shifted, const CutShift& one) {
  Nanoseconds largest = bound_.of_any();
  for (const int k : changed_by(one)) {
    largest = std::max(largest, bound_.on_rank(shifted, k).total_ns());
    is_changed_[k] = true;
  }
  for (std::size_t k = 0; k < of_rank_.size(); ++k)
    if (!is_changed_[k]) largest = std::max(largest, of_rank_[k]);
  for (const int k : changed_) is_changed_[k] = false;
  return largest;
}

Nanoseconds RankBounds::largest() const { return std::max(bound_.of_any(), std::ranges::max(of_rank_)); }

const std::vector<int>& RankBounds::changed_by(const CutShift& one) {
  changed_.clear();
  for (int stage = one.first; stage <= one.last + 1; ++stage)
    if (const int k = rank_of_stage_[stage]; std::ranges::find(changed_, k) == changed_.end()) changed_.push_back(k);
  return changed_;
}

Phase with_shifted_cuts(Phase current, const PlanningProblem& problem, CandidateMaker& maker,
                        const std::function<Phase(const Candidate&)>& predicted) {
  const StageBound bound = maker.bound_of(current);
  RankBounds bounds(bound, current);
  const std::vector<CutShift> shifts = cut_shifts(static_cast<int>(current.partition.size()));
  for (bool better = true; better;) {
    better = false;
    Partition partition = current.partition;
    bounds.take(partition);
    for (const CutShift& one : shifts) {
      if (!shift(partition, one)) continue;
      if (keeps_pins(problem.options.pins, partition) && bounds.with(partition, one) < current.predicted.iteration_ns) {
        Phase phase = current;
        phase.partition = partition;
        const Candidate shifted = maker.with_memory(std::move(phase));
        if (shifted.missing_bytes == 0) {
          Phase next = predicted(shifted);
          if (next.predicted.iteration_ns < current.predicted.iteration_ns) {
            current = std::move(next);
            better = true;
          }
        }
      }
      shift(partition, one.back());
    }
  }
  return current;
}

}  // namespace frostpipe
