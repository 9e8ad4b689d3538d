#pragma once
// Implementation header of the fast path.
#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "base/link_queue.h"
#include "plan/layout.h"
#include "simulator/cost_model.h"
#include "simulator/fast_path.h"
#include "simulator/pipeline_rank_program.h"

namespace frostpipe {

// The lists of many ranks exceed the processor's cache, and the processor cannot predict the order in which ranks take
// turns, so a pass would mostly wait for memory. Therefore the actions that a rank runs next are prefetched while
// others run. Prefetching beyond the end of a list is harmless.
constexpr int kAhead = 16;

/// The state of a message.
struct FastMessage {
  enum class State : std::uint8_t { not_sent, receiver_waits, sender_waits, sent };
  Nanoseconds arrives_ns = 0;  // of a sent message
  std::int32_t waiting = 0;    // the waiting runner
  State state = State::not_sent;

  void wait(State who, int runner) {
    state = who;
    waiting = runner;
  }
  void send(Nanoseconds arrival_ns) {
    state = State::sent;
    arrives_ns = arrival_ns;
  }
};

/// The ranks of a collective; they run one collective at a time.
struct FastCollective {
  std::size_t size = 0;
  std::vector<int> arrived;
  Nanoseconds begin_ns = 0, duration_ns = 0;
  int last = 0, longest = 0;  // the runner that arrived last, and the one with the longest segment
};

/// The progress of one rank through its list.
struct FastRunner {
  int rank = 0, pipeline_rank = 0, replica = 0;
  int iteration = 0;
  std::size_t next = 0;          // index into the list
  std::size_t next_segment = 0;  // of the current action
  Nanoseconds now = 0, reached_ns = 0;
  std::vector<LinkQueue> links;
};

/// The parts of an action that take time, besides its segments (0, 1, ...).
constexpr int kCompute = -1, kOccupancy = -2, kLatency = -3;

/// The functions by which a pass reports paths to its record, for a record that ignores them. Each runner, message and
/// link has a path: the chain of actions that determined its time.
struct NoPaths {
  /// A part of the runner's current action is appended to the runner's path.
  void extend(int /*index*/, const FastRunner& /*runner*/, int /*part*/) {}
  /// The runner sends a message, which waits for its link if `waits`.
  void send(int /*index*/, const FastRunner& /*runner*/, const Step& /*step*/, std::size_t /*message*/,
            bool /*waits*/) {}
  /// The rendezvous for a message of `sender` begins when runner `last` has arrived.
  void transfer(int /*last*/, const FastRunner& /*sender*/, std::size_t /*message*/) {}
  /// The runner waits for the message.
  void wait_for(int /*index*/, std::size_t /*message*/) {}
  /// A collective of these runners begins when its last one has arrived, and ends with the segment of the longest.
  void run_collective(const FastCollective& /*collective*/, const FastRunner& /*longest*/, const Action& /*action*/) {}
};

inline std::vector<FastRunner> runners_of(const std::vector<PipelineRankProgram>& programs,
                                          const ParallelLayout& layout) {
  std::vector<FastRunner> runners;
  for (int pipeline_rank = 0; pipeline_rank < static_cast<int>(programs.size()); ++pipeline_rank) {
    for (int replica = 0; replica < layout.data_parallel_size; ++replica) {
      runners.push_back({.rank = rank_of(layout, pipeline_rank, replica),
                         .pipeline_rank = pipeline_rank,
                         .replica = replica,
                         .links = std::vector<LinkQueue>(programs[pipeline_rank].num_links)});
    }
  }
  return runners;
}

/// A record that adds up the times of a Timing.
class Times : public NoPaths {
 public:
  Times(const std::vector<PipelineRankProgram>& programs, const std::vector<FastRunner>& runners, int iterations)
      : programs_(programs) {
    for (const FastRunner& runner : runners) timing_.ranks.push_back({.rank = runner.rank});
    has_computed_.assign(runners.size(), false);
    timing_.iteration_end_ns.assign(iterations, 0);
  }
  void add(int index, const FastRunner& runner, Nanoseconds begin, Nanoseconds end) {
    Nanoseconds& last = timing_.iteration_end_ns[runner.iteration];
    last = std::max(last, end);
    if (runner.iteration > 0 || programs_[runner.pipeline_rank].steps[runner.next].kind != StepKind::compute) return;
    Timing::Rank& rank = timing_.ranks[index];
    if (!has_computed_[index]) rank.compute_begin_ns = begin;
    has_computed_[index] = true;
    rank.compute_end_ns = end;
    rank.busy_ns += end - begin;
  }
  Timing take() {
    std::sort(timing_.ranks.begin(), timing_.ranks.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    return std::move(timing_);
  }

 private:
  const std::vector<PipelineRankProgram>& programs_;
  std::vector<bool> has_computed_;  // by runner
  Timing timing_;
};

/// Runs all iterations of the lists in one pass and tells the record of every action.
template <class Record>
class FastPass {
 public:
  FastPass(const Schedule& schedule, const std::vector<PipelineRankProgram>& programs, const CostModel& costs,
           int iterations, std::vector<FastRunner>& runners, Record& record)
      : schedule_(schedule),
        programs_(programs),
        costs_(costs),
        replicas_(static_cast<int>(runners.size() / programs.size())),
        iterations_(iterations),
        runners_(runners),
        record_(record),
        num_messages_(num_messages(programs)) {}

