#pragma once
#include <memory>
#include <optional>

#include "plan/plan.h"
#include "profiles/cluster.h"
#include "simulator/layer_costs.h"

namespace frostpipe {

/// Simulates iterations for a search, which asks for many phases that differ only in their partitions. It prepares
/// their schedule once, and keeps the critical paths of the last phases that iteration_ns_below has simulated.
class IterationTimer {
 public:
  /// `costs` and `cluster` must outlive the timer. `costs` has the profile; it must be for the dtype of `settings`.
  IterationTimer(const StepSettings& settings, LayerCosts& costs, const Cluster& cluster);
  ~IterationTimer();

  /// Returns simulated_iteration_ns (simulate.h).
  Nanoseconds iteration_ns(const Phase& phase);

  /// Returns the same if it is below `limit_ns`, else none.
  std::optional<Nanoseconds> iteration_ns_below(const Phase& phase, Nanoseconds limit_ns);

  /// Returns false only if the iteration is not below `limit_ns`: the critical path of a phase that iteration_ns_below
  /// has simulated with another partition takes that long with this phase's costs. This simulates nothing.
  bool may_be_below(const Phase& phase, Nanoseconds limit_ns);

 private:
  class Prepared;
  Prepared& prepared_for(const Phase& phase);

  StepSettings settings_;
  LayerCosts& costs_;
  const Cluster& cluster_;
  std::unique_ptr<Prepared> prepared_;  // for the last phase
};

}  // namespace frostpipe
