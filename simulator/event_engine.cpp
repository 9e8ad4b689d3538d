#include "simulator/event_engine.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/event_queue.h"
#include "simulator/event_runner.h"

namespace frostpipe {
namespace {

constexpr int kMaxNamedWaiters = 8;

/// The ranks of a collective; they run one collective at a time.
struct Group {
  std::size_t size = 0;
  std::vector<int> arrived;  // indices of runners
  Nanoseconds duration_ns = 0;
};

enum class EventKind : std::uint8_t { advance, deliver, end_rendezvous, end_collective };

struct SimulationEvent {
  EventKind kind = EventKind::advance;
  int index = 0;  // of a runner, or for end_collective of a group
  int slot = 0;   // for deliver and end_rendezvous, the SEND's
};

class Simulation {
 public:
  Simulation(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs, int iterations)
      : schedule_(lowered), layout_(layout), iterations_(iterations), programs_(resolve(lowered)) {
    for (int pipeline_rank = 0; pipeline_rank < static_cast<int>(programs_.size()); ++pipeline_rank) {
      for (int replica = 0; replica < layout.data_parallel_size; ++replica) add_runner(pipeline_rank, replica, costs);
    }
    lay_out_trace();
  }

  Trace run() {
    for (int index = 0; index < static_cast<int>(runners_.size()); ++index) {
      queue_.schedule(0, {.kind = EventKind::advance, .index = index});
    }
    queue_.run([this](const SimulationEvent& event) {
      switch (event.kind) {
        case EventKind::advance:
          return advance(event.index);
        case EventKind::deliver:
          return deliver(event.index, event.slot);
        case EventKind::end_rendezvous:
          return end_rendezvous(event.index, event.slot);
        case EventKind::end_collective:
          return end_collective(event.index);
      }
    });
    require_all_done();
    return std::move(trace_);
  }

 private:
  void add_runner(int pipeline_rank, int replica, const CostModel& costs) {
    const Program& program = programs_[pipeline_rank];
    EventRunner runner{.rank = rank_of(layout_, pipeline_rank, replica),
                       .pipeline_rank = pipeline_rank,
                       .replica = replica,
                       .program = &program,
                       .costs = {},
                       .work = {},
                       .shared = {},
                       .started = std::vector<int>(program.slots.size()),
                       .finished = std::vector<int>(program.slots.size()),
                       .links = std::vector<LinkQueue>(program.link_pipeline_ranks.size()),
                       .next_span = 0};
    runner.costs.reserve(program.slots.size());
    for (const Slot& slot : program.slots) {
      SlotCost cost{.first_work = static_cast<int>(runner.work.size()),
                    .end_work = 0,
                    .first_shared = static_cast<int>(runner.shared.size())};
      if (slot.kind == SlotKind::send) {
        cost.transfer = costs.transfer(slot.action, replica);
        const auto shared = costs.shared_occupancies(slot.action, replica);
        runner.shared.insert(runner.shared.end(), shared.begin(), shared.end());
      } else if (slot.kind == SlotKind::work) {
        for (const Segment& segment : costs.segments(slot.action, pipeline_rank, replica)) {
          Work work{.duration_ns = segment.duration_ns};
          if (!segment.collective_ranks.empty()) work.group = group_of(segment.collective_ranks);
          runner.work.push_back(work);
        }
      }
      cost.end_work = static_cast<int>(runner.work.size());
      cost.end_shared = static_cast<int>(runner.shared.size());
      runner.costs.push_back(cost);
    }
    runners_.push_back(std::move(runner));
  }

  /// Gives each rank its own part of the trace, in which it writes one span per action; ranks ascend.
  void lay_out_trace() {
    std::vector<EventRunner*> by_rank;
    for (EventRunner& runner : runners_) by_rank.push_back(&runner);
    std::sort(by_rank.begin(), by_rank.end(),
              [](const EventRunner* a, const EventRunner* b) { return a->rank < b->rank; });
    std::size_t num_spans = 0;
    for (EventRunner* runner : by_rank) {
      runner->next_span = num_spans;
      num_spans += runner->length(iterations_);
    }
    trace_.num_ranks = by_rank.back()->rank + 1;
    trace_.spans.resize(num_spans);
  }

  int group_of(const std::vector<int>& ranks) {
    const auto [entry, is_new] = group_index_.try_emplace(ranks, static_cast<int>(groups_.size()));
    if (is_new) groups_.push_back({.size = ranks.size(), .arrived = {}, .duration_ns = 0});
    return entry->second;
  }

