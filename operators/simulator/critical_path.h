#pragma once
#include <map>

#include "operators/simulator/run_operators.h"

namespace frostpipe {

/// What the time of an iteration is made of, from its end back to its beginning: each step is a task or a transfer, and
/// the one before it is what it waited for last. The parts sum up to the makespan.
struct CriticalPath {
  std::map<OperatorKind, Nanoseconds> compute_ns;
  Nanoseconds transfer_ns = 0;          // of samples, partial gradients and weights, with their latency
  Nanoseconds statistics_ns = 0;        // of batch norm's sums
  Nanoseconds waiting_for_link_ns = 0;  // behind other transfers
  int num_tasks = 0, num_transfers = 0;
};

CriticalPath critical_path(const OperatorGraph& graph, const OperatorTasks& tasks, const OperatorRun& run);

}  // namespace frostpipe
