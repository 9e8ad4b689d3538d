#pragma once
#include <optional>
#include <string>
#include <vector>

#include "operators/plan/operator_plan.h"
#include "operators/plan/operator_tasks.h"

namespace frostpipe {

/// When everything happened. A task begins when its device is free and all that it reads is there; a transfer when its
/// task has ended and its way is free, in the order in which they were issued. It ends when it has arrived.
struct OperatorRun {
  Nanoseconds makespan_ns = 0;
  std::vector<Nanoseconds> task_begin_ns, task_end_ns;
  std::vector<Nanoseconds> transfer_begin_ns, transfer_end_ns;
  std::vector<std::vector<int>> order;  // per device its tasks
};

/// List scheduling: a free device takes, of the tasks that can begin, the one whose operator has the least
/// `place_of_operator`, which has every operator once.
OperatorRun run_by_priority(const OperatorTasks& tasks, const OperatorMachine& machine,
                            const std::vector<int>& place_of_operator);

/// Each device takes its operators in the order of the list. None if they wait for each other in a circle.
std::optional<OperatorRun> run_in_order(const OperatorTasks& tasks, const OperatorMachine& machine,
                                        const std::vector<std::vector<int>>& operators);

/// The same of a plan. Throws InvalidInput ("SOURCE: order: ...") if its operators wait for each other in a circle.
OperatorRun simulate_operators(const OperatorPlan& plan, const OperatorTasks& tasks, const std::string& source);

}  // namespace frostpipe
