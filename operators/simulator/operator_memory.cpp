#include "operators/simulator/operator_memory.h"

#include <algorithm>
#include <set>

namespace frostpipe {
namespace {

/// Records allocations and frees over time.
class MemoryOverTime {
 public:
  void hold(Bytes bytes, Nanoseconds from, Nanoseconds to) {
    if (bytes == 0 || from >= to) return;
    changes_.emplace_back(from, bytes);
    changes_.emplace_back(to, -bytes);
  }
  /// Returns the peak. Memory that is freed at some time is available to an allocation at the same time.
  Bytes peak() {
    std::ranges::sort(changes_, [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second < b.second;
    });
    Bytes now = 0, most = 0;
    for (const auto& [time, change] : changes_) most = std::max(most, now += change);
    return most;
  }

 private:
  std::vector<std::pair<Nanoseconds, Bytes>> changes_;
};

class MemoryOfRun {
 public:
  MemoryOfRun(const OperatorPlan& plan, const OperatorTasks& tasks, const OperatorRun& run)
      : plan_(plan),
        tasks_(tasks),
        run_(run),
        timelines_(plan.machine.devices.size()),
        place_of_(tasks.tasks.size()),
        num_parts_(plan.graph.operators.size()) {
    for (const OperatorTask& task : tasks.tasks) ++num_parts_[task.op];
    for (const auto& order : run.order)
      for (std::size_t place = 0; place < order.size(); ++place) place_of_[order[place]] = static_cast<int>(place);
  }

  std::vector<Bytes> peaks() {
    add_weights();
    for (int task = 0; task < static_cast<int>(tasks_.tasks.size()); ++task) {
      add_output(task);
      add_own(task);
    }
    for (int transfer = 0; transfer < static_cast<int>(tasks_.transfers.size()); ++transfer) add_received(transfer);
    std::vector<Bytes> peaks;
    for (MemoryOverTime& timeline : timelines_) peaks.push_back(timeline.peak());
    return peaks;
  }

 private:
  const Operator& operator_of(int task) const { return plan_.graph.operators[tasks_.tasks[task].op]; }

  void add_weights() {
    std::set<std::pair<int, int>> held;  // (layer, device)
    last_use_.assign(timelines_.size(), std::vector<Nanoseconds>(num_layers(plan_.graph)));
    for (std::size_t task = 0; task < tasks_.tasks.size(); ++task) {
      const Operator& op = operator_of(static_cast<int>(task));
      const int device = tasks_.tasks[task].device;
      if (!reads_weights(op.kind)) continue;
      last_use_[device][op.layer] = std::max(last_use_[device][op.layer], run_.task_end_ns[task]);
      if (held.emplace(op.layer, device).second) timelines_[device].hold(op.weight_bytes, 0, run_.makespan_ns);
    }
    const auto holders = holders_of(plan_.graph, plan_.placement);
    for (std::size_t op = 0; op < holders.size(); ++op)
      for (const int device : holders[op]) timelines_[device].hold(updated_bytes(op), 0, run_.makespan_ns);
  }

  /// Returns the bytes of the weights that an update changes on one device, which is also the size of their momentum.
  /// For a norm_update, returns the bytes of the whole batch norm, which every device that applies it holds: scale and
  /// shift, their momentum, and running statistics.
  Bytes updated_bytes(std::size_t op) const {
    const Operator& one = plan_.graph.operators[op];
    return one.kind == OperatorKind::update ? one.weight_bytes / num_parts_[op] : 3 * one.weight_bytes;
  }

  void add_output(int task) {
    const OperatorTask& one = tasks_.tasks[task];
    const Operator& op = operator_of(task);
    if (op.kind == OperatorKind::norm_update) return;
    if (op.kind == OperatorKind::update) {
      if (run_.task_end_ns[task] < last_use_[one.device][op.layer])
        timelines_[one.device].hold(updated_bytes(one.op), run_.task_begin_ns[task], run_.makespan_ns);
      return;
    }
    Nanoseconds end_ns = run_.task_end_ns[task];
    for (const int reader : tasks_.local_readers[task]) end_ns = std::max(end_ns, run_.task_end_ns[reader]);
    for (const int transfer : tasks_.transfers_of[task])
      end_ns = std::max({end_ns, run_.transfer_end_ns[transfer], asked_for_ns(transfer)});
    timelines_[one.device].hold(output_bytes(plan_.graph, one), run_.task_begin_ns[task], end_ns);
  }

  /// Adds the working memory that only the task itself needs.
  void add_own(int task) {
    const OperatorTask& one = tasks_.tasks[task];
    const Operator& op = operator_of(task);
    const int whole = is_split_by_samples(op.kind)      ? plan_.graph.batch
                      : op.kind == OperatorKind::update ? num_parts_[one.op]
                                                        : 1;
    const double share = static_cast<double>(one.end - one.begin) / whole;
    timelines_[one.device].hold(own_bytes(op, plan_.machine.devices[one.device].device_class, share),
                                run_.task_begin_ns[task], run_.task_end_ns[task]);
  }

  /// Returns the time at which the receiver allocates memory for the transfer.
  Nanoseconds asked_for_ns(int transfer) const {
    const auto readers = tasks_.transfer_readers[transfer];
    if (readers.empty()) return run_.makespan_ns;  // new weights overwrite the old ones, without memory of their own
    int first = place_of_[readers.front()];
    for (const int reader : readers) first = std::min(first, place_of_[reader]);
    return run_.task_begin_ns[run_.order[tasks_.transfers[transfer].to_device][std::max(0, first - kTasksAhead + 1)]];
  }

  void add_received(int transfer) {
    const TaskTransfer& one = tasks_.transfers[transfer];
    Nanoseconds end_ns = 0;
    for (const int reader : tasks_.transfer_readers[transfer]) end_ns = std::max(end_ns, run_.task_end_ns[reader]);
    timelines_[one.to_device].hold(one.bytes, asked_for_ns(transfer), end_ns);
  }

  const OperatorPlan& plan_;
  const OperatorTasks& tasks_;
  const OperatorRun& run_;
  std::vector<MemoryOverTime> timelines_;
  std::vector<int> place_of_;                       // by task, in its device's order
  std::vector<int> num_parts_;                      // by operator: number of its tasks
  std::vector<std::vector<Nanoseconds>> last_use_;  // [device][layer]: end of the last task that reads the weights
};

}  // namespace

std::vector<Bytes> peak_memory_of(const OperatorPlan& plan, const OperatorTasks& tasks, const OperatorRun& run) {
  return MemoryOfRun(plan, tasks, run).peaks();
}

}  // namespace frostpipe
