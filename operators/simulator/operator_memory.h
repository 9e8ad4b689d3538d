#pragma once
#include <vector>

#include "operators/simulator/run_operators.h"

namespace frostpipe {

/// Per device, the most bytes that tensors take at a time of the run:
///   always       the weights of the layers that the device holds, and the momentum of what it updates; of a batch norm
///                that trains, scale and shift, their momentum, and running statistics
///   received     from kTasksAhead tasks before the first that reads it, when the receiver asks for it, until the last
///                of them has ended
///   outputs      of a task, from its begin until all that read it there have ended, and all its transfers have been
///                asked for and have arrived
///   for itself   what a task takes beside these while it runs (own_bytes)
///   new weights  until the end of the iteration, where a task after the update still reads the old ones
/// The mini-batch's pictures are the host's.
std::vector<Bytes> peak_memory_of(const OperatorPlan& plan, const OperatorTasks& tasks, const OperatorRun& run);

}  // namespace frostpipe
