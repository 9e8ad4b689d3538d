#include "simulator/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "base/error.h"

namespace frostpipe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Interval = std::pair<Nanoseconds, Nanoseconds>;

constexpr Nanoseconds kForward = 1, kBackward = 2;
const UniformCosts kUniform{.forward_ns = kForward, .input_gradient_ns = 1, .weight_gradient_ns = 1};

Schedule lowered(std::string_view name, const ScheduleShape& shape) { return lower(build_schedule(name, shape)); }

ParallelLayout pipeline(int length, int replicas = 1) {
  return {.pipeline_parallel_size = length, .data_parallel_size = replicas, .tensor_parallel_size = 1, .placement = {}};
}

Nanoseconds makespan(const Trace& trace) {
  Nanoseconds end = 0;
  for (const Span& span : trace.spans) end = std::max(end, span.end_ns);
  return end;
}

/// Begin and end of each action of a rank, keyed by its text.
std::map<std::string, Interval> spans_of(const Trace& trace, int rank, int step = 0) {
  std::map<std::string, Interval> spans;
  for (const Span& span : trace.spans) {
    if (span.rank == rank && span.step == step) spans[to_string(span.action)] = {span.begin_ns, span.end_ns};
  }
  return spans;
}

/// Costs written down by a test.
struct TableCostModel final : CostModel {
  std::vector<Nanoseconds> forward_ns, backward_ns;  // per stage
  TransferCost message;
  std::vector<Nanoseconds> replica_delay_ns;  // added to every forward of that replica
  std::map<ActionKind, Segment> collectives;

  std::vector<Segment> segments(const Action& action, int, int replica) const override {
    if (const auto collective = collectives.find(action.kind); collective != collectives.end()) {
      return {collective->second};
    }
    const Nanoseconds delay = replica_delay_ns.empty() ? 0 : replica_delay_ns.at(replica);
    if (action.kind == ActionKind::forward) return {{forward_ns.at(action.stage) + delay, {}}};
    if (action.kind == ActionKind::backward) return {{backward_ns.at(action.stage), {}}};
    return {};
  }
  TransferCost transfer(const Action&, int) const override { return message; }
};

TEST(Simulate, GPipeAnd1F1BTakeTheClosedForm) {
  for (const char* name : {"GPipe", "1F1B"}) {
    for (int p = 1; p <= 6; ++p) {
      for (int m = 1; m <= 12; ++m) {
        SCOPED_TRACE(std::string(name) + " p " + std::to_string(p) + " m " + std::to_string(m));
        const Schedule schedule = lowered(name, {.pipeline_parallel_size = p, .num_micro_batches = m});
        const Trace trace = simulate(schedule, pipeline(p), UniformCostModel(kUniform), 1);
        const IterationSummary summary = summarize(trace, 0, schedule);
        EXPECT_EQ(summary.makespan_ns, (m + p - 1) * (kForward + kBackward));
        EXPECT_DOUBLE_EQ(summary.bubble_overhead, static_cast<double>(p - 1) / m);
        EXPECT_DOUBLE_EQ(summary.bubble_fraction, static_cast<double>(p - 1) / (m + p - 1));
        for (int r = 0; r < p; ++r) {
          EXPECT_EQ(summary.busy_ns.at(r), m * (kForward + kBackward));
          EXPECT_EQ(summary.peak_in_flight.at(r), std::string(name) == "GPipe" ? m : std::min(p - r, m));
        }
      }
    }
  }
}

TEST(Simulate, GPipePaysLatencyOnceForEachCutAndDirection) {
  // The last stage starts (p - 1)(F + c) late, and stage 0's last backward starts (p - 1)(B + c) after the last
  // stage's.
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 8; ++m) {
      UniformCosts costs = kUniform;
      costs.latency_ns = 10;
      const Trace trace = simulate(lowered("GPipe", {.pipeline_parallel_size = p, .num_micro_batches = m}), pipeline(p),
                                   UniformCostModel(costs), 1);
      EXPECT_EQ(makespan(trace), (m + p - 1) * 3 + 2 * (p - 1) * 10) << "p " << p << " m " << m;
    }
  }
}

