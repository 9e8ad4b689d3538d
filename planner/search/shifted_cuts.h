#pragma once
#include <functional>
#include <vector>

#include "planner/search/candidate.h"

namespace frostpipe {

/// The cuts behind stages first to last of a partition, each moved by as many layers.
struct CutShift {
  int first = 0, last = 0;
  int by = 1;
  CutShift back() const { return {first, last, -by}; }
};

/// Every cut alone, and up to 8 stages every row of neighbouring ones too, by one layer to either side.
std::vector<CutShift> cut_shifts(int num_stages);

/// False, and the partition as it is, where a stage would become empty.
bool shift(Partition& partition, const CutShift& one);

/// The bounds of a partition's ranks, and of partitions that differ in few of them.
class RankBounds {
 public:
  RankBounds(const StageBound& bound, const Phase& unpartitioned);
  /// From now on those of `partition`.
  void take(const Partition& partition);
  /// The same, of a partition that is shifted from the last one that was taken.
  void take(const Partition& partition, const CutShift& one);
  /// The StageBound of that partition, shifted.
  Nanoseconds with(const Partition& shifted, const CutShift& one);
  /// The StageBound of the partition that was taken.
  Nanoseconds largest() const;
  Nanoseconds of_rank(int pipeline_rank) const { return of_rank_[pipeline_rank]; }
  /// Pipeline ranks that have a stage which the shift changes, each once.
  const std::vector<int>& changed_by(const CutShift& one);

 private:
  const StageBound& bound_;
  std::vector<int> rank_of_stage_;
  std::vector<Nanoseconds> of_rank_;
  std::vector<int> changed_;
  std::vector<bool> is_changed_;
};

/// Shifts the cuts of a phase that has its prediction one layer at a time (neighbours) while that is faster by
/// `predicted` and still fits.
Phase with_shifted_cuts(Phase current, const PlanningProblem& problem, CandidateMaker& maker,
                        const std::function<Phase(const Candidate&)>& predicted);

}  // namespace frostpipe
