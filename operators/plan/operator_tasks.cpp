#include "operators/plan/operator_tasks.h"

#include <algorithm>
#include <utility>

namespace frostpipe {
namespace {

using Pairs = std::vector<std::pair<int, int>>;

IndexLists lists_of(const Pairs& pairs, std::size_t num_lists) {
  IndexLists lists{.begins = std::vector<int>(num_lists + 1), .values = std::vector<int>(pairs.size())};
  for (const auto& [list, value] : pairs) ++lists.begins[list + 1];
  for (std::size_t i = 0; i < num_lists; ++i) lists.begins[i + 1] += lists.begins[i];
  std::vector<int> next = lists.begins;
  for (const auto& [list, value] : pairs) lists.values[next[list]++] = value;
  return lists;
}

class Lowering {
 public:
  Lowering(const OperatorGraph& graph, const OperatorMachine& machine, const OperatorPlacement& placement)
      : graph_(graph), machine_(machine), placement_(placement), num_devices_(machine.devices.size()) {}

  OperatorTasks lower() {
    add_tasks();
    transfer_at_.assign(result_.tasks.size() * num_devices_, -1);
    for (const auto& edge : graph_.edges) add_edge(edge);
    for (std::size_t op = 0; op < graph_.operators.size(); ++op)
      if (graph_.operators[op].kind == OperatorKind::update) send_new_weights(static_cast<int>(op));
    finish();
    return std::move(result_);
  }

 private:
  void add_tasks() {
    parts_.resize(graph_.operators.size());
    const auto holders = holders_of(graph_, placement_);
    for (int op = 0; op < static_cast<int>(parts_.size()); ++op) {
      const int num_parts = static_cast<int>(holders[op].size());
      for (int part = 0; part < num_parts; ++part) {
        if (graph_.operators[op].kind == OperatorKind::update)
          add_part(op, {.device = holders[op][part], .begin = part, .end = part + 1}, 1.0 / num_parts);
        else
          add_part(op, {.device = holders[op][part], .begin = 0, .end = 1}, 1);
      }
      for (const auto& range : placement_[op])
        add_part(op, range, static_cast<double>(range.end - range.begin) / graph_.batch);
    }
  }

  void add_part(int op, const OperatorRange& range, double share) {
    const auto& device_class = machine_.devices[range.device].device_class;
    parts_[op].push_back(static_cast<int>(result_.tasks.size()));
    result_.tasks.push_back({.op = op,
                             .device = range.device,
                             .begin = range.begin,
                             .end = range.end,
                             .duration_ns = duration_ns(graph_.operators[op], device_class, share)});
  }

  void add_edge(const OperatorEdge& edge) {
    const Bytes num_readers = static_cast<Bytes>(parts_[edge.to].size());
    for (const int to : parts_[edge.to])
      for (const int from : parts_[edge.from]) {
        const OperatorTask &reader = result_.tasks[to], &part = result_.tasks[from];
        if (edge.kind == OperatorEdgeKind::samples) {
          const int begin = std::max(part.begin, reader.begin), end = std::min(part.end, reader.end);
          if (begin < end) add_reader(from, to, {.begin = begin, .end = end});
        } else if (edge.kind == OperatorEdgeKind::statistics) {
          add_reader(from, to, {.bytes = graph_.operators[edge.from].output_bytes});
        } else {
          add_reader(from, to, {.bytes = graph_.operators[edge.from].weight_bytes / num_readers});
        }
      }
  }

  /// Records that task `to` reads `what` of task `from`. A device gets one transfer of a task's output: the samples
  /// from the first to the last that any task of the device reads.
  void add_reader(int from, int to, const TaskTransfer& what) {
    const int device = result_.tasks[to].device;
    if (result_.tasks[from].device == device) {
      local_.emplace_back(from, to);
      return;
    }
    int& at = transfer_at_[from * num_devices_ + device];
    if (at < 0) {
      at = add_transfer(from, device, what);
    } else if (what.begin < what.end) {
      TaskTransfer& transfer = result_.transfers[at];
      transfer.begin = std::min(transfer.begin, what.begin);
      transfer.end = std::max(transfer.end, what.end);
    }
    remote_.emplace_back(at, to);
  }

