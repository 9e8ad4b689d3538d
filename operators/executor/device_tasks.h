#pragma once
#include <cstdint>
#include <vector>

#include "operators/plan/operator_tasks.h"

namespace frostpipe {

/// A device's part of a plan: what it does one after the other, and what it waits for.
struct DeviceTasks {
  std::vector<int> order;                       // its tasks
  std::vector<std::vector<int>> transfers_for;  // by place in `order`: those that no task before waits for
  std::vector<std::vector<int>> reads;          // by place: tasks, also of other devices, whose outputs it reads
  std::vector<int> new_weights;                 // transfers that come to this device and that no task reads
};

DeviceTasks tasks_of_device(const OperatorPlan& plan, const OperatorTasks& tasks, int device);

/// Returns where part `part` of `num_parts` begins in a layer's flat parameters; part num_parts is their end.
inline std::int64_t part_begin(std::int64_t num_weights, std::int64_t part, std::int64_t num_parts) {
  return num_weights * part / num_parts;
}

}  // namespace frostpipe
