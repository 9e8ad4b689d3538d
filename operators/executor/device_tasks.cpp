#include "operators/executor/device_tasks.h"

#include <algorithm>

namespace frostpipe {

DeviceTasks tasks_of_device(const OperatorPlan& plan, const OperatorTasks& tasks, int device) {
  DeviceTasks own;
  std::vector<int> place_of(tasks.tasks.size(), -1), task_of(plan.graph.operators.size(), -1);
  for (std::size_t task = 0; task < tasks.tasks.size(); ++task)
    if (tasks.tasks[task].device == device) task_of[tasks.tasks[task].op] = static_cast<int>(task);
  for (const int op : plan.order[device]) {
    place_of[task_of[op]] = static_cast<int>(own.order.size());
    own.order.push_back(task_of[op]);
  }
  own.transfers_for.resize(own.order.size());
  own.reads.resize(own.order.size());
  for (const int task : own.order)
    for (const int reader : tasks.local_readers[task]) own.reads[place_of[reader]].push_back(task);
  for (int transfer = 0; transfer < static_cast<int>(tasks.transfers.size()); ++transfer) {
    if (tasks.transfers[transfer].to_device != device) continue;
    int first = static_cast<int>(own.order.size());
    for (const int reader : tasks.transfer_readers[transfer]) {
      first = std::min(first, place_of[reader]);
      own.reads[place_of[reader]].push_back(tasks.transfers[transfer].task);
    }
    (first < static_cast<int>(own.order.size()) ? own.transfers_for[first] : own.new_weights).push_back(transfer);
  }
  return own;
}

}  // namespace frostpipe
