#include "tests/operators/planner/order_search.h"

#include <algorithm>
#include <limits>

namespace frostpipe {
namespace {

constexpr int kNoTask = -1;

struct QueuedEvent {
  Nanoseconds at_ns = 0;
  int sequence = 0;
  bool is_task = true;
  int index = 0;
  auto operator<=>(const QueuedEvent&) const = default;
};

/// The state at some point of a run.
struct RunState {
  Nanoseconds now_ns = 0;
  int num_events = 0, num_ended = 0;
  std::vector<QueuedEvent> events;
  std::vector<int> missing;              // by task: missing inputs
  std::vector<char> chosen;              // by task
  std::vector<int> next;                 // by device: the task that it runs or waits for
  std::vector<char> busy;                // by device
  std::vector<Nanoseconds> free_ns;      // by device: when the last task that began ends
  std::vector<Nanoseconds> left_ns;      // by device: the time of unchosen tasks
  std::vector<Nanoseconds> way_free_ns;  // [from * devices + to]
  std::vector<Nanoseconds> out_ns, in_ns;
};

class OrderSearch {
 public:
  OrderSearch(const OperatorTasks& tasks, const OperatorMachine& machine, Nanoseconds below_ns)
      : tasks_(tasks),
        machine_(machine),
        num_devices_(static_cast<int>(machine.devices.size())),
        ways_(longest_ways(tasks, machine)),
        best_ns_(below_ns) {}

  Nanoseconds best_ns() {
    const std::size_t count = num_devices_;
    RunState state{.missing = tasks_.num_inputs,
                   .chosen = std::vector<char>(tasks_.tasks.size()),
                   .next = std::vector<int>(count, kNoTask),
                   .busy = std::vector<char>(count),
                   .free_ns = std::vector<Nanoseconds>(count),
                   .left_ns = std::vector<Nanoseconds>(count),
                   .way_free_ns = std::vector<Nanoseconds>(count * count),
                   .out_ns = std::vector<Nanoseconds>(count),
                   .in_ns = std::vector<Nanoseconds>(count)};
    for (const auto& task : tasks_.tasks) state.left_ns[task.device] += task.duration_ns;
    if (least_ns() < best_ns_) choose_first(0, state);
    return best_ns_;
  }

 private:
  /// A bound for any order: the longest path, and a device's tasks with the work that must come before and after them.
  Nanoseconds least_ns() const {
    Nanoseconds max_ns = 0;
    for (int device = 0; device < num_devices_; ++device) {
      Nanoseconds before_ns = std::numeric_limits<Nanoseconds>::max(), after_ns = before_ns, work_ns = 0;
      for (std::size_t task = 0; task < tasks_.tasks.size(); ++task) {
        const auto& [op, on, begin, end, duration_ns] = tasks_.tasks[task];
        if (on != device) continue;
        max_ns = std::max(max_ns, ways_.until_end[task] + ways_.from_end[task]);
        before_ns = std::min(before_ns, ways_.until_end[task] - duration_ns);
        after_ns = std::min(after_ns, ways_.from_end[task]);
        work_ns += duration_ns;
      }
      if (work_ns > 0) max_ns = std::max(max_ns, before_ns + work_ns + after_ns);
    }
    return max_ns;
  }

  /// Chooses the first tasks of the devices from `device` on, then everything that follows.
  void choose_first(int device, const RunState& state) {
    if (device == num_devices_) return go_on(state);
    choose(device, state, [&](const RunState& next) { choose_first(device + 1, next); });
  }

  /// Tries every next task of a free device, unless it cannot be better than the best.
  void choose(int device, const RunState& state, const auto& then) {
    bool has_left = false;
    for (int task = 0; task < static_cast<int>(tasks_.tasks.size()); ++task) {
      if (state.chosen[task] || tasks_.tasks[task].device != device) continue;
      has_left = true;
      if (waits_for_own(task, state)) continue;
      RunState next = state;
      next.chosen[task] = 1;
      next.next[device] = task;
      next.left_ns[device] -= tasks_.tasks[task].duration_ns;
      begin_if_ready(device, next);
      if (can_be_better(next)) then(next);
    }
    if (!has_left) then(state);
  }

  /// Returns whether the task reads an unchosen task of its own device, so that it would wait for ever.
  bool waits_for_own(int task, const RunState& state) const {
    for (int other = 0; other < task; ++other)
      if (!state.chosen[other] && std::ranges::count(tasks_.local_readers[other], task) > 0) return true;
    return false;
  }

  void begin_if_ready(int device, RunState& state) const {
    const int task = state.next[device];
    if (task == kNoTask || state.busy[device] || state.missing[task] > 0) return;
    state.free_ns[device] = state.now_ns + tasks_.tasks[task].duration_ns;
    state.busy[device] = 1;
    add_event(state, state.free_ns[device], true, task);
  }

  static void add_event(RunState& state, Nanoseconds at_ns, bool is_task, int index) {
    state.events.push_back({.at_ns = at_ns, .sequence = state.num_events++, .is_task = is_task, .index = index});
  }

