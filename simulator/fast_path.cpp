#include "simulator/fast_path.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "base/link_queue.h"
#include "simulator/pipeline_rank_program.h"

namespace frostpipe {
namespace {

// The lists of many ranks exceed the cache, and the processor cannot predict the order in which ranks take turns, so
// most of a pass was waiting for memory. Therefore the actions that a rank runs next are prefetched while others run.
// Prefetching beyond the end of a list is harmless.
constexpr int kAhead = 16;

/// The state of a message.
struct Message {
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
struct Collective {
  std::size_t size = 0;
  std::vector<int> arrived;
  Nanoseconds begin_ns = 0, duration_ns = 0;
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

/// Records a span for every action; ranks ascend.
class Spans {
 public:
  Spans(const Schedule& schedule, const std::vector<FastRunner>& runners, int iterations)
      : schedule_(schedule), next_(runners.size()) {
    std::vector<int> by_rank(runners.size());
    for (std::size_t i = 0; i < by_rank.size(); ++i) by_rank[i] = static_cast<int>(i);
    std::sort(by_rank.begin(), by_rank.end(), [&](int a, int b) { return runners[a].rank < runners[b].rank; });
    std::size_t num_spans = 0;
    for (const int index : by_rank) {
      next_[index] = num_spans;
      num_spans += schedule.body[runners[index].pipeline_rank].size() * iterations;
    }
    trace_.num_ranks = runners[by_rank.back()].rank + 1;
    trace_.spans.resize(num_spans);
  }
  void add(int index, const FastRunner& runner, Nanoseconds begin, Nanoseconds end) {
    trace_.spans[next_[index]++] = {runner.rank, runner.iteration, schedule_.body[runner.pipeline_rank][runner.next],
                                    begin, end};
  }
  Trace take() { return std::move(trace_); }

 private:
  const Schedule& schedule_;
  std::vector<std::size_t> next_;
  Trace trace_;
};

class Times {
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

std::vector<FastRunner> runners_of(const std::vector<PipelineRankProgram>& programs, const ParallelLayout& layout) {
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

template <class Record>
class Pass {
 public:
  Pass(const Schedule& schedule, const std::vector<PipelineRankProgram>& programs, const CostModel& costs,
       int iterations, std::vector<FastRunner>& runners, Record& record)
      : schedule_(schedule),
        programs_(programs),
        costs_(costs),
        replicas_(static_cast<int>(runners.size() / programs.size())),
        iterations_(iterations),
        runners_(runners),
        record_(record),
        num_messages_(num_messages(programs)) {}

  /// Returns false if ranks wait forever. No action needs a later iteration's, so all ranks run one iteration after the
  /// other, and the messages of one are enough.
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

  Message& message(const FastRunner& runner, const Step& step) {
    return messages_[runner.replica * num_messages_ + step.message];
  }

  void send(int index, FastRunner& runner, const Step& step, const TransferCost& cost) {
    LinkQueue& link = runner.links[step.link];
    const Nanoseconds begin = std::max(runner.now, link.free_at());
    const Nanoseconds arrives = link.carry(begin, cost.occupancy_ns) + cost.latency_ns;
    record_.add(index, runner, begin, arrives);
    Message& sent = message(runner, step);
    if (sent.state == Message::State::receiver_waits) ready_.push_back(sent.waiting);
    sent.send(arrives);
  }

  /// Completes a rendezvous when the later of its two ends arrives; the other one continues when the message has
  /// arrived.
  void transfer(Message& sent, const FastRunner& later, const TransferCost& cost) {
    sent.send(std::max(later.now, runners_[sent.waiting].now) + cost.occupancy_ns + cost.latency_ns);
    ready_.push_back(sent.waiting);
  }

  /// The sender's side of a rendezvous. Returns false if the receiver is not there yet.
  bool send_by_rendezvous(int index, FastRunner& runner, const Step& step, const TransferCost& cost) {
    Message& sent = message(runner, step);
    if (sent.state == Message::State::not_sent) {
      sent.wait(Message::State::sender_waits, index);
      return false;
    }
    if (sent.state == Message::State::receiver_waits) transfer(sent, runner, cost);
    runner.now = sent.arrives_ns;
    return true;
  }

  bool receive(int index, FastRunner& runner, const Step& step, const Action& action) {
    Message& sent = message(runner, step);
    if (sent.state == Message::State::not_sent) {
      sent.wait(Message::State::receiver_waits, index);
      return false;
    }
    if (sent.state == Message::State::sender_waits)
      transfer(sent, runner, costs_.transfer(matching(action), runner.replica));
    runner.now = std::max(runner.now, sent.arrives_ns);
    return true;
  }

  /// Continues an action that is no compute. Returns false if the rank has to wait for others.
  bool run_segments(int index, FastRunner& runner, const Action& action) {
    const std::vector<Segment> segments = costs_.segments(action, runner.pipeline_rank, runner.replica);
    while (runner.next_segment < segments.size()) {
      const Segment& segment = segments[runner.next_segment];
      if (!segment.collective_ranks.empty()) {
        arrive(index, segment);
        return false;
      }
      runner.now += segment.duration_ns;
      ++runner.next_segment;
    }
    runner.next_segment = 0;
    return true;
  }

  void arrive(int index, const Segment& segment) {
    Collective& group = groups_[segment.collective_ranks];
    group.size = segment.collective_ranks.size();
    group.arrived.push_back(index);
    group.begin_ns = std::max(group.begin_ns, runners_[index].now);
    group.duration_ns = std::max(group.duration_ns, segment.duration_ns);
    if (group.arrived.size() < group.size) return;
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
  std::size_t num_messages_;       // per replica
  std::vector<Message> messages_;  // of the current iteration: [replica][message]
  std::map<std::vector<int>, Collective> groups_;
  std::vector<int> ready_;
};

}  // namespace

std::optional<Trace> simulate_on_fast_path(const Schedule& lowered, const ParallelLayout& layout,
                                           const CostModel& costs, int iterations) {
  const auto programs = pipeline_rank_programs(lowered);
  if (!programs) return std::nullopt;
  std::vector<FastRunner> runners = runners_of(*programs, layout);
  Spans spans(lowered, runners, iterations);
  if (!Pass<Spans>(lowered, *programs, costs, iterations, runners, spans).run()) return std::nullopt;
  return spans.take();
}

std::optional<Timing> time_on_fast_path(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs,
                                        int iterations) {
  const auto programs = pipeline_rank_programs(lowered);
  if (!programs) return std::nullopt;
  std::vector<FastRunner> runners = runners_of(*programs, layout);
  Times times(*programs, runners, iterations);
  if (!Pass<Times>(lowered, *programs, costs, iterations, runners, times).run()) return std::nullopt;
  return times.take();
}

}  // namespace frostpipe
