#pragma once
#include <cstdint>
#include <vector>

#include "operators/plan/operator_tasks.h"

namespace frostpipe {

/// A device's part of a plan: its tasks in order, and what they wait for.
struct DeviceTasks {
  std::vector<int> order;                       // its tasks; a place is an index into this list
  std::vector<std::vector<int>> transfers_for;  // by place: messages that it reads and no earlier place has waited for
  std::vector<std::vector<int>> reads;          // by place: tasks, including other devices', whose outputs it reads
  std::vector<int> new_weights;                 // transfers to this device that no task reads: updated weights
};

DeviceTasks tasks_of_device(const OperatorPlan& plan, const OperatorTasks& tasks, int device);

/// Returns where part `part` of `num_parts` begins in a layer's flat parameters; part num_parts is their end.
inline std::int64_t part_begin(std::int64_t num_weights, std::int64_t part, std::int64_t num_parts) {
  return num_weights * part / num_parts;
}

}  // namespace frostpipe