  /// Runs actions of the list until the rank has to wait or is busy.
  void advance(int index) {
    EventRunner& runner = runners_[index];
    const std::size_t length = runner.length(iterations_);
    while (runner.next < length) {
      const auto [slot_index, step] = runner.current(iterations_);
      const Slot& slot = runner.program->slots[slot_index];
      if (!runner.next_work) {
        if (!inputs_are_there(runner, slot_index)) {
          if (slot.kind == SlotKind::receive) match_sender(runner, slot);
          return;
        }
        ++runner.started[slot_index];
        runner.next_work = runner.costs[slot_index].first_work;
      }
      if (slot.kind == SlotKind::send && !runner.costs[slot_index].transfer.holds_both) {
        issue(runner, slot_index, step);
      } else if (slot.kind == SlotKind::send) {
        if (runner.finished[slot_index] < runner.started[slot_index]) {
          match_receiver(runner, slot_index);
          return;
        }
        trace_.spans[runner.next_span++] = {runner.rank, step, slot.action, runner.reached_ns, queue_.now()};
      } else {
        if (!work_is_done(index, slot_index)) return;
        trace_.spans[runner.next_span++] = {runner.rank, step, slot.action, runner.reached_ns, queue_.now()};
        ++runner.finished[slot_index];
      }
      ++runner.next;
      runner.next_work.reset();
      runner.reached_ns = queue_.now();
    }
  }

  /// Returns whether the inputs of the action's next run are complete: its n-th run needs the n-th run of every action
  /// that it depends on.
  bool inputs_are_there(const EventRunner& runner, int slot_index) const {
    const Slot& slot = runner.program->slots[slot_index];
    const int needed = runner.started[slot_index] + 1;
    for (int i = slot.first_dependency; i < slot.end_dependency; ++i) {
      const std::optional<SlotAddress>& input = runner.program->dependencies[i];
      if (!input) return false;
      const EventRunner& holder = runners_[input->pipeline_rank * layout_.data_parallel_size + runner.replica];
      if (holder.finished[input->slot] < needed) return false;
    }
    return true;
  }

  /// Starts the remaining work of the current action. Returns true if none is left.
  bool work_is_done(int index, int slot_index) {
    EventRunner& runner = runners_[index];
    while (*runner.next_work < runner.costs[slot_index].end_work) {
      const Work& work = runner.work[*runner.next_work];
      if (work.group) {
        arrive(index, work);
        return false;
      }
      ++*runner.next_work;
      if (work.duration_ns > 0) {
        queue_.schedule(queue_.now() + work.duration_ns, {.kind = EventKind::advance, .index = index});
        return false;
      }
    }
    return true;
  }

  void arrive(int index, const Work& work) {
    Group& group = groups_[*work.group];
    group.arrived.push_back(index);
    group.duration_ns = std::max(group.duration_ns, work.duration_ns);
    if (group.arrived.size() < group.size) return;
    queue_.schedule(queue_.now() + group.duration_ns, {.kind = EventKind::end_collective, .index = *work.group});
  }

  void end_collective(int group_id) {
    std::vector<int> members = std::exchange(groups_[group_id].arrived, {});
    groups_[group_id].duration_ns = 0;
    std::sort(members.begin(), members.end());
    for (const int member : members) ++*runners_[member].next_work;
    for (const int member : members) advance(member);
  }

  EventRunner* partner_of(const EventRunner& runner, const Slot& slot) {
    if (!slot.partner) return nullptr;
    return &runners_[slot.partner->pipeline_rank * layout_.data_parallel_size + runner.replica];
  }

  bool stands_at(const EventRunner& runner, int slot_index) const {
    return runner.next < runner.length(iterations_) && runner.current(iterations_).first == slot_index;
  }

