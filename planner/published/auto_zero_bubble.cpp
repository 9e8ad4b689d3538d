#include "planner/published/auto_zero_bubble.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "base/error.h"
#include "plan/memory.h"
#include "plan/schedules/schedule_builder.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

/// The rule by which a rank chooses its next action. I has priority over F, and F over W. Fractions are of the duration
/// of the postponed action.
struct Rule {
  double wait_for_first;  // F is postponed if the rank's first I arrives within this fraction: all earlier ranks wait
                          // for it
  double wait_for_backward;  // F is postponed if a later I arrives within this fraction
  double wait_for_input;     // W is postponed if an I or F arrives within this fraction
};

/// List scheduling in order of time: the rank that is free next chooses among the actions whose inputs have arrived.
class ListSchedule {
 public:
  ListSchedule(const ScheduleShape& shape, const UniformCosts& costs, int limit, double weight_gradient_share,
               const Rule& rule)
      : p_(shape.pipeline_parallel_size),
        m_(shape.num_micro_batches),
        limit_(limit),
        share_(weight_gradient_share),
        costs_(costs),
        rule_(rule),
        ranks_(p_) {
    for (int r = 0; r < p_; ++r) {
      ranks_[r].forward_arrives.assign(m_, r == 0 ? 0 : kNever);
      ranks_[r].gradient_arrives.assign(m_, kNever);
      ranks_[r].actions.reserve(3 * m_);
      wake(r, 0);
    }
    while (!queue_.empty()) {
      const auto [at, rank] = queue_.top();
      queue_.pop();
      if (ranks_[rank].wakes_at == at) choose(rank, at);
    }
  }

  Nanoseconds longest_rank_span_ns() const {
    Nanoseconds longest = 0;
    for (const Rank& rank : ranks_) longest = std::max(longest, rank.free_at - rank.began_at);
    return longest;
  }
  const std::vector<Action>& actions(int rank) const { return ranks_[rank].actions; }

 private:
  struct Rank {
    int forwards = 0, backwards = 0, weights = 0;
    Nanoseconds free_at = 0, began_at = kNever, wakes_at = kNever;
    std::vector<Nanoseconds> forward_arrives, gradient_arrives;
    std::vector<Action> actions;
  };

  void wake(int rank, Nanoseconds at) {
    ranks_[rank].wakes_at = at;
    queue_.emplace(at, rank);
  }
  /// Wakes a sleeping rank when the message arrives.
  void announce(int rank, Nanoseconds arrival) {
    const Nanoseconds at = std::max(arrival, ranks_[rank].free_at);
    if (at < ranks_[rank].wakes_at) wake(rank, at);
  }

  void choose(int r, Nanoseconds now) {
    Rank& rank = ranks_[r];
    rank.wakes_at = kNever;
    const Nanoseconds gradient = rank.backwards < rank.forwards ? rank.gradient_arrives[rank.backwards] : kNever;
    const Nanoseconds input = rank.forwards < m_ ? rank.forward_arrives[rank.forwards] : kNever;
    const int waiting = rank.backwards - rank.weights;
    const bool has_room = rank.forwards - rank.backwards + share_ * waiting + 1 <= limit_ + 1e-9;
    const auto within = [&](Nanoseconds arrival, double share, Nanoseconds duration) {
      return arrival != kNever && static_cast<double>(arrival - now) < share * static_cast<double>(duration);
    };
    if (gradient <= now) return run(r, now, ActionKind::input_gradient);
    const double patience = rank.backwards == 0 ? rule_.wait_for_first : rule_.wait_for_backward;
    const bool put_off = within(gradient, patience, costs_.forward_ns);
    if (input <= now && has_room && !put_off) return run(r, now, ActionKind::forward);
    const Nanoseconds next = std::min(gradient, has_room && input > now ? input : kNever);
    const bool blocked = input <= now && !has_room;  // only W makes room
    if (waiting > 0 && (blocked || !within(next, rule_.wait_for_input, costs_.weight_gradient_ns)))
      return run(r, now, ActionKind::weight_gradient);
    if (next != kNever) wake(r, next);
  }

