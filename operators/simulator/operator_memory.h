#pragma once
#include <vector>

#include "operators/simulator/run_operators.h"

namespace frostpipe {

/// Returns for each device the largest number of bytes that its tensors take at any time of the run:
///   always       the weights of the layers that the device holds, and the momentum of the parameters that it updates;
///                for a batch norm that trains, scale and shift, their momentum, and running statistics
///   received     a message, from the start of the task at which its receive is posted (the first reader is the last of
///                kTasksAhead tasks from there on) until its last reader has ended
///   outputs      a task's output, from the start of the task until all its readers on this device have ended and all
///                its transfers have been received
///   working      a task's working memory (own_bytes) while it runs
///   new weights  a copy until the end of the iteration, if a task after the update still reads the old weights
/// The mini-batch's pictures are in host memory and not counted.
std::vector<Bytes> peak_memory_of(const OperatorPlan& plan, const OperatorTasks& tasks, const OperatorRun& run);

}  // namespace frostpipe
