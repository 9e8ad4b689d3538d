#pragma once
#include <memory>
#include <vector>

#include "executor/communicator.h"
#include "executor/freeze_rule.h"

namespace frostpipe {

/// Brings the freeze rule its figures: the norms of every block's gradients, on all ranks alike.
class FreezeController {
 public:
  FreezeController(const FreezePolicy& policy, int num_blocks, int num_steps);
  /// After every step, on every rank; `block_square_sums` is empty where nothing trains. `speaks` on the one rank whose
  /// figures count.
  void record(const std::vector<double>& block_square_sums, bool speaks);
  /// True before a step at which the rule is asked; the same on all ranks.
  bool decides_before(int step, int frozen) const { return rule_->asks_before(step, frozen); }
  /// Number of frozen blocks from `step` on (never fewer than `frozen`); called by all ranks, the same on all.
  int decide(int step, int frozen, Communicator& communicator);

 private:
  std::unique_ptr<FreezeRule> rule_;
  std::vector<double> norm_sums_;  // per block
  double num_recorded_ = 0;
};

}  // namespace frostpipe
