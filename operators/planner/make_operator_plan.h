#pragma once
#include <cstddef>
#include <cstdint>

#include "operators/planner/operator_problem.h"
#include "operators/simulator/run_operators.h"

namespace frostpipe {

/// The search for a plan of OperatorMethod::mtrain. It starts from the best of the baselines and HEFT, and changes the
/// ranges of some operators of neighbouring layers, or the order of two operators.
struct OperatorSearch {
  /// Number of placements that are tried. It is not a limit of time, so that the plan does not depend on the speed of
  /// this machine.
  int num_trials = 1500;
  std::uint64_t seed = 1;
};

/// A search for this many devices takes 10 s, and time and memory grow with their square.
inline constexpr std::size_t kMaxOperatorDevices = 256;

/// Makes a plan by the method, with prediction, bound and memory; the caller sets frozen_layers and provenance.
/// `mtrain` is never slower than a baseline. The machine must have a device. Throws InvalidInput if a device has no
/// times, the graph has no operators, or there are more devices than kMaxOperatorDevices.
OperatorPlan make_operator_plan(const OperatorProblem& problem, OperatorMethod method,
                                const OperatorSearch& search = {});

/// The four methods with which `mtrain` is compared.
inline constexpr OperatorMethod kOperatorBaselines[] = {OperatorMethod::single, OperatorMethod::data_parallel,
                                                        OperatorMethod::layer_wise, OperatorMethod::pipeline};

}  // namespace frostpipe