TEST(Simulate, OneFOneBWaitsForEachRoundTrip) {
  // rank 0: 0F0 0-1, 0F1 1-2, 0B0 when 1B0's gradient arrives, 0F2 ...; latency 10. rank 1: 1F0 11-12, 1B0 12-14
  // (arrives 24), 1F1 14-15, 1B1 15-17 (27), 1F2 when 0F2 (26-27) arrives: 37-38, 1B2 38-40 (50).
  UniformCosts costs = kUniform;
  costs.latency_ns = 10;
  const Trace trace = simulate(lowered("1F1B", {.pipeline_parallel_size = 2, .num_micro_batches = 3}), pipeline(2),
                               UniformCostModel(costs), 1);
  auto rank0 = spans_of(trace, 0);
  EXPECT_EQ(rank0["0F1"], Interval(1, 2));
  EXPECT_EQ(rank0["0SEND_F1"], Interval(2, 12));
  EXPECT_EQ(rank0["0RECV_B0"], Interval(2, 24));
  EXPECT_EQ(rank0["0B0"], Interval(24, 26));
  EXPECT_EQ(rank0["0F2"], Interval(26, 27));
  EXPECT_EQ(rank0["0B1"], Interval(27, 29));
  EXPECT_EQ(rank0["0B2"], Interval(50, 52));
  auto rank1 = spans_of(trace, 1);
  EXPECT_EQ(rank1["1F0"], Interval(11, 12));
  EXPECT_EQ(rank1["1RECV_F1"], Interval(14, 14));  // the message was already there
  EXPECT_EQ(rank1["1F2"], Interval(37, 38));
  EXPECT_EQ(makespan(trace), 52);
}

TEST(Simulate, AFrozenFirstStageOnlyFillsThePipeline) {
  // rank 0 runs 0F0 0F1 0F2; rank 1 starts at 1 and never waits again: 1 + 3 (1 + 2).
  for (const char* name : {"GPipe", "1F1B"}) {
    const Schedule schedule =
        lowered(name, {.pipeline_parallel_size = 2, .num_micro_batches = 3, .first_trainable_stage = 1});
    const Trace trace = simulate(schedule, pipeline(2), UniformCostModel(kUniform), 1);
    EXPECT_EQ(makespan(trace), 10) << name;
    EXPECT_EQ(spans_of(trace, 0).count("0B0"), 0U) << name;
    EXPECT_EQ(summarize(trace, 0, schedule).busy_ns, (std::vector<Nanoseconds>{3, 9})) << name;
  }
}

TEST(Simulate, TrainableStagesAfterAFrozenOneAlternate) {
  // rank 1: 1F0 1-2, 1F1 2-3, 1B0 5-7, 1B1 8-10; rank 2: 2F0 2-3, 2B0 3-5, 2F1 5-6, 2B1 6-8.
  const Trace trace =
      simulate(lowered("1F1B", {.pipeline_parallel_size = 3, .num_micro_batches = 2, .first_trainable_stage = 1}),
               pipeline(3), UniformCostModel(kUniform), 1);
  EXPECT_EQ(spans_of(trace, 1)["1B0"], Interval(5, 7));
  EXPECT_EQ(spans_of(trace, 1)["1B1"], Interval(8, 10));
  EXPECT_EQ(spans_of(trace, 2)["2B1"], Interval(6, 8));
  EXPECT_EQ(makespan(trace), 10);
}

/// GPipe's makespan by its recursion, independent of the simulator.
Nanoseconds gpipe_by_recursion(const std::vector<Nanoseconds>& forward, const std::vector<Nanoseconds>& backward, int m,
                               Nanoseconds latency) {
  const int p = static_cast<int>(forward.size());
  std::vector<Nanoseconds> free_at(p, 0), arrival(m, 0);
  for (int stage = 0; stage < p; ++stage) {
    for (int i = 0; i < m; ++i) {
      free_at[stage] = std::max(free_at[stage], arrival[i]) + forward[stage];
      arrival[i] = free_at[stage] + latency;
    }
  }
  std::fill(arrival.begin(), arrival.end(), 0);
  Nanoseconds end = 0;
  for (int stage = p - 1; stage >= 0; --stage) {
    for (int i = 0; i < m; ++i) {
      free_at[stage] = std::max(free_at[stage], arrival[i]) + backward[stage];
      arrival[i] = free_at[stage] + latency;
      end = std::max(end, free_at[stage]);
    }
  }
  return end;
}

