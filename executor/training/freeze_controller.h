#pragma once
#include <memory>
#include <string>
#include <vector>

#include "executor/communication/communicator.h"
#include "executor/training/policy/freeze_rule.h"

namespace frostpipe {

/// Asks the freeze rule, to which it gives the norms of every block's gradients, bitwise the same on all ranks.
class FreezeController {
 public:
  FreezeController(const FreezePolicy& policy, int num_blocks, int num_steps);
  /// Records the squared norms of the blocks' gradients in a step. Call it after every step, on every rank;
  /// `block_square_sums` is empty on ranks without trainable layers.
  void record(const std::vector<double>& block_square_sums);
  /// True before a step at which the rule decides; the same on all ranks.
  bool decides_before(int step, int frozen) const { return rule_->asks_before(step, frozen); }
  /// Returns the number of frozen blocks from `step` on, at least `frozen`. Must be called by all ranks; the result is
  /// the same on all.
  int decide(int step, int frozen, Communicator& communicator);

  /// Call it when a freeze has cost too much accuracy: nothing freezes before `step`, and from then on a decision
  /// freezes half as many blocks as before, rounded up.
  void slow_down(int step);

  /// Returns the state for restore() of a controller with the same rule. It is complete on a rank that has trained
  /// since the last decision.
  std::vector<double> state() const;
  /// Throws InvalidInput(`source`) if this is not a state of such a controller.
  void restore(const std::vector<double>& state, const std::string& source);

 private:
  /// Returns the sums of norms by block, and then the number of recorded steps, from the rank that has recorded the
  /// most.
  std::vector<double> agreed_sums(Communicator& communicator) const;

  std::unique_ptr<FreezeRule> rule_;
  std::vector<double> norm_sums_;  // per block, since the last decision
  double num_recorded_ = 0;
  int hold_until_ = 0;
  int num_slow_downs_ = 0;  // number of slow_down() calls, 16 at most
};

}  // namespace frostpipe