  /// Returns false if ranks wait forever. No action needs one of a later iteration, so all ranks finish an iteration
  /// before the next begins, and `messages_` holds those of one iteration only.
  bool run() {
    for (int iteration = 0; iteration < iterations_; ++iteration) {
      messages_.assign(num_messages_ * replicas_, {});
      for (int index = 0; index < static_cast<int>(runners_.size()); ++index) ready_.push_back(index);
      while (!ready_.empty()) {
        const int index = ready_.back();
        ready_.pop_back();
        advance(index);
      }
      if (std::ranges::any_of(runners_, [&](const FastRunner& runner) { return runner.iteration == iteration; }))
        return false;
    }
    return true;
  }

 private:
  /// Runs the rank's iteration as far as it goes without waiting.
  void advance(int index) {
    FastRunner& runner = runners_[index];
    const PipelineRankProgram& program = programs_[runner.pipeline_rank];
    const std::vector<Action>& actions = schedule_.body[runner.pipeline_rank];
    for (; runner.next < actions.size(); ++runner.next) {
      const Step& step = program.steps[runner.next];
      __builtin_prefetch(actions.data() + runner.next + kAhead);
      __builtin_prefetch(program.steps.data() + runner.next + kAhead);
      switch (step.kind) {
        case StepKind::compute:
          runner.now += costs_.compute_ns(actions[runner.next], runner.pipeline_rank, runner.replica);
          record_.extend(index, runner, kCompute);
          break;
        case StepKind::send: {
          const TransferCost cost = costs_.transfer(actions[runner.next], runner.replica);
          if (!cost.holds_both) {
            send(index, runner, step, cost);
            continue;
          }
          if (!send_by_rendezvous(index, runner, step, cost)) return;
          break;
        }
        case StepKind::receive:
          if (!receive(index, runner, step, actions[runner.next])) return;
          break;
        case StepKind::other:
          if (!run_segments(index, runner, actions[runner.next])) return;
      }
      record_.add(index, runner, runner.reached_ns, runner.now);
      runner.reached_ns = runner.now;
    }
    runner.next = 0;
    ++runner.iteration;
  }

  std::size_t message_of(const FastRunner& runner, const Step& step) const {
    return runner.replica * num_messages_ + step.message;
  }

  void send(int index, FastRunner& runner, const Step& step, const TransferCost& cost) {
    LinkQueue& link = runner.links[step.link];
    const Nanoseconds begin = std::max(runner.now, link.free_at());
    const Nanoseconds arrives = link.carry(begin, cost.occupancy_ns) + cost.latency_ns;
    record_.add(index, runner, begin, arrives);
    const std::size_t message = message_of(runner, step);
    record_.send(index, runner, step, message, begin > runner.now);
    FastMessage& sent = messages_[message];
    if (sent.state == FastMessage::State::receiver_waits) ready_.push_back(sent.waiting);
    sent.send(arrives);
  }