TEST(Simulate, GPipeWithUnequalStagesEqualsItsRecursion) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> any_time(0, 20);
  for (int round = 0; round < 300; ++round) {
    const int p = 1 + round % 6;
    const int m = 1 + round / 6 % 9;
    TableCostModel costs;
    for (int stage = 0; stage < p; ++stage) {
      costs.forward_ns.push_back(any_time(random));
      costs.backward_ns.push_back(any_time(random));
    }
    costs.message.latency_ns = any_time(random);
    const Trace trace =
        simulate(lowered("GPipe", {.pipeline_parallel_size = p, .num_micro_batches = m}), pipeline(p), costs, 1);
    Nanoseconds compute_end = 0;
    for (const Span& span : trace.spans) {
      if (is_compute(span.action.kind)) compute_end = std::max(compute_end, span.end_ns);
    }
    EXPECT_EQ(compute_end, gpipe_by_recursion(costs.forward_ns, costs.backward_ns, m, costs.message.latency_ns));
  }
}

TEST(Simulate, ALinkServesInIssueOrderAndLatencyDoesNotOccupyIt) {
  // Forwards end at 1, 2, 3. The link takes 5 per message: 1-6, 6-11, 11-16; each arrives 2 later.
  TableCostModel costs;
  costs.forward_ns = {1, 1};
  costs.backward_ns = {2, 2};
  costs.message = {.occupancy_ns = 5, .latency_ns = 2};
  const Trace trace =
      simulate(lowered("GPipe", {.pipeline_parallel_size = 2, .num_micro_batches = 3}), pipeline(2), costs, 1);
  auto rank0 = spans_of(trace, 0);
  EXPECT_EQ(rank0["0SEND_F0"], Interval(1, 8));
  EXPECT_EQ(rank0["0SEND_F1"], Interval(6, 13));
  EXPECT_EQ(rank0["0SEND_F2"], Interval(11, 18));
  EXPECT_EQ(rank0["0F2"], Interval(2, 3));  // the rank itself continues
  auto rank1 = spans_of(trace, 1);
  EXPECT_EQ(rank1["1F0"], Interval(8, 9));
  EXPECT_EQ(rank1["1F1"], Interval(13, 14));
  EXPECT_EQ(rank1["1F2"], Interval(18, 19));
  EXPECT_EQ(rank1["1SEND_B0"], Interval(21, 28));  // the other direction is a separate link
}

TEST(Simulate, EqualReplicasTakeEqualTimes) {
  UniformCosts costs = kUniform;
  costs.latency_ns = 3;
  const Trace trace = simulate(lowered("1F1B", {.pipeline_parallel_size = 3, .num_micro_batches = 5}), pipeline(3, 4),
                               UniformCostModel(costs), 2);
  EXPECT_EQ(trace.num_ranks, 12);
  for (int pipeline_rank = 0; pipeline_rank < 3; ++pipeline_rank) {
    for (int replica = 1; replica < 4; ++replica) {
      for (int step = 0; step < 2; ++step) {
        EXPECT_EQ(spans_of(trace, pipeline_rank * 4 + replica, step), spans_of(trace, pipeline_rank * 4, step));
      }
    }
  }
}

TEST(Simulate, ACollectiveStartsWhenTheLastRankHasArrived) {
  // Replica 0 is done at 1 + 2, replica 1 at 5 + 2; then both reduce for 10.
  TableCostModel costs;
  costs.forward_ns = {1};
  costs.backward_ns = {2};
  costs.replica_delay_ns = {0, 4};
  costs.collectives[ActionKind::reduce_gradient] = {.duration_ns = 10, .collective_ranks = {0, 1}};
  const Trace trace =
      simulate(lowered("1F1B", {.pipeline_parallel_size = 1, .num_micro_batches = 1}), pipeline(1, 2), costs, 2);
  EXPECT_EQ(spans_of(trace, 0)["0REDUCE_GRAD"], Interval(3, 17));
  EXPECT_EQ(spans_of(trace, 1)["0REDUCE_GRAD"], Interval(7, 17));
  EXPECT_EQ(spans_of(trace, 0, 1)["0F0"], Interval(17, 18));
  EXPECT_EQ(spans_of(trace, 1, 1)["0REDUCE_GRAD"], Interval(24, 34));
}

TEST(Simulate, RunsThePrologueAndTheEpilogueOnce) {
  Schedule schedule = lowered("1F1B", {.pipeline_parallel_size = 1, .num_micro_batches = 1});
  schedule.body = {{parse_action("0F1", "test"), parse_action("0B1", "test")}};
  schedule.prologue = {{parse_action("0F0", "test")}};
  schedule.epilogue = {{parse_action("0B0", "test")}};
  schedule.num_micro_batches = 2;
  const Trace trace = simulate(schedule, pipeline(1), UniformCostModel(kUniform), 3);
  std::vector<std::string> order;
  std::vector<int> steps;
  for (const Span& span : trace.spans) {
    order.push_back(to_string(span.action));
    steps.push_back(span.step);
  }
  EXPECT_THAT(order, ElementsAre("0F0", "0F1", "0B1", "0F1", "0B1", "0F1", "0B1", "0B0"));
  EXPECT_THAT(steps, ElementsAre(0, 0, 0, 1, 1, 2, 2, 2));
}

