#pragma once
#include <vector>

#include "executor/communicator.h"
#include "executor/execute.h"

namespace frostpipe {

/// Asks the freeze rule at its decision steps. A block's signal is the L2 norm of its reduced gradients before clipping, averaged over
/// the steps since the last decision.
class FreezeController {
 public:
  FreezeController(const FreezePolicy& policy, int num_blocks, int num_steps);
  /// After every step, on every rank; `block_square_sums` is empty where nothing trains. `speaks` on the one rank whose
  /// figures count.
  void record(const std::vector<double>& block_square_sums, bool speaks);
  /// True before a step at which the rule is asked; the same on all ranks.
  bool decides_before(int step) const;
  /// Number of frozen blocks from now on (never fewer than `frozen`); called by all ranks, the same on all.
  int decide(int frozen, Communicator& communicator);

 private:
  FreezePolicy policy_;
  int num_blocks_;
  std::vector<int> decision_steps_;
  int decisions_ = 0;
  std::vector<double> norm_sums_;  // per block
  double num_recorded_ = 0;
};

}  // namespace frostpipe
