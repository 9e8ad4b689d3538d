#pragma once
#include <optional>
#include <string>
#include <vector>

#include "operators/plan/operator_plan.h"
#include "operators/plan/operator_tasks.h"

namespace frostpipe {

/// The times of all tasks and transfers. A task begins when its device is free and all its inputs are there. A transfer
/// begins when its task has ended and its link is free, in the order of issue, and ends when it has arrived.
struct OperatorRun {
  Nanoseconds makespan_ns = 0;
  std::vector<Nanoseconds> task_begin_ns, task_end_ns;
  std::vector<Nanoseconds> transfer_begin_ns, transfer_end_ns;
  std::vector<std::vector<int>> order;  // tasks of each device
};

/// Simulates list scheduling: of the tasks that are ready, a free device begins the one whose operator has the least
/// `place_of_operator`. The places must be a permutation of the operators.
OperatorRun run_by_priority(const OperatorTasks& tasks, const OperatorMachine& machine,
                            const std::vector<int>& place_of_operator);

/// Simulates each device's operators in the order of its list. Returns nothing if they wait for each other in a cycle.
std::optional<OperatorRun> run_in_order(const OperatorTasks& tasks, const OperatorMachine& machine,
                                        const std::vector<std::vector<int>>& operators);

/// Simulates the operators in the plan's order. Throws InvalidInput ("SOURCE: order: ...") if they wait for each other
/// in a cycle.
OperatorRun simulate_operators(const OperatorPlan& plan, const OperatorTasks& tasks, const std::string& source);

}  // namespace frostpipe
