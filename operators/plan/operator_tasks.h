#pragma once
#include <span>
#include <vector>

#include "operators/plan/operator_plan.h"

namespace frostpipe {

/// A part of an operator on a device: samples [begin, end). Of an update, the part of the parameters with this index of
/// as many as there are holders, [begin, begin + 1); of a norm_update [0, 1).
struct OperatorTask {
  int op = 0, device = 0;
  int begin = 0, end = 0;
  Nanoseconds duration_ns = 0;
  bool operator==(const OperatorTask&) const = default;
};

/// From the device of a task, when it has ended, to another device: all that operators there read of it, once. These
/// are its samples [begin, end), of which the receiver may need only some; [0, 0) where no samples are sent: sums of
/// statistics, the receiver's part of a weight gradient, the sender's part of new weights.
struct TaskTransfer {
  int task = 0, to_device = 0;
  int begin = 0, end = 0;
  Bytes bytes = 0;
  bool operator==(const TaskTransfer&) const = default;
};

/// Lists of whole numbers, one after the other.
struct IndexLists {
  std::vector<int> begins, values;
  std::span<const int> operator[](int list) const {
    return {values.data() + begins[list], values.data() + begins[list + 1]};
  }
};

/// The tasks of a plan and their dependencies, as the planner, the simulator and the executor all see them.
struct OperatorTasks {
  std::vector<OperatorTask> tasks;
  std::vector<TaskTransfer> transfers;
  IndexLists local_readers;     // of a task: tasks of its own device
  IndexLists transfers_of;      // of a task
  IndexLists transfer_readers;  // of a transfer: tasks; none where it brings new weights to another holder
  std::vector<int> num_inputs;  // of a task: in how many lists of readers it is
};

/// In an update every holder of the layer updates an equal part of the parameters and sends it to the other holders.
/// Requires a placement that `validate` lets pass.
OperatorTasks tasks_of(const OperatorGraph& graph, const OperatorMachine& machine, const OperatorPlacement& placement);

/// The task's output that others read; updates have none, since they change weights in place.
Bytes output_bytes(const OperatorGraph& graph, const OperatorTask& task);

/// A device that carries out a plan makes room for messages so many tasks before the first that reads them, this one
/// among them, so that they come while it computes.
inline constexpr int kTasksAhead = 8;

}  // namespace frostpipe
