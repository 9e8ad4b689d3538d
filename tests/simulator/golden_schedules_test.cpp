// Oracles: published or derived makespans of every schedule for F = I = W = 1 without messages, and Zero Bubble's Table
// 5 (Qi et al. 2023), whose bubble rates follow from the times of its Table 9.
#include <gtest/gtest.h>

#include "papers/zero_bubble_table5.h"
#include "plan/memory.h"
#include "plan/schedule.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

using zero_bubble::bubble_rate;
using zero_bubble::costs_of;
using zero_bubble::kTable5;
using zero_bubble::Table5Row;

constexpr Nanoseconds kUnit = 4;  // divisible by the stages per rank

Schedule without_overlap(Schedule schedule) {
  for (auto& list : schedule.body) {
    for (Action& action : list) action.overlaps_next = false;
  }
  return schedule;
}

/// Simulates one iteration. All stages of a rank together take F, I and W of `costs`.
IterationSummary run(const Schedule& compute, UniformCosts costs) {
  const int p = num_pipeline_ranks(compute), v = num_stages(compute) / p;
  costs.forward_ns /= v;
  costs.input_gradient_ns /= v;
  costs.weight_gradient_ns /= v;
  const Schedule schedule = lower(compute);
  return summarize(simulate(schedule, {.pipeline_parallel_size = p}, UniformCostModel(costs), 1), 0, schedule);
}

IterationSummary run_units(const Schedule& compute) {
  return run(compute, {.forward_ns = kUnit, .input_gradient_ns = kUnit, .weight_gradient_ns = kUnit});
}

double makespan(const Schedule& compute) { return static_cast<double>(run_units(compute).makespan_ns) / kUnit; }
double longest_span(const Schedule& compute) {
  return static_cast<double>(run_units(compute).longest_rank_span_ns) / kUnit;
}

struct Golden {
  int p, m;
  double one_f_one_b, interleaved_2, interleaved_4, h1, h2, h2_span, zbv, zbv_span, dual_split, dual_joined;
};

TEST(GoldenSchedules, HaveTheDerivedMakespans) {
  for (const Golden& golden : {Golden{4, 8, 33, 28.5, 26.25, 27, 27, 24, 25.5, 24, 25.5, 27},
                               Golden{4, 16, 57, 52.5, 50.25, 51, 51, 48, 49.5, 48, 49.5, 51},
                               Golden{8, 24, 93, 82.5, 77.25, 79, 79, 72, 75.5, 72, 75.5, 79}}) {
    const ScheduleShape shape{.pipeline_parallel_size = golden.p, .num_micro_batches = golden.m};
    SCOPED_TRACE(::testing::Message() << "p " << golden.p << " m " << golden.m);
    ScheduleShape two = shape, four = shape;
    two.virtual_stages = 2;
    four.virtual_stages = 4;
    EXPECT_EQ(makespan(gpipe(shape)), golden.one_f_one_b);
    EXPECT_EQ(makespan(one_f_one_b(shape)), golden.one_f_one_b);
    EXPECT_EQ(makespan(interleaved_one_f_one_b(two)), golden.interleaved_2);
    EXPECT_EQ(makespan(looped_bfs(two)), golden.interleaved_2);
    EXPECT_EQ(makespan(interleaved_one_f_one_b(four)), golden.interleaved_4);
    EXPECT_EQ(makespan(zero_bubble_h1(shape)), golden.h1);
    EXPECT_EQ(makespan(zero_bubble_h2(shape)), golden.h2);
    EXPECT_EQ(longest_span(zero_bubble_h2(shape)), golden.h2_span);
    EXPECT_EQ(makespan(zero_bubble_v(shape)), golden.zbv);
    EXPECT_EQ(longest_span(zero_bubble_v(shape)), golden.zbv_span);
    EXPECT_EQ(makespan(dual_pipe_v(shape)), golden.dual_joined);
    EXPECT_EQ(makespan(without_overlap(dual_pipe_v(shape))), golden.dual_split);
  }
}

