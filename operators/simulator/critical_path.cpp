#include "operators/simulator/critical_path.h"

#include <algorithm>

namespace frostpipe {
namespace {

/// A task or a transfer, or nothing: the beginning of the iteration.
struct Step {
  bool is_task = true;
  int index = -1;
};

bool is_statistics(OperatorKind kind) {
  return kind == OperatorKind::statistics || kind == OperatorKind::statistics_gradient;
}

class Walk {
 public:
  Walk(const OperatorTasks& tasks, const OperatorRun& run) : tasks_(tasks), run_(run) {
    inputs_.resize(tasks.tasks.size());
    before_.resize(tasks.tasks.size(), -1);
    for (std::size_t task = 0; task < tasks.tasks.size(); ++task)
      for (const int reader : tasks.local_readers[static_cast<int>(task)])
        inputs_[reader].push_back({.is_task = true, .index = static_cast<int>(task)});
    for (std::size_t transfer = 0; transfer < tasks.transfers.size(); ++transfer)
      for (const int reader : tasks.transfer_readers[static_cast<int>(transfer)])
        inputs_[reader].push_back({.is_task = false, .index = static_cast<int>(transfer)});
    for (const auto& order : run.order)
      for (std::size_t i = 1; i < order.size(); ++i) before_[order[i]] = order[i - 1];
  }

  Step last() const {
    const auto ends = [&](const std::vector<Nanoseconds>& times) {
      const auto found = std::ranges::find(times, run_.makespan_ns);
      return found == times.end() ? -1 : static_cast<int>(found - times.begin());
    };
    const int task = ends(run_.task_end_ns);
    return task >= 0 ? Step{.is_task = true, .index = task}
                     : Step{.is_task = false, .index = ends(run_.transfer_end_ns)};
  }

  /// Returns what a task waited for last: an input, or else the task before it on its device.
  Step before(int task) const {
    const Nanoseconds begin = run_.task_begin_ns[task];
    if (begin == 0) return {};
    for (const Step& input : inputs_[task])
      if ((input.is_task ? run_.task_end_ns : run_.transfer_end_ns)[input.index] == begin) return input;
    return {.is_task = true, .index = before_[task]};
  }

 private:
  const OperatorTasks& tasks_;
  const OperatorRun& run_;
  std::vector<std::vector<Step>> inputs_;
  std::vector<int> before_;  // by task: the task before it on its device
};

}  // namespace

CriticalPath critical_path(const OperatorGraph& graph, const OperatorTasks& tasks, const OperatorRun& run) {
  const Walk walk(tasks, run);
  CriticalPath path;
  Step step = walk.last();
  while (step.index >= 0) {
    if (step.is_task) {
      const OperatorTask& task = tasks.tasks[step.index];
      path.compute_ns[graph.operators[task.op].kind] += task.duration_ns;
      ++path.num_tasks;
      step = walk.before(step.index);
      continue;
    }
    const int task = tasks.transfers[step.index].task;
    const bool of_statistics = is_statistics(graph.operators[tasks.tasks[task].op].kind);
    (of_statistics ? path.statistics_ns : path.transfer_ns) +=
        run.transfer_end_ns[step.index] - run.transfer_begin_ns[step.index];
    path.waiting_for_link_ns += run.transfer_begin_ns[step.index] - run.task_end_ns[task];
    ++path.num_transfers;
    step = {.is_task = true, .index = task};
  }
  return path;
}

}  // namespace frostpipe
