#pragma once
#include <map>

#include "operators/simulator/run_operators.h"

namespace frostpipe {

/// The critical path of an iteration, from its end back to its start: each step is a task or a transfer, and the one
/// before it is the last for which it waited. The parts sum up to the makespan.
struct CriticalPath {
  std::map<OperatorKind, Nanoseconds> compute_ns;
  Nanoseconds transfer_ns = 0;          // samples, partial gradients and weights, with latency
  Nanoseconds statistics_ns = 0;        // the same for batch norm's sums
  Nanoseconds waiting_for_link_ns = 0;  // waiting behind other transfers
  int num_tasks = 0, num_transfers = 0;
};

CriticalPath critical_path(const OperatorGraph& graph, const OperatorTasks& tasks, const OperatorRun& run);

}  // namespace frostpipe
