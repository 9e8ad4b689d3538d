#pragma once
#include <optional>

#include "plan/plan.h"

namespace frostpipe {

/// Decides whether a freeze has cost too much test accuracy: the last evaluation before it is compared with the first
/// one after it. Of several freezes between two evaluations the first counts.
class AccuracyGate {
 public:
  /// What an unconfirmed freeze is compared with, and where the run goes back to.
  struct Baseline {
    int step = 0;         // of the checkpoint that was written before the freeze
    double accuracy = 0;  // there
    bool operator==(const Baseline&) const = default;
  };
  enum class Verdict {
    nothing_to_judge,  // no freeze is unconfirmed
    confirmed,         // the accuracy has not fallen by more than the tolerance
    too_low,           // the freeze is to be taken back
  };

  /// No tolerance: freezes are never watched.
  explicit AccuracyGate(std::optional<double> tolerance) : tolerance_(tolerance) {}

  /// Whether a baseline is to be taken before a change from `current` to `next`.
  bool needs_baseline(const Phase& current, const Phase& next) const;
  /// The freeze after the baseline is unconfirmed until close(). Without effect if there is no tolerance.
  void open(const Baseline& baseline);
  /// Whether an evaluation before step `step` is of the time after the freeze, and so to be judged.
  bool is_to_judge_at(int step) const { return baseline_ && baseline_->step < step; }
  /// Of the test accuracy after the freeze; leaves the gate as it is.
  Verdict judge(double accuracy) const;
  /// The freeze is confirmed, or taken back.
  void close() { baseline_.reset(); }

  /// Of the unconfirmed freeze.
  const std::optional<Baseline>& baseline() const { return baseline_; }
  std::optional<double> tolerance() const { return tolerance_; }

 private:
  std::optional<double> tolerance_;
  std::optional<Baseline> baseline_;
};

/// The plan of a run that goes back from `step` to `back_to`, where a freeze was taken back: what the plan changed from
/// `back_to` on it changes as many steps later, so that nothing freezes again before `step`.
void delay_changes(TrainingPlan& plan, int back_to, int step);

}  // namespace frostpipe
