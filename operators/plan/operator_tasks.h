#pragma once
#include <span>
#include <vector>

#include "operators/plan/operator_plan.h"

namespace frostpipe {

/// A part of an operator on a device: samples [begin, end). The parameters of an update have as many equal parts as
/// there are holders, and the task of part i has [i, i + 1); every task of a norm_update has [0, 1).
struct OperatorTask {
  int op = 0, device = 0;
  int begin = 0, end = 0;
  Nanoseconds duration_ns = 0;
  bool operator==(const OperatorTask&) const = default;
};

/// A message from the device of a task, after its end, to another device. It has everything that operators there read
/// of the task: its samples [begin, end), of which the receiver may need only some, or [0, 0) if no samples are sent
/// (sums of statistics, the receiver's part of a weight gradient, the sender's part of new weights).
struct TaskTransfer {
  int task = 0, to_device = 0;
  int begin = 0, end = 0;
  Bytes bytes = 0;
  bool operator==(const TaskTransfer&) const = default;
};

/// Lists of whole numbers, stored contiguously.
struct IndexLists {
  std::vector<int> begins, values;
  std::span<const int> operator[](int list) const {
    return {values.data() + begins[list], values.data() + begins[list + 1]};
  }
};

/// The tasks of a plan and their dependencies, for the planner, the simulator and the executor.
struct OperatorTasks {
  std::vector<OperatorTask> tasks;
  std::vector<TaskTransfer> transfers;
  IndexLists local_readers;     // by task: tasks of its device that read its output
  IndexLists transfers_of;      // by task: transfers of its output
  IndexLists transfer_readers;  // by transfer: tasks; none if it sends new weights to another holder
  std::vector<int> num_inputs;  // by task: number of lists of readers that contain it
};

/// Returns the tasks of a placement, which must be valid. In an update every holder of the layer updates an equal part
/// of the parameters and sends it to the other holders.
OperatorTasks tasks_of(const OperatorGraph& graph, const OperatorMachine& machine, const OperatorPlacement& placement);

/// Returns the size of the output that other tasks read; updates have none, since they change weights in place.
Bytes output_bytes(const OperatorGraph& graph, const OperatorTask& task);

/// Before a device runs a task, it has posted the receives of this many tasks, beginning with that one, so that
/// messages arrive while the device computes.
inline constexpr int kTasksAhead = 8;

}  // namespace frostpipe
