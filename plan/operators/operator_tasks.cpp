#include "plan/operators/operator_tasks.h"

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

/// A task with the samples that it computes.
struct Part {
  int task = 0, device = 0, begin = 0, end = 0;
};

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
    std::vector<std::vector<int>> holders(num_layers(graph_));
    for (std::size_t op = 0; op < parts_.size(); ++op) {
      const Operator& one = graph_.operators[op];
      if (one.kind == OperatorKind::forward || one.kind == OperatorKind::input_gradient)
        for (const auto& range : placement_[op]) holders[one.layer].push_back(range.device);
    }
    for (auto& devices : holders) {
      std::ranges::sort(devices);
      devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    }
    for (std::size_t op = 0; op < parts_.size(); ++op) {
      const Operator& one = graph_.operators[op];
      if (one.kind == OperatorKind::update) {
        const auto& devices = holders[one.layer];
        for (const int device : devices)
          add_part(static_cast<int>(op), {.device = device}, 1.0 / static_cast<double>(devices.size()));
      }
      for (const auto& range : placement_[op])
        add_part(static_cast<int>(op), range, static_cast<double>(range.end - range.begin) / graph_.batch);
    }
  }

  void add_part(int op, const OperatorRange& range, double share) {
    const auto& device_class = machine_.devices[range.device].device_class;
    const int task = static_cast<int>(result_.tasks.size());
    result_.tasks.push_back(
        {.op = op, .device = range.device, .duration_ns = duration_ns(graph_.operators[op], device_class, share)});
    parts_[op].push_back({.task = task, .device = range.device, .begin = range.begin, .end = range.end});
  }

  void add_edge(const OperatorEdge& edge) {
    const Operator& from = graph_.operators[edge.from];
    for (const Part& reader : parts_[edge.to])
      for (const Part& part : parts_[edge.from]) {
        if (edge.kind == OperatorEdgeKind::samples) {
          const int begin = std::max(part.begin, reader.begin), end = std::min(part.end, reader.end);
          if (begin < end) add_reader(part, reader, begin, end);
        } else if (edge.kind == OperatorEdgeKind::statistics) {
          add_reader(part, reader, 0, graph_.batch);
        } else {
          add_reader(part, reader, 0, 0);
          if (part.device != reader.device)
            result_.transfers[transfer_at_[part.task * num_devices_ + reader.device]].bytes =
                from.weight_bytes / static_cast<Bytes>(parts_[edge.to].size());
        }
      }
  }

  /// What it reads of an operator's samples: from the first to the last that anything on its device reads.
  void add_reader(const Part& part, const Part& reader, int begin, int end) {
    if (part.device == reader.device) {
      local_.emplace_back(part.task, reader.task);
      return;
    }
    int& at = transfer_at_[part.task * num_devices_ + reader.device];
    if (at < 0) {
      at = add_transfer(part.task, reader.device);
      samples_.emplace_back(begin, end);
    } else {
      samples_[at] = {std::min(samples_[at].first, begin), std::max(samples_[at].second, end)};
    }
    remote_.emplace_back(at, reader.task);
  }

  int add_transfer(int task, int to_device) {
    of_task_.emplace_back(task, static_cast<int>(result_.transfers.size()));
    result_.transfers.push_back({.task = task, .to_device = to_device});
    return static_cast<int>(result_.transfers.size()) - 1;
  }

  void send_new_weights(int update) {
    const auto& parts = parts_[update];
    for (const Part& part : parts)
      for (const Part& other : parts) {
        if (part.device == other.device) continue;
        const int transfer = add_transfer(part.task, other.device);
        result_.transfers[transfer].bytes = graph_.operators[update].weight_bytes / static_cast<Bytes>(parts.size());
        samples_.emplace_back(0, 0);
      }
  }

  void finish() {
    for (std::size_t i = 0; i < result_.transfers.size(); ++i) {
      TaskTransfer& transfer = result_.transfers[i];
      const Operator& from = graph_.operators[result_.tasks[transfer.task].op];
      transfer.bytes += from.output_bytes * (samples_[i].second - samples_[i].first) / graph_.batch;
    }
    result_.num_inputs.assign(result_.tasks.size(), 0);
    for (const auto* readers : {&local_, &remote_})
      for (const auto& [from, task] : *readers) ++result_.num_inputs[task];
    result_.local_readers = lists_of(local_, result_.tasks.size());
    result_.transfers_of = lists_of(of_task_, result_.tasks.size());
    result_.transfer_readers = lists_of(remote_, result_.transfers.size());
  }

  const OperatorGraph& graph_;
  const OperatorMachine& machine_;
  const OperatorPlacement& placement_;
  std::size_t num_devices_;
  OperatorTasks result_;
  std::vector<std::vector<Part>> parts_;  // per operator
  std::vector<int> transfer_at_;          // [task * devices + device]: its transfer to the device, or -1
  Pairs local_, remote_, of_task_, samples_;
};

}  // namespace

OperatorTasks tasks_of(const OperatorGraph& graph, const OperatorMachine& machine, const OperatorPlacement& placement) {
  return Lowering(graph, machine, placement).lower();
}

}  // namespace frostpipe
