#pragma once
#include <string>
#include <vector>

#include "operators/plan/operator_tasks.h"
#include "operators/simulator/run_operators.h"

namespace frostpipe {

/// When a device's tasks of an iteration ran, in its order.
struct DeviceTimes {
  std::vector<Nanoseconds> begin_ns, end_ns;
};

/// Chrome trace of an iteration: for each device a process with the predicted and one with the measured tasks, from the
/// iteration's begin.
std::string chrome_trace(const OperatorPlan& plan, const OperatorTasks& tasks, const OperatorRun& predicted,
                         const std::vector<DeviceTimes>& measured);

}  // namespace frostpipe