  void run(int r, Nanoseconds now, ActionKind kind) {
    Rank& rank = ranks_[r];
    rank.began_at = std::min(rank.began_at, now);
    if (kind == ActionKind::forward) {
      const int i = rank.forwards++;
      rank.actions.push_back(forward(r, i));
      rank.free_at = now + costs_.forward_ns;
      if (r + 1 == p_)
        rank.gradient_arrives[i] = rank.free_at;
      else
        announce_to(r + 1, ranks_[r + 1].forward_arrives[i], rank.free_at);
    } else if (kind == ActionKind::input_gradient) {
      const int i = rank.backwards++;
      rank.actions.push_back(input_gradient(r, i));
      rank.free_at = now + costs_.input_gradient_ns;
      if (r > 0) announce_to(r - 1, ranks_[r - 1].gradient_arrives[i], rank.free_at);
    } else {
      rank.actions.push_back(weight_gradient(r, rank.weights++));
      rank.free_at = now + costs_.weight_gradient_ns;
    }
    if (rank.weights < m_) wake(r, rank.free_at);
  }

  void announce_to(int r, Nanoseconds& arrives, Nanoseconds sent_at) {
    arrives = sent_at + costs_.latency_ns + costs_.occupancy_ns;
    announce(r, arrives);
  }

  int p_, m_, limit_;
  double share_;
  const UniformCosts& costs_;
  const Rule rule_;
  std::vector<Rank> ranks_;
  using Entry = std::pair<Nanoseconds, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

Nanoseconds longest_rank_span_ns(const Schedule& compute, const UniformCosts& costs) {
  const Schedule lowered = lower(compute);
  return summarize(simulate_timing(lowered, {.pipeline_parallel_size = num_pipeline_ranks(lowered)},
                                   UniformCostModel(costs), 1),
                   lowered)
      .longest_rank_span_ns;
}

}  // namespace

Schedule auto_zero_bubble(const ScheduleShape& shape, const UniformCosts& costs, int max_in_flight,
                          double weight_gradient_share) {
  if (max_in_flight < 1)
    throw InvalidInput("schedule AutoZeroBubble: micro-batches in flight", "must be >= 1",
                       std::to_string(max_in_flight));
  Schedule best =
      empty_schedule("AutoZeroBubble", shape, virtual_stages_of("AutoZeroBubble", shape, 1, 1, 1), StageMap::loop);
  const int p = shape.pipeline_parallel_size;
  Nanoseconds shortest = kNever;
  for (const double wait_for_first : {0.25, 0.5, 0.75, 1.0}) {
    for (const double wait_for_backward : {0.0, 0.25, 0.5, 1.0}) {
      for (const double wait_for_input : {0.0, 0.25, 0.5, 0.75, 1.0}) {
        const ListSchedule found(shape, costs, max_in_flight, weight_gradient_share,
                                 {wait_for_first, wait_for_backward, wait_for_input});
        if (found.longest_rank_span_ns() >= shortest) continue;
        shortest = found.longest_rank_span_ns();
        for (int r = 0; r < p; ++r) best.body[r] = found.actions(r);
      }
    }
  }
  std::vector<Schedule> by_hand;
  ScheduleShape trainable = shape;  // frozen backwards are removed at the end
  trainable.first_trainable_stage = 0;
  by_hand.push_back(zero_bubble_h1(trainable));
  if (shape.num_micro_batches >= 2 * p - 1) by_hand.push_back(zero_bubble_h2(trainable));
  for (const Schedule& schedule : by_hand) {
    const std::vector<double> peaks = peak_in_flight(schedule, weight_gradient_share);
    if (*std::max_element(peaks.begin(), peaks.end()) > max_in_flight) continue;
    const Nanoseconds span = longest_rank_span_ns(schedule, costs);
    if (span >= shortest) continue;
    shortest = span;
    best.body = schedule.body;
  }
  return without_frozen_backwards(std::move(best));
}

}  // namespace frostpipe