  bool can_be_better(const RunState& state) const {
    for (int device = 0; device < num_devices_; ++device) {
      Nanoseconds end_ns = std::max(state.now_ns, state.free_ns[device]) + state.left_ns[device];
      if (const int task = state.next[device]; task != kNoTask && !state.busy[device]) {
        const Nanoseconds duration_ns = tasks_.tasks[task].duration_ns;
        const Nanoseconds begin_ns = std::max(state.now_ns, ways_.until_end[task] - duration_ns);
        if (begin_ns + duration_ns + ways_.from_end[task] >= best_ns_) return false;
        end_ns = begin_ns + duration_ns + state.left_ns[device];
      }
      if (end_ns + least_way_after(device, state) >= best_ns_) return false;
    }
    return std::ranges::all_of(state.events, [&](const QueuedEvent& event) {
      return event.at_ns + (event.is_task ? ways_.from_end[event.index] : way_after_transfer(event.index)) < best_ns_;
    });
  }

  /// The time from the end of the device's last task on.
  Nanoseconds least_way_after(int device, const RunState& state) const {
    Nanoseconds least_ns = std::numeric_limits<Nanoseconds>::max();
    for (std::size_t task = 0; task < tasks_.tasks.size(); ++task)
      if (!state.chosen[task] && tasks_.tasks[task].device == device)
        least_ns = std::min(least_ns, ways_.from_end[task]);
    return least_ns == std::numeric_limits<Nanoseconds>::max() ? 0 : least_ns;
  }

  Nanoseconds way_after_transfer(int transfer) const {
    Nanoseconds max_ns = 0;
    for (const int reader : tasks_.transfer_readers[transfer])
      max_ns = std::max(max_ns, tasks_.tasks[reader].duration_ns + ways_.from_end[reader]);
    return max_ns;
  }

  void go_on(RunState state) {
    if (state.events.empty()) {  // otherwise devices wait for each other
      if (state.num_ended == static_cast<int>(tasks_.tasks.size())) best_ns_ = std::min(best_ns_, state.now_ns);
      return;
    }
    const auto first = std::ranges::min_element(state.events);
    const QueuedEvent event = *first;
    state.events.erase(first);
    state.now_ns = event.at_ns;
    const int device = event.is_task ? end_task(event.index, state) : arrive(event.index, state);
    begin_if_ready(device, state);
    if (state.next[device] != kNoTask) return go_on(std::move(state));
    choose(device, state, [&](const RunState& next) { go_on(next); });
  }

  int end_task(int task, RunState& state) const {
    const int device = tasks_.tasks[task].device;
    ++state.num_ended;
    state.next[device] = kNoTask;
    state.busy[device] = 0;
    for (const int transfer : tasks_.transfers_of[task]) {
      const int to = tasks_.transfers[transfer].to_device;
      Nanoseconds& way_ns = state.way_free_ns[device * num_devices_ + to];
      Nanoseconds begin_ns = std::max(state.now_ns, way_ns);
      if (machine_.shared_ports) begin_ns = std::max({begin_ns, state.out_ns[device], state.in_ns[to]});
      way_ns = begin_ns + message_occupancy_ns(machine_, device, to, tasks_.transfers[transfer].bytes);
      state.out_ns[device] = state.in_ns[to] = way_ns;
      add_event(state, way_ns + link_between(machine_, device, to).latency_ns, false, transfer);
    }
    for (const int reader : tasks_.local_readers[task]) --state.missing[reader];
    return device;
  }

  int arrive(int transfer, RunState& state) const {
    for (const int reader : tasks_.transfer_readers[transfer]) --state.missing[reader];
    return tasks_.transfers[transfer].to_device;
  }

  const OperatorTasks& tasks_;
  const OperatorMachine& machine_;
  int num_devices_;
  LongestWays ways_;
  Nanoseconds best_ns_;
};

}  // namespace

LongestWays longest_ways(const OperatorTasks& tasks, const OperatorMachine& machine) {
  const int count = static_cast<int>(tasks.tasks.size());
  LongestWays ways{.until_end = std::vector<Nanoseconds>(count), .from_end = std::vector<Nanoseconds>(count)};
  const auto message_ns = [&](int transfer) {
    const TaskTransfer& one = tasks.transfers[transfer];
    const int from = tasks.tasks[one.task].device;
    return link_between(machine, from, one.to_device).latency_ns +
           message_occupancy_ns(machine, from, one.to_device, one.bytes);
  };
  const auto raise = [](Nanoseconds& max_ns, Nanoseconds time_ns) { max_ns = std::max(max_ns, time_ns); };
  for (int task = 0; task < count; ++task) {
    const Nanoseconds end_ns = ways.until_end[task] += tasks.tasks[task].duration_ns;
    for (const int reader : tasks.local_readers[task]) raise(ways.until_end[reader], end_ns);
    for (const int transfer : tasks.transfers_of[task])
      for (const int reader : tasks.transfer_readers[transfer])
        raise(ways.until_end[reader], end_ns + message_ns(transfer));
  }
  const auto from_begin = [&](int task) { return tasks.tasks[task].duration_ns + ways.from_end[task]; };
  for (int task = count - 1; task >= 0; --task) {
    for (const int reader : tasks.local_readers[task]) raise(ways.from_end[task], from_begin(reader));
    for (const int transfer : tasks.transfers_of[task]) {
      raise(ways.from_end[task], message_ns(transfer));
      for (const int reader : tasks.transfer_readers[transfer])
        raise(ways.from_end[task], message_ns(transfer) + from_begin(reader));
    }
  }
  return ways;
}

Nanoseconds best_order_ns(const OperatorTasks& tasks, const OperatorMachine& machine, Nanoseconds below_ns) {
  return OrderSearch(tasks, machine, below_ns).best_ns();
}

}  // namespace frostpipe
