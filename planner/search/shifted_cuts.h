#pragma once
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "planner/search/candidate.h"

namespace frostpipe {

/// The cuts after stages `first` to `last` of a partition, each moved by `by` layers.
struct CutShift {
  int first = 0, last = 0;
  int by = 1;
  CutShift back() const { return {first, last, -by}; }
};

/// Returns the shifts by one layer of every single cut, and, with up to 8 stages, of every row of neighbouring cuts
/// together.
std::vector<CutShift> cut_shifts(int num_stages);

/// Returns false and leaves the partition unchanged if a stage would become empty.
bool shift(Partition& partition, const CutShift& one);

/// The bounds of a partition's ranks, updated cheaply for partitions that differ in few of them.
class RankBounds {
 public:
  RankBounds(const StageBound& bound, const Phase& unpartitioned);
  /// Returns the pipeline ranks that have a stage which the shift changes, each once.
  std::vector<int> changed_by(const CutShift& one) const;
  /// Computes the bounds for `partition`.
  void take(const Partition& partition);
  /// Updates the bounds for a partition that differs from the last one taken on the ranks `changed` only.
  void take(const Partition& partition, std::span<const int> changed);
  /// Returns the largest bound of the ranks `changed` for `partition`.
  Nanoseconds of_changed(const Partition& partition, std::span<const int> changed) const;
  /// Returns the StageBound of a partition that differs from the last one taken on the ranks `changed` only, for which
  /// of_changed() has returned `largest`.
  Nanoseconds with(Nanoseconds largest, std::span<const int> changed) const;
  /// Returns the StageBound of the last partition taken.
  Nanoseconds largest() const;
  Nanoseconds of_rank(int pipeline_rank) const { return of_rank_[pipeline_rank]; }

 private:
  void sort_ranks();

  const StageBound& bound_;
  std::vector<int> rank_of_stage_;
  std::vector<Nanoseconds> of_rank_;
  std::vector<int> descending_;  // pipeline ranks, the largest bound first
};

/// A function that returns the phase with its prediction; none if it lacks memory, or its iteration is not below the
/// limit.
using PredictBelow = std::function<std::optional<Phase>(const Phase&, Nanoseconds limit_ns)>;

/// Shifts the cuts of `current`, which must have its prediction, one layer at a time, as long as the prediction gets
/// faster and the phase still fits.
Phase with_shifted_cuts(Phase current, const PlanningProblem& problem, CandidateMaker& maker,
                        const PredictBelow& predicted_below);

/// Returns the faster of two phases: with_shifted_cuts from the cuts of `phase`, which has its prediction, and from
/// those of even work (the least bound lets early ranks work longer than late ones, which may be far from the best).
Phase with_shifted_or_even_cuts(const Phase& phase, const PlanningProblem& problem, CandidateMaker& maker,
                                const PredictBelow& predicted_below);

}  // namespace frostpipe