  /// Completes a rendezvous when the pass reaches the second of its two ends, `later`, which may still be the one with
  /// the earlier time. Both continue when the message has arrived.
  void transfer(std::size_t message, int later, bool later_sends, const TransferCost& cost) {
    FastMessage& sent = messages_[message];
    const bool is_last = runners_[later].now >= runners_[sent.waiting].now;
    const int last = is_last ? later : sent.waiting;
    record_.transfer(last, runners_[later_sends ? later : sent.waiting], message);
    ready_.push_back(sent.waiting);
    sent.send(runners_[last].now + cost.occupancy_ns + cost.latency_ns);
  }

  /// Performs the sender's side of a rendezvous. Returns false if the receiver is not there yet.
  bool send_by_rendezvous(int index, FastRunner& runner, const Step& step, const TransferCost& cost) {
    const std::size_t message = message_of(runner, step);
    FastMessage& sent = messages_[message];
    if (sent.state == FastMessage::State::not_sent) {
      sent.wait(FastMessage::State::sender_waits, index);
      return false;
    }
    if (sent.state == FastMessage::State::receiver_waits) transfer(message, index, /*later_sends=*/true, cost);
    runner.now = sent.arrives_ns;
    record_.wait_for(index, message);
    return true;
  }

  bool receive(int index, FastRunner& runner, const Step& step, const Action& action) {
    const std::size_t message = message_of(runner, step);
    FastMessage& sent = messages_[message];
    if (sent.state == FastMessage::State::not_sent) {
      sent.wait(FastMessage::State::receiver_waits, index);
      return false;
    }
    if (sent.state == FastMessage::State::sender_waits)
      transfer(message, index, /*later_sends=*/false, costs_.transfer(matching(action), runner.replica));
    if (sent.arrives_ns > runner.now) {
      runner.now = sent.arrives_ns;
      record_.wait_for(index, message);
    }
    return true;
  }

  /// Continues an action that is neither compute nor a message. Returns false if the rank has to wait for others.
  bool run_segments(int index, FastRunner& runner, const Action& action) {
    const std::vector<Segment> segments = costs_.segments(action, runner.pipeline_rank, runner.replica);
    while (runner.next_segment < segments.size()) {
      const Segment& segment = segments[runner.next_segment];
      if (!segment.collective_ranks.empty()) {
        arrive(index, segment, action);
        return false;
      }
      runner.now += segment.duration_ns;
      record_.extend(index, runner, static_cast<int>(runner.next_segment));
      ++runner.next_segment;
    }
    runner.next_segment = 0;
    return true;
  }

  void arrive(int index, const Segment& segment, const Action& action) {
    FastCollective& group = groups_[segment.collective_ranks];
    group.size = segment.collective_ranks.size();
    group.arrived.push_back(index);
    if (const Nanoseconds now = runners_[index].now; group.arrived.size() == 1 || now > group.begin_ns) {
      group.begin_ns = now;
      group.last = index;
    }
    if (group.arrived.size() == 1 || segment.duration_ns > group.duration_ns) {
      group.duration_ns = segment.duration_ns;
      group.longest = index;
    }
    if (group.arrived.size() < group.size) return;
    record_.run_collective(group, runners_[group.longest], action);
    for (const int member : group.arrived) {
      runners_[member].now = group.begin_ns + group.duration_ns;
      ++runners_[member].next_segment;
      ready_.push_back(member);
    }
    group = {};
  }

  const Schedule& schedule_;
  const std::vector<PipelineRankProgram>& programs_;
  const CostModel& costs_;
  int replicas_, iterations_;
  std::vector<FastRunner>& runners_;
  Record& record_;
  std::size_t num_messages_;           // per replica
  std::vector<FastMessage> messages_;  // of the current iteration: [replica][message]
  std::map<std::vector<int>, FastCollective> groups_;
  std::vector<int> ready_;
};

}  // namespace frostpipe