  /// Starts the rendezvous of a SEND if the receiver has arrived already: it starts when the second of its two ranks
  /// arrives.
  void match_receiver(EventRunner& sender, int slot_index) {
    const Slot& slot = sender.program->slots[slot_index];
    EventRunner* const receiver = partner_of(sender, slot);
    if (receiver != nullptr && stands_at(*receiver, slot.partner->slot) && !receiver->next_work)
      start_rendezvous(sender, slot_index);
  }
  void match_sender(EventRunner& receiver, const Slot& slot) {
    EventRunner* const sender = partner_of(receiver, slot);
    if (sender == nullptr || !stands_at(*sender, slot.partner->slot)) return;
    const int send = slot.partner->slot;
    if (sender->costs[send].transfer.holds_both && sender->finished[send] < sender->started[send])
      start_rendezvous(*sender, send);
  }
  void start_rendezvous(EventRunner& sender, int slot_index) {
    if (sender.in_rendezvous) return;
    sender.in_rendezvous = true;
    const TransferCost& cost = sender.costs[slot_index].transfer;
    const int sender_index = sender.pipeline_rank * layout_.data_parallel_size + sender.replica;
    const auto [begin, end] = occupy(sender, slot_index, queue_.now());
    queue_.schedule(std::max(begin + cost.occupancy_ns, end) + cost.latency_ns,
                    {.kind = EventKind::end_rendezvous, .index = sender_index, .slot = slot_index});
  }
  void end_rendezvous(int sender_index, int slot_index) {
    runners_[sender_index].in_rendezvous = false;
    deliver(sender_index, slot_index);
    advance(sender_index);
  }

  void issue(EventRunner& sender, int slot_index, int step) {
    const Slot& slot = sender.program->slots[slot_index];
    const TransferCost& cost = sender.costs[slot_index].transfer;
    LinkQueue& link = sender.links[*slot.link];
    const auto [begin, end] = occupy(sender, slot_index, std::max(queue_.now(), link.free_at()));
    const Nanoseconds arrival = std::max(link.carry(begin, cost.occupancy_ns), end) + cost.latency_ns;
    trace_.spans[sender.next_span++] = {sender.rank, step, slot.action, begin, arrival};
    const int sender_index = sender.pipeline_rank * layout_.data_parallel_size + sender.replica;
    queue_.schedule(arrival, {.kind = EventKind::deliver, .index = sender_index, .slot = slot_index});
  }

  /// Occupies the shared links of a message, starting when all are free but not before `earliest`. Returns its start,
  /// and the end on the last of these links.
  std::pair<Nanoseconds, Nanoseconds> occupy(const EventRunner& sender, int slot_index, Nanoseconds earliest) {
    const SlotCost& cost = sender.costs[slot_index];
    const std::span uses(sender.shared.data() + cost.first_shared, sender.shared.data() + cost.end_shared);
    Nanoseconds begin = earliest;
    for (const SharedOccupancy& use : uses) begin = std::max(begin, shared_links_[use.link].free_at());
    Nanoseconds end = begin;
    for (const SharedOccupancy& use : uses) end = std::max(end, shared_links_[use.link].carry(begin, use.occupancy_ns));
    return {begin, end};
  }

  void deliver(int sender_index, int slot_index) {
    EventRunner& sender = runners_[sender_index];
    ++sender.finished[slot_index];
    const int link = *sender.program->slots[slot_index].link;
    const int receiver = sender.program->link_pipeline_ranks[link] * layout_.data_parallel_size + sender.replica;
    if (!runners_[receiver].next_work) advance(receiver);
  }

  void require_all_done() const {
    std::string waiting;
    int num_waiting = 0;
    for (const EventRunner& runner : runners_) {
      if (runner.next == runner.length(iterations_)) continue;
      const auto [slot_index, step] = runner.current(iterations_);
      if (++num_waiting > kMaxNamedWaiters) continue;
      waiting += (waiting.empty() ? "rank " : ", rank ") + std::to_string(runner.rank) + " waits in " +
                 to_string(runner.program->slots[slot_index].action) + " of step " + std::to_string(step);
    }
    if (num_waiting == 0) return;
    if (num_waiting > kMaxNamedWaiters) waiting += ", and " + std::to_string(num_waiting - kMaxNamedWaiters) + " more";
    throw InvalidInput("schedule " + schedule_.name, "must make progress on every rank", "stuck: " + waiting);
  }

  const Schedule& schedule_;
  const ParallelLayout& layout_;
  int iterations_;
  std::vector<Program> programs_;     // per pipeline rank
  std::vector<EventRunner> runners_;  // [pipeline_rank * data_parallel_size + replica]
  std::vector<Group> groups_;
  std::map<std::vector<int>, int> group_index_;
  std::map<int, LinkQueue> shared_links_;  // by the link's number
  EventQueue<SimulationEvent> queue_;
  Trace trace_;
};

}  // namespace

Trace run_by_events(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs, int iterations) {
  return Simulation(lowered, layout, costs, iterations).run();
}

}  // namespace frostpipe
