#pragma once
#include "operators/plan/operator_tasks.h"

namespace frostpipe {

/// Of the longest ways through the tasks without any queue: until a task has ended, and from its end to the end of all.
struct LongestWays {
  std::vector<Nanoseconds> until_end, from_end;
};

/// Requires that tasks read only of tasks before them.
LongestWays longest_ways(const OperatorTasks& tasks, const OperatorMachine& machine);

/// The least makespan of these tasks over all orders on each device, or `below_ns` where none is less. It simulates by
/// itself: the events of operators/simulator, with a branch wherever a device chooses what it does next.
Nanoseconds best_order_ns(const OperatorTasks& tasks, const OperatorMachine& machine, Nanoseconds below_ns);

}  // namespace frostpipe
