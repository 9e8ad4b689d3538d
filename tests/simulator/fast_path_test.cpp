// Oracles: the event engine, which the fast path must equal to the nanosecond, and properties of any schedule, cost and
// topology.
#include "simulator/fast_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "simulator/simulate.h"
#include "tests/support/random_schedules.h"

namespace frostpipe {
namespace {

/// A layout with its ranks in random order.
ParallelLayout random_layout(std::mt19937& random, int pipeline_ranks) {
  ParallelLayout layout{.pipeline_parallel_size = pipeline_ranks,
                        .data_parallel_size = static_cast<int>(random() % 3) + 1};
  layout.placement.resize(num_ranks(layout));
  std::iota(layout.placement.begin(), layout.placement.end(), 0);
  if (random() % 2) std::shuffle(layout.placement.begin(), layout.placement.end(), random);
  return layout;
}

TEST(FastPath, EqualsTheEventEngineOnThousandsOfRandomRuns) {
  std::mt19937 random(1);
  for (int run = 0; run < 4000; ++run) {
    const Schedule schedule = test::random_schedule(random);
    const ParallelLayout layout = random_layout(random, num_pipeline_ranks(schedule));
    const test::RandomCostModel costs(random(), schedule, layout);
    const int iterations = static_cast<int>(random() % 3) + 1;
    SCOPED_TRACE(::testing::Message() << "run " << run << ": " << schedule.name << ", " << num_pipeline_ranks(schedule)
                                      << " x " << layout.data_parallel_size << ", " << schedule.num_micro_batches
                                      << " micro-batches");
    const auto fast = simulate_on_fast_path(schedule, layout, costs, iterations);
    ASSERT_TRUE(fast.has_value());
    ASSERT_EQ(*fast, simulate_by_events(schedule, layout, costs, iterations));
  }
}

TEST(FastPath, EqualsTheEventEngineWhereMessagesHoldBothEnds) {
  // With rendezvous neighbours may wait for each other forever; then neither engine finds a solution. DeepSpeed's order
  // never deadlocks.
  std::mt19937 random(5);
  int applied = 0, stuck = 0;
  for (int run = 0; run < 3000; ++run) {
    const bool safe = run % 2 == 0;
    const Schedule schedule =
        safe ? one_f_one_b_of_deepspeed({.pipeline_parallel_size = static_cast<int>(random() % 5) + 1,
                                         .num_micro_batches = static_cast<int>(random() % 7) + 1})
             : test::random_schedule(random);
    const ParallelLayout layout = random_layout(random, num_pipeline_ranks(schedule));
    const test::RandomCostModel costs(random(), schedule, layout,
                                      /*holds_both_percent=*/static_cast<int>(random() % 101));
    SCOPED_TRACE(::testing::Message() << "run " << run << ": " << schedule.name << ", " << num_pipeline_ranks(schedule)
                                      << " x " << layout.data_parallel_size);
    const auto fast = simulate_on_fast_path(schedule, layout, costs, 2);
    (fast ? applied : stuck) += 1;
    ASSERT_TRUE(fast.has_value() || !safe);
    if (fast) {
      ASSERT_EQ(*fast, simulate_by_events(schedule, layout, costs, 2));
    } else {
      ASSERT_ANY_THROW(simulate_by_events(schedule, layout, costs, 2));
    }
  }
  EXPECT_GT(applied, 1500);
  EXPECT_GT(stuck, 100);
}

TEST(FastPath, RefusesOrEqualsWhereListsAreOutOfOrder) {
  // Two neighbouring actions of one list are swapped. Where the fast path still applies, it must agree, including
  // errors.
  std::mt19937 random(2);
  int applied = 0, refused = 0, stuck = 0;
  for (int run = 0; run < 3000; ++run) {
    Schedule schedule = test::random_schedule(random);
    auto& list = schedule.body[random() % schedule.body.size()];
    if (list.size() < 2) continue;
    const std::size_t at = random() % (list.size() - 1);
    std::swap(list[at], list[at + 1]);
    const ParallelLayout layout = random_layout(random, num_pipeline_ranks(schedule));
    const test::RandomCostModel costs(random(), schedule, layout);
    const auto fast = simulate_on_fast_path(schedule, layout, costs, 2);
    try {
      const Trace events = simulate_by_events(schedule, layout, costs, 2);
      (fast ? applied : refused) += 1;
      if (fast) {
        ASSERT_EQ(*fast, events) << "run " << run << ": " << to_text(schedule);
      }
    } catch (const std::exception&) {
      ++stuck;
      ASSERT_FALSE(fast.has_value()) << "run " << run << ": " << to_text(schedule);
    }
  }
  EXPECT_GT(applied, 500);
  EXPECT_GT(stuck, 100);
}

TEST(SimulateTiming, IsTheTraceWithoutItsSpans) {
  std::mt19937 random(3);
  for (int run = 0; run < 300; ++run) {
    const Schedule schedule = test::random_schedule(random);
    const ParallelLayout layout = random_layout(random, num_pipeline_ranks(schedule));
    const test::RandomCostModel costs(random(), schedule, layout);
    const Timing timing = simulate_timing(schedule, layout, costs, 3);
    const Trace trace = simulate(schedule, layout, costs, 3);
    IterationSummary expected = summarize(trace, 0, schedule), summary = summarize(timing, schedule);
    for (int step = 0; step < 3; ++step) {
      Nanoseconds end = 0;
      for (const Span& span : trace.spans)
        if (span.step == step) end = std::max(end, span.end_ns);
      ASSERT_EQ(timing.iteration_end_ns[step], end);
    }
    expected.iteration_ns = summary.iteration_ns;
    ASSERT_EQ(summary, expected);
  }
}

/// Length of the longest chain of inputs that ends with the action, as if every rank and link were free.
Nanoseconds critical_path(const Schedule& schedule, const Dependencies& dependencies,
                          const test::RandomCostModel& costs, const Action& action, int replica,
                          std::map<Action, Nanoseconds>& known) {
  if (const auto found = known.find(action); found != known.end()) return found->second;
  Nanoseconds longest = 0;
  for (const Action& needed : dependencies.of(action))
    longest = std::max(longest, critical_path(schedule, dependencies, costs, needed, replica, known));
  if (is_compute(action.kind))
    longest += costs.compute_ns(action, schedule.pipeline_rank_of_stage[action.stage], replica);
  if (is_send(action.kind))
    longest += costs.transfer(action, replica).occupancy_ns + costs.transfer(action, replica).latency_ns;
  return known[action] = longest;
}

/// One simulated iteration of a schedule.
struct RandomRun {
  const Schedule& schedule;
  const ParallelLayout& layout;
  const test::RandomCostModel& costs;
  const Trace trace;

