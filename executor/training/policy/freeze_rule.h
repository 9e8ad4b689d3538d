#pragma once
#include <memory>
#include <span>
#include <vector>

#include "executor/execute.h"

namespace frostpipe {

/// Decides how many blocks are frozen. Its figures are equal on all ranks, and so is what it makes of them.
class FreezeRule {
 public:
  virtual ~FreezeRule() = default;
  /// True before a step at which it is asked, given the number of blocks that are frozen.
  virtual bool asks_before(int step, int frozen) const = 0;
  /// Blocks to be frozen from `step` on. `norms`: per block the L2 norm of its reduced gradients before clipping,
  /// averaged over the steps since it was last asked; 0 for frozen blocks. Fewer than `frozen` counts as `frozen`.
  virtual int decide(int step, int frozen, std::span<const double> norms) = 0;
  /// What it remembers between decisions, for restore() of a rule made alike.
  virtual std::vector<double> state() const { return {}; }
  /// False if this is no state of such a rule.
  virtual bool restore(std::span<const double> state) { return state.empty(); }
};

/// - plan: never asked, the plan's phases decide.
/// - paper, cap, fixed: asked at decision_steps(num_steps, options).
/// - adaptive: asked before every step. A block's signal is its gradient norm, smoothed (exponential mean over 4 % of
/// the run's steps) and
///   divided by the largest that the smoothed norm has been: the share of its learning that is left. Blocks whose
///   signal and that of every block below are under `options.threshold` freeze, at most a fraction alpha of the active
///   ones at once, not before the warm-up is over and not within 4 % of the run after the last freeze.
/// Throws InvalidInput if the policy freezes more blocks than there are.
std::unique_ptr<FreezeRule> make_freeze_rule(const FreezePolicy& policy, int num_blocks, int num_steps);

}  // namespace frostpipe