  int add_transfer(int task, int to_device, TaskTransfer transfer) {
    transfer.task = task;
    transfer.to_device = to_device;
    of_task_.emplace_back(task, static_cast<int>(result_.transfers.size()));
    result_.transfers.push_back(transfer);
    return static_cast<int>(result_.transfers.size()) - 1;
  }

  void send_new_weights(int update) {
    const auto& parts = parts_[update];
    const Bytes bytes = graph_.operators[update].weight_bytes / std::max<Bytes>(1, static_cast<Bytes>(parts.size()));
    for (const int part : parts)
      for (const int other : parts)
        if (part != other) add_transfer(part, result_.tasks[other].device, {.bytes = bytes});
  }

  void finish() {
    for (TaskTransfer& transfer : result_.transfers)
      transfer.bytes += graph_.operators[result_.tasks[transfer.task].op].output_bytes *
                        (transfer.end - transfer.begin) / graph_.batch;
    result_.num_inputs.assign(result_.tasks.size(), 0);
    for (const auto* readers : {&local_, &remote_})
      for (const auto& [from, task] : *readers) ++result_.num_inputs[task];
    result_.local_readers = lists_of(local_, result_.tasks.size());
    result_.transfers_of = lists_of(of_task_, result_.tasks.size());
    result_.transfer_readers = lists_of(remote_, result_.transfers.size());
    if (machine_.message_bytes_per_cpu_second > 0) add_work_of_messages();
  }

  void add_work_of_messages() {
    for (std::size_t i = 0; i < result_.transfers.size(); ++i) {
      const TaskTransfer& transfer = result_.transfers[i];
      const Nanoseconds work_ns = message_work_ns(machine_, transfer.bytes);
      result_.tasks[transfer.task].duration_ns += work_ns;
      result_.tasks[receiving_task(i)].duration_ns += work_ns;
    }
  }

  /// Returns the task whose time includes that of receiving the transfer: its first reader or, for new weights, the
  /// receiver's part of the update.
  int receiving_task(std::size_t transfer) const {
    const auto readers = result_.transfer_readers[static_cast<int>(transfer)];
    if (!readers.empty()) return readers.front();
    const TaskTransfer& one = result_.transfers[transfer];
    const auto& parts = parts_[result_.tasks[one.task].op];
    return *std::ranges::find(parts, one.to_device, [&](int task) { return result_.tasks[task].device; });
  }

  const OperatorGraph& graph_;
  const OperatorMachine& machine_;
  const OperatorPlacement& placement_;
  std::size_t num_devices_;
  OperatorTasks result_;
  std::vector<std::vector<int>> parts_;  // by operator: its tasks
  std::vector<int> transfer_at_;         // [task * devices + device]: its transfer to the device, or -1
  Pairs local_, remote_, of_task_;
};

}  // namespace

OperatorTasks tasks_of(const OperatorGraph& graph, const OperatorMachine& machine, const OperatorPlacement& placement) {
  return Lowering(graph, machine, placement).lower();
}

Bytes output_bytes(const OperatorGraph& graph, const OperatorTask& task) {
  const Operator& one = graph.operators[task.op];
  switch (one.kind) {
    case OperatorKind::update:
    case OperatorKind::norm_update:
      return 0;
    case OperatorKind::weight_gradient:
      return one.weight_bytes;
    case OperatorKind::statistics:
    case OperatorKind::statistics_gradient:
      return one.output_bytes;
    default:
      return one.output_bytes * (task.end - task.begin) / graph.batch;
  }
}

}  // namespace frostpipe
