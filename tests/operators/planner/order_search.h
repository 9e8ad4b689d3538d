#pragma once
#include "operators/plan/operator_tasks.h"

namespace frostpipe {

/// The longest paths through the tasks without queues: up to the end of a task, and from its end to the end of the run.
struct LongestWays {
  std::vector<Nanoseconds> until_end, from_end;
};

/// Requires that tasks read only from tasks before them.
LongestWays longest_ways(const OperatorTasks& tasks, const OperatorMachine& machine);

/// The least makespan of these tasks over all orders on each device, or `below_ns` if none is less. It has its own
/// simulation with the events of operators/simulator, and branches wherever a device chooses its next task.
Nanoseconds best_order_ns(const OperatorTasks& tasks, const OperatorMachine& machine, Nanoseconds below_ns);

}  // namespace frostpipe
