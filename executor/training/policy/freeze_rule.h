#pragma once
#include <memory>
#include <span>
#include <vector>

#include "executor/execute.h"

namespace frostpipe {

/// Decides how many blocks are frozen. Its inputs, and so its decisions, are the same on all ranks.
class FreezeRule {
 public:
  virtual ~FreezeRule() = default;
  /// True before a step at which the rule decides, given the number of frozen blocks.
  virtual bool asks_before(int step, int frozen) const = 0;
  /// Returns the number of blocks frozen from `step` on; less than `frozen` counts as `frozen`. `norms` has, for each
  /// block, the L2 norm of its reduced gradients before clipping, averaged over the steps since the last decision; 0
  /// for frozen blocks.
  virtual int decide(int step, int frozen, std::span<const double> norms) = 0;
  /// Returns the state between decisions, for restore() of an equal rule.
  virtual std::vector<double> state() const { return {}; }
  /// Restores the state. Returns false if this is not a state of such a rule.
  virtual bool restore(std::span<const double> state) { return state.empty(); }
};

/// Returns the policy's rule. Throws InvalidInput if the policy freezes more blocks than there are. The rules are:
/// - plan: never decides; the plan's phases do.
/// - paper, cap, fixed: decide at decision_steps(num_steps, options).
/// - adaptive: decides before every step but the first. A block's signal is its smoothed gradient norm (exponential
///   mean over 4 % of the run's steps, at least 4 steps) divided by the maximum of that mean so far: the share of its
///   learning that is left. Blocks freeze if their signal and those of all blocks below are under `options.threshold`,
///   at most a fraction alpha of the active ones at once, not before the warm-up is over, and not within those 4 % of
///   the run after its start or the last freeze.
std::unique_ptr<FreezeRule> make_freeze_rule(const FreezePolicy& policy, int num_blocks, int num_steps);

}  // namespace frostpipe
