#pragma once
#include <optional>

#include "plan/plan.h"

namespace frostpipe {

/// Decides whether a freeze has cost too much test accuracy, by comparing the last evaluation before it with the first
/// one after it. Of several freezes between two evaluations, the first counts.
class AccuracyGate {
 public:
  /// The reference for an unconfirmed freeze, to which the run may go back.
  struct Baseline {
    int step = 0;         // step of the checkpoint before the freeze
    double accuracy = 0;  // test accuracy at that step
    bool operator==(const Baseline&) const = default;
  };
  enum class Verdict {
    nothing_to_judge,  // there is no unconfirmed freeze
    confirmed,         // the accuracy has not dropped by more than the tolerance
    too_low,           // the freeze must be undone
  };

  /// Without a tolerance, freezes are not watched.
  explicit AccuracyGate(std::optional<double> tolerance) : tolerance_(tolerance) {}

  /// True if a baseline must be taken before a change from `current` to `next`: freezes are watched, `next` freezes
  /// more layers, and no other freeze is unconfirmed.
  bool needs_baseline(const Phase& current, const Phase& next) const;
  /// Sets the baseline. The freeze after it is unconfirmed until close(). Does nothing without a tolerance.
  void open(const Baseline& baseline);
  /// True if an evaluation before step `step` comes after the freeze, and so must be judged.
  bool is_to_judge_at(int step) const { return baseline_ && baseline_->step < step; }
  /// Judges the test accuracy after the freeze; does not change the gate.
  Verdict judge(double accuracy) const;
  /// Ends the watch: the freeze is confirmed or undone.
  void close() { baseline_.reset(); }

  /// Returns the baseline of the unconfirmed freeze, if there is one.
  const std::optional<Baseline>& baseline() const { return baseline_; }
  std::optional<double> tolerance() const { return tolerance_; }

 private:
  std::optional<double> tolerance_;
  std::optional<Baseline> baseline_;
};

/// Adapts the plan of a run that goes back from `step` to `back_to` because a freeze is undone: the first freeze at
/// `back_to` or later and all changes after it are delayed by the difference, so that nothing freezes before `step`.
void delay_changes(TrainingPlan& plan, int back_to, int step);

}  // namespace frostpipe
