#pragma once
#include <vector>

#include "operators/plan/operator_plan.h"

namespace frostpipe {

/// A net's operators and the devices on which to place them. Every operator has a time on every device's class.
struct OperatorProblem {
  OperatorGraph graph;
  OperatorMachine machine;
};

/// Splits `total` nearly in proportion to `weights`, by largest remainders.
std::vector<int> in_proportion(int total, const std::vector<double>& weights);

/// Return the times of an operator on each device for the whole mini-batch, in nanoseconds: without its overhead, and
/// with it.
std::vector<double> work_on_devices(const OperatorProblem& problem, const Operator& one);
std::vector<double> time_on_devices(const OperatorProblem& problem, const Operator& one);

/// Returns the speed of each device: 1 / its time for all operators.
std::vector<double> speeds_of(const OperatorProblem& problem);

/// Splits the mini-batch over some devices nearly in proportion to their speeds (in_proportion). A device whose share
/// is less than one sample may get none.
std::vector<OperatorRange> ranges_over(const OperatorProblem& problem, const std::vector<int>& devices,
                                       const std::vector<double>& speeds);

/// Returns the range of the whole mini-batch on one device.
std::vector<OperatorRange> whole_on(const OperatorProblem& problem, int device);

/// Returns a placement with these ranges for all operators but updates, which have none.
OperatorPlacement uniform_placement(const OperatorProblem& problem, const std::vector<OperatorRange>& ranges);

/// Returns the places of the operators by upward rank, the largest first. The rank is the length of the longest path
/// from the operator to the end if every operator is split over all devices by their speeds and messages take no time.
std::vector<int> places_by_rank(const OperatorProblem& problem);

}  // namespace frostpipe
