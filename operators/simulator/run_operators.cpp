#include "operators/simulator/run_operators.h"

#include <algorithm>
#include <map>
#include <queue>

#include "base/error.h"
#include "base/event_queue.h"
#include "base/link_queue.h"

namespace frostpipe {
namespace {

/// The end of a task, or the arrival of a transfer.
struct Event {
  bool is_task = true;
  int index = 0;
};

/// (place, task) of the tasks that can begin, the lowest place on top.
using ReadyTasks = std::priority_queue<std::pair<int, int>, std::vector<std::pair<int, int>>, std::greater<>>;

class Engine {
 public:
  /// `places` has the place of each task; of the ready tasks of a device, the one with the lowest place begins. If
  /// `strict`, no task begins before all tasks of its device with lower places have begun; the places of a device must
  /// then be 0, 1, ....
  Engine(const OperatorTasks& tasks, const OperatorMachine& machine, const std::vector<int>& places, bool strict)
      : tasks_(tasks), machine_(machine), places_(places), strict_(strict), missing_(tasks.num_inputs) {
    const std::size_t num_devices = machine.devices.size();
    ready_.resize(num_devices);
    busy_.resize(num_devices);
    run_.order.resize(num_devices);
    ways_.resize(num_devices * num_devices);
    out_ports_.resize(num_devices);
    in_ports_.resize(num_devices);
    run_.task_begin_ns.resize(tasks.tasks.size());
    run_.task_end_ns.resize(tasks.tasks.size());
    run_.transfer_begin_ns.resize(tasks.transfers.size());
    run_.transfer_end_ns.resize(tasks.transfers.size());
  }

  /// Returns nothing if some tasks could never begin.
  std::optional<OperatorRun> run() {
    for (std::size_t task = 0; task < tasks_.tasks.size(); ++task)
      if (missing_[task] == 0) make_ready(static_cast<int>(task));
    for (std::size_t device = 0; device < busy_.size(); ++device) start_next(static_cast<int>(device));
    events_.run([this](const Event& event) { event.is_task ? end_task(event.index) : arrive(event.index); });
    if (num_begun_ < tasks_.tasks.size()) return std::nullopt;
    run_.makespan_ns = events_.now();
    return std::move(run_);
  }

 private:
  void make_ready(int task) { ready_[tasks_.tasks[task].device].emplace(places_[task], task); }

  void start_next(int device) {
    auto& ready = ready_[device];
    if (busy_[device] || ready.empty()) return;
    if (strict_ && ready.top().first != static_cast<int>(run_.order[device].size())) return;
    const int task = ready.top().second;
    ready.pop();
    busy_[device] = true;
    ++num_begun_;
    run_.order[device].push_back(task);
    run_.task_begin_ns[task] = events_.now();
    run_.task_end_ns[task] = events_.now() + tasks_.tasks[task].duration_ns;
    events_.schedule(run_.task_end_ns[task], {.is_task = true, .index = task});
  }

  void end_task(int task) {
    const int device = tasks_.tasks[task].device;
    busy_[device] = false;
    for (const int transfer : tasks_.transfers_of[task]) issue(transfer, device);
    for (const int reader : tasks_.local_readers[task])
      if (--missing_[reader] == 0) make_ready(reader);
    start_next(device);
  }

  void issue(int index, int from) {
    const TaskTransfer& transfer = tasks_.transfers[index];
    const int to = transfer.to_device;
    const Nanoseconds occupied_ns = message_occupancy_ns(machine_, from, to, transfer.bytes);
    LinkQueue& way = ways_[from * busy_.size() + to];
    Nanoseconds begin = std::max(events_.now(), way.free_at());
    if (machine_.shared_ports) {
      begin = std::max({begin, out_ports_[from].free_at(), in_ports_[to].free_at()});
      out_ports_[from].carry(begin, occupied_ns);
      in_ports_[to].carry(begin, occupied_ns);
    }
    way.carry(begin, occupied_ns);
    run_.transfer_begin_ns[index] = begin;
    run_.transfer_end_ns[index] = begin + occupied_ns + link_between(machine_, from, to).latency_ns;
    events_.schedule(run_.transfer_end_ns[index], {.is_task = false, .index = index});
  }

  void arrive(int transfer) {
    for (const int reader : tasks_.transfer_readers[transfer])
      if (--missing_[reader] == 0) make_ready(reader);
    start_next(tasks_.transfers[transfer].to_device);
  }

  const OperatorTasks& tasks_;
  const OperatorMachine& machine_;
  const std::vector<int>& places_;
  bool strict_;
  std::vector<int> missing_;  // by task: inputs that have not arrived yet
  std::vector<ReadyTasks> ready_;
  std::vector<char> busy_;
  std::vector<LinkQueue> ways_, out_ports_, in_ports_;
  EventQueue<Event> events_;
  OperatorRun run_;
  std::size_t num_begun_ = 0;
};

}  // namespace

OperatorRun run_by_priority(const OperatorTasks& tasks, const OperatorMachine& machine,
                            const std::vector<int>& place_of_operator) {
  std::vector<int> places(tasks.tasks.size());
  for (std::size_t task = 0; task < places.size(); ++task) places[task] = place_of_operator[tasks.tasks[task].op];
  auto run = Engine(tasks, machine, places, false).run();
  FROSTPIPE_CHECK(run, "a graph without a cycle can always go on");
  return *std::move(run);
}

std::optional<OperatorRun> run_in_order(const OperatorTasks& tasks, const OperatorMachine& machine,
                                        const std::vector<std::vector<int>>& operators) {
  std::vector<std::map<int, int>> place_of_operator(operators.size());
  for (std::size_t device = 0; device < operators.size(); ++device)
    for (std::size_t place = 0; place < operators[device].size(); ++place)
      place_of_operator[device][operators[device][place]] = static_cast<int>(place);
  std::vector<int> places(tasks.tasks.size());
  for (std::size_t task = 0; task < places.size(); ++task)
    places[task] = place_of_operator[tasks.tasks[task].device].at(tasks.tasks[task].op);
  return Engine(tasks, machine, places, true).run();
}

OperatorRun simulate_operators(const OperatorPlan& plan, const OperatorTasks& tasks, const std::string& source) {
  auto run = run_in_order(tasks, plan.machine, plan.order);
  if (!run)
    throw InvalidInput(source + ": order", "must let every operator begin",
                       "an order in which devices wait for each other in a cycle");
  return *std::move(run);
}

}  // namespace frostpipe