TEST(Simulate, ListsEachRankInTheOrderOfItsList) {
  const Schedule schedule = lowered("1F1B", {.pipeline_parallel_size = 4, .num_micro_batches = 6});
  const Trace trace = simulate(schedule, pipeline(4), UniformCostModel(kUniform), 1);
  std::vector<std::vector<Action>> order(4);
  for (const Span& span : trace.spans) order.at(span.rank).push_back(span.action);
  EXPECT_EQ(order, schedule.body);
}

TEST(Simulate, PlacementSaysWhichRankIsMeant) {
  ParallelLayout layout = pipeline(2);
  layout.placement = {1, 0};
  const Trace trace = simulate(lowered("GPipe", {.pipeline_parallel_size = 2, .num_micro_batches = 1}), layout,
                               UniformCostModel(kUniform), 1);
  EXPECT_EQ(spans_of(trace, 1)["0F0"], Interval(0, 1));
  EXPECT_EQ(spans_of(trace, 0)["1F0"], Interval(1, 2));
}

TEST(Simulate, EqualInputGivesEqualBytes) {
  std::mt19937 random(2);
  TableCostModel costs;
  for (int stage = 0; stage < 4; ++stage) {
    costs.forward_ns.push_back(random() % 5);  // many simultaneous events
    costs.backward_ns.push_back(random() % 5);
  }
  costs.message = {.occupancy_ns = 1, .latency_ns = 2};
  const Schedule schedule = lowered("1F1B", {.pipeline_parallel_size = 4, .num_micro_batches = 9});
  const std::string once = to_json(simulate(schedule, pipeline(4, 2), costs, 3));
  EXPECT_EQ(to_json(simulate(schedule, pipeline(4, 2), costs, 3)), once);
}

TEST(Simulate, NeverOverlapsOnARankAndNeverUsesWhatHasNotArrived) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    const int p = 1 + round % 5;
    const int m = 1 + static_cast<int>(random() % 7);
    TableCostModel costs;
    for (int stage = 0; stage < p; ++stage) {
      costs.forward_ns.push_back(random() % 9);
      costs.backward_ns.push_back(random() % 9);
    }
    costs.message = {.occupancy_ns = static_cast<Nanoseconds>(random() % 9),
                     .latency_ns = static_cast<Nanoseconds>(random() % 9)};
    const int frozen = static_cast<int>(random() % p);
    const Schedule schedule =
        lowered(round % 2 == 0 ? "GPipe" : "1F1B",
                {.pipeline_parallel_size = p, .num_micro_batches = m, .first_trainable_stage = frozen});
    const Trace trace = simulate(schedule, pipeline(p), costs, 2);
    std::map<std::pair<int, Action>, Span> span_of;
    std::vector<Nanoseconds> busy_until(p, 0);
    for (const Span& span : trace.spans) {
      span_of[{span.step, span.action}] = span;
      if (is_send(span.action.kind)) continue;
      EXPECT_GE(span.begin_ns, busy_until.at(span.rank));
      busy_until.at(span.rank) = span.end_ns;
    }
    for (const auto& [key, span] : span_of) {
      for (const Action& dependency : Dependencies(schedule).of(span.action)) {
        const auto before = span_of.find({span.step, dependency});
        ASSERT_NE(before, span_of.end());
        EXPECT_LE(before->second.end_ns, span.end_ns) << to_string(span.action);
        if (!is_receive(span.action.kind)) {
          EXPECT_LE(before->second.end_ns, span.begin_ns);
        }
      }
    }
  }
}

TEST(Simulate, ACollectiveWithARankThatNeverComesIsAnError) {
  TableCostModel costs;
  costs.forward_ns = {1};
  costs.backward_ns = {2};
  costs.collectives[ActionKind::reduce_gradient] = {.duration_ns = 10, .collective_ranks = {0, 1}};
  EXPECT_THROW(simulate(lowered("1F1B", {.pipeline_parallel_size = 1, .num_micro_batches = 1}), pipeline(1), costs, 1),
               InvalidInput);
}

}  // namespace
}  // namespace frostpipe
