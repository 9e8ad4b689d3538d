#pragma once
#include <vector>

#include "operators/plan/operator_plan.h"

namespace frostpipe {

/// A net's operators and the devices that shall compute them. Every operator has a time on every device's class.
struct OperatorProblem {
  OperatorGraph graph;
  OperatorMachine machine;
};

/// As many numbers that sum up to `total`, nearly in proportion to `weights`, by the largest remainders.
std::vector<int> in_proportion(int total, const std::vector<double>& weights);

/// Times of an operator on each device for the whole mini-batch, without and with its overhead.
std::vector<double> work_on_devices(const OperatorProblem& problem, const Operator& one);
std::vector<double> time_on_devices(const OperatorProblem& problem, const Operator& one);

/// How fast each device is: 1 / the time of all operators.
std::vector<double> speeds_of(const OperatorProblem& problem);

/// The mini-batch over some devices by their speeds; a device whose share is less than half a sample gets none.
std::vector<OperatorRange> ranges_over(const OperatorProblem& problem, const std::vector<int>& devices,
                                       const std::vector<double>& speeds);

/// The whole mini-batch on one device.
std::vector<OperatorRange> whole_on(const OperatorProblem& problem, int device);

/// All operators with the same ranges, updates without.
OperatorPlacement uniform_placement(const OperatorProblem& problem, const std::vector<OperatorRange>& ranges);

/// Places of the operators by upward rank: the longest way to the end, with every operator split best by the devices'
/// mean speed, first.
std::vector<int> places_by_rank(const OperatorProblem& problem);

}  // namespace frostpipe