TEST(GoldenSchedules, TokenSlicesShrinkTheBubbleAsMoreMicroBatchesWould) {
  // Equal slices: (m n + p - 1) (F + B) with the times of one slice.
  const UniformCosts costs{.forward_ns = 3, .input_gradient_ns = 2, .weight_gradient_ns = 2};
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 5; ++m) {
      for (int n = 1; n <= 4; ++n) {
        const ScheduleShape shape{.pipeline_parallel_size = p, .num_micro_batches = m, .token_slices = n};
        EXPECT_EQ(run(terapipe(shape), costs).makespan_ns, (m * n + p - 1) * 7) << p << " " << m << " " << n;
        EXPECT_EQ(run(seq_one_f_one_b(shape), costs).makespan_ns, (m * n + p - 1) * 7) << p << " " << m << " " << n;
      }
    }
  }
  const ScheduleShape shape{.pipeline_parallel_size = 4, .num_micro_batches = 8, .token_slices = 4};
  EXPECT_EQ(peak_in_flight(terapipe(shape)), (std::vector<double>{8, 8, 8, 8}));
  EXPECT_EQ(peak_in_flight(seq_one_f_one_b(shape)), (std::vector<double>{1.75, 1.5, 1.25, 1}));  // (p - 1 - r + n) / n
}

TEST(GoldenSchedules, PipeDream2BWHasNoBubbleBetweenIterations) {
  for (const int p : {1, 2, 4, 7}) {
    for (const int m : {p, p + 1, 3 * p}) {
      const Schedule schedule = pipedream_2bw({.pipeline_parallel_size = p, .num_micro_batches = m});
      const double flush = makespan(unrolled(schedule, 1));
      EXPECT_EQ(flush, 3 * (m + p - 1));  // a single iteration is 1F1B
      for (int n = 2; n <= 4; ++n)
        EXPECT_EQ(makespan(unrolled(schedule, n)), 3 * (n * m + p - 1));  // every further one costs only its work
      for (int r = 0; r < p; ++r) EXPECT_EQ(peak_in_flight(schedule)[r], p - r);
    }
  }
}

TEST(GoldenSchedules, KeepTheDerivedNumbersInFlight) {
  const ScheduleShape shape{.pipeline_parallel_size = 4, .num_micro_batches = 8};
  const auto peaks = [](const Schedule& compute) { return peak_in_flight(lower(compute)); };
  using Peaks = std::vector<double>;
  EXPECT_EQ(peaks(gpipe(shape)), (Peaks{8, 8, 8, 8}));
  EXPECT_EQ(peaks(looped_bfs(shape)), (Peaks{8, 8, 8, 8}));
  EXPECT_EQ(peaks(one_f_one_b(shape)), (Peaks{4, 3, 2, 1}));
  EXPECT_EQ(peaks(interleaved_one_f_one_b(shape)), (Peaks{5.5, 4.5, 3.5, 2.5}));
  EXPECT_EQ(peaks(interleaved_one_f_one_b({4, 8, 0, 4})), (Peaks{4.75, 4.25, 3.75, 3.25}));
  EXPECT_EQ(peaks(zero_bubble_h1(shape)), (Peaks{4, 4, 4, 4}));
  EXPECT_EQ(peaks(zero_bubble_h2(shape)), (Peaks{7, 7, 7, 7}));
  EXPECT_EQ(peaks(zero_bubble_v(shape)), (Peaks{4, 4, 4, 4}));
  EXPECT_EQ(peaks(dual_pipe_v(shape)), (Peaks{4.5, 4.5, 4.5, 4.5}));
}

TEST(ZeroBubbleTable5, AllThirtySixRatesToFourDigits) {
  for (const zero_bubble::Table5Row& row : kTable5) {
    SCOPED_TRACE(::testing::Message() << "p " << row.p << " m " << row.m);
    const ScheduleShape shape{.pipeline_parallel_size = row.p, .num_micro_batches = row.m};
    const auto rate = [&](const Schedule& compute) {
      return bubble_rate(static_cast<double>(run(compute, costs_of(row)).longest_rank_span_ns), row);
    };
    EXPECT_NEAR(rate(one_f_one_b(shape)), row.one_f_one_b, .00005001);
    EXPECT_NEAR(rate(zero_bubble_h1(shape)), row.h1, .00005001);
    EXPECT_NEAR(rate(zero_bubble_h2(shape)), row.h2, .00005001);
  }
}

TEST(ZeroBubbleTable5, InterleavedColumnWithoutOneSweepOfLatencies) {
  // The paper's column leaves out one sweep over p hops.
  for (const zero_bubble::Table5Row& row : kTable5) {
    SCOPED_TRACE(::testing::Message() << "p " << row.p << " m " << row.m);
    const Schedule compute = interleaved_one_f_one_b({row.p, row.m, 0, row.v});
    const UniformCosts costs = costs_of(row);
    const auto cost = static_cast<double>(run(compute, costs).longest_rank_span_ns - row.p * costs.latency_ns);
    EXPECT_NEAR(bubble_rate(cost, row), row.interleaved, .0003);
  }
}

}  // namespace
}  // namespace frostpipe