  MeshCoordinate coordinate_of(const Span& span) const { return find_coordinate(layout, span.rank).value(); }
  std::map<std::pair<int, Action>, Span> span_of() const {  // by replica and action
    std::map<std::pair<int, Action>, Span> spans;
    for (const Span& span : trace.spans) {
      Action action = span.action;
      action.overlaps_next = false;
      spans[{coordinate_of(span).replica, action}] = span;
    }
    return spans;
  }
};

void expect_links_serve_one_message_at_a_time(const RandomRun& run) {
  std::map<std::pair<int, int>, Nanoseconds> link_is_free;
  for (const Span& span : run.trace.spans) {
    if (!is_send(span.action.kind)) continue;
    const TransferCost cost = run.costs.transfer(span.action, run.coordinate_of(span).replica);
    auto& free_at = link_is_free[{span.rank, run.schedule.pipeline_rank_of_stage[matching(span.action).stage]}];
    ASSERT_GE(span.begin_ns, free_at);
    free_at = span.begin_ns + cost.occupancy_ns;
    ASSERT_EQ(span.end_ns, free_at + cost.latency_ns);
  }
}

void expect_ranks_do_one_thing_at_a_time(const RandomRun& run) {
  std::map<int, Nanoseconds> rank_is_free, busy;
  Nanoseconds makespan = 0, serial = 0;  // serial: everything one after the other
  for (const Span& span : run.trace.spans) {
    const MeshCoordinate coordinate = run.coordinate_of(span);
    makespan = std::max(makespan, span.end_ns);
    if (is_send(span.action.kind)) {
      const TransferCost cost = run.costs.transfer(span.action, coordinate.replica);
      serial += cost.occupancy_ns + cost.latency_ns;
      continue;
    }
    ASSERT_GE(span.begin_ns, rank_is_free[span.rank]);
    rank_is_free[span.rank] = span.end_ns;
    if (!is_receive(span.action.kind))
      for (const Segment& segment : run.costs.segments(span.action, coordinate.pipeline_rank, coordinate.replica))
        serial += segment.duration_ns;
    if (is_compute(span.action.kind)) {
      ASSERT_EQ(span.end_ns - span.begin_ns,
                run.costs.compute_ns(span.action, coordinate.pipeline_rank, coordinate.replica));
      busy[span.rank] += span.end_ns - span.begin_ns;
    }
  }
  for (const auto& [rank, time] : busy) ASSERT_LE(time, makespan);
  ASSERT_LE(makespan, serial);
}

void expect_inputs_come_first(const RandomRun& run) {
  const Dependencies dependencies(run.schedule);
  const std::map<std::pair<int, Action>, Span> span_of = run.span_of();
  std::vector<std::map<Action, Nanoseconds>> known(run.layout.data_parallel_size);
  for (const auto& [key, span] : span_of) {
    const bool waits_within = is_receive(span.action.kind);  // its span is the wait, so it ends no earlier
    for (const Action& needed : dependencies.of(key.second)) {
      const Span& input = span_of.at({key.first, needed});
      ASSERT_LE(input.end_ns, waits_within ? span.end_ns : span.begin_ns)
          << to_string(needed) << " before " << to_string(key.second);
    }
    ASSERT_LE(critical_path(run.schedule, dependencies, run.costs, key.second, key.first, known[key.first]),
              span.end_ns)
        << to_string(key.second);
  }
}

void expect_every_forward_has_its_backward(const Schedule& schedule) {
  for (const auto& list : schedule.body) {
    int kept = 0;
    for (const Action& action : list) {
      if (action.stage < schedule.first_trainable_stage) continue;
      kept += (action.kind == ActionKind::forward) - (action.kind == ActionKind::backward) -
              (action.kind == ActionKind::weight_gradient);
      ASSERT_GE(kept, 0);
    }
    ASSERT_EQ(kept, 0);
  }
}

TEST(Simulate, KeepsItsInvariantsOnRandomInput) {
  std::mt19937 random(4);
  for (int round = 0; round < 500; ++round) {
    const Schedule schedule = test::random_schedule(random);
    const ParallelLayout layout = random_layout(random, num_pipeline_ranks(schedule));
    const test::RandomCostModel costs(random(), schedule, layout);
    const RandomRun run{schedule, layout, costs, simulate(schedule, layout, costs, 1)};
    SCOPED_TRACE(::testing::Message() << "run " << round << ": " << schedule.name);
    ASSERT_NO_FATAL_FAILURE(expect_links_serve_one_message_at_a_time(run));
    ASSERT_NO_FATAL_FAILURE(expect_ranks_do_one_thing_at_a_time(run));
    ASSERT_NO_FATAL_FAILURE(expect_inputs_come_first(run));
    ASSERT_NO_FATAL_FAILURE(expect_every_forward_has_its_backward(schedule));
    EXPECT_EQ(run.trace, simulate(schedule, layout, costs, 1));  // equal input gives equal output
  }
}

}  // namespace
}  // namespace frostpipe
