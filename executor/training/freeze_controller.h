#pragma once
#include <memory>
#include <string>
#include <vector>

#include "executor/communication/communicator.h"
#include "executor/training/policy/freeze_rule.h"

namespace frostpipe {

/// Brings the freeze rule its figures: the norms of every block's gradients, on all ranks alike.
class FreezeController {
 public:
  FreezeController(const FreezePolicy& policy, int num_blocks, int num_steps);
  /// After every step, on every rank; `block_square_sums` is empty where nothing trains.
  void record(const std::vector<double>& block_square_sums);
  /// True before a step at which the rule is asked; the same on all ranks.
  bool decides_before(int step, int frozen) const { return rule_->asks_before(step, frozen); }
  /// Number of frozen blocks from `step` on (never fewer than `frozen`); called by all ranks, the same on all.
  int decide(int step, int frozen, Communicator& communicator);

  /// A freeze has cost too much accuracy: nothing more freezes before `step`, and from then on half as much at once as
  /// before.
  void slow_down(int step);

  /// All that is remembered, for restore() of a controller of the same rule; as a rank that has trained since the last
  /// decision has it.
  std::vector<double> state() const;
  /// Throws InvalidInput(`source`) if this is no state of such a controller.
  void restore(const std::vector<double>& state, const std::string& source);

 private:
  /// Sums and their number, from a rank that has recorded all steps.
  std::vector<double> agreed_sums(Communicator& communicator) const;

  std::unique_ptr<FreezeRule> rule_;
  std::vector<double> norm_sums_;  // per block, since the last decision
  double num_recorded_ = 0;
  int hold_until_ = 0;
  int caution_ = 0;  // how often it was slowed down
};

}  // namespace frostpipe
