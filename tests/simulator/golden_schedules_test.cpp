// Oracles: published or derived makespans of every schedule at F = I = W = 1 without messages, and Zero Bubble's Table 5 (Qi et al. 2023), whose bubble
// rates follow from the times of its Table 9.
#include <gtest/gtest.h>

#include <cmath>

#include "plan/memory.h"
#include "plan/schedule.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

constexpr Nanoseconds kUnit = 4;  // divides by the stages per rank

Schedule without_overlap(Schedule schedule) {
  for (auto& list : schedule.body) {
    for (Action& action : list) action.joined_with_next = false;
  }
  return schedule;
}

/// One iteration; the work of a rank's stages together takes F, I and W of `costs`.
IterationSummary run(const Schedule& compute, UniformCosts costs) {
  const int p = num_positions(compute), v = num_stages(compute) / p;
  costs.forward_ns /= v;
  costs.input_gradient_ns /= v;
  costs.weight_gradient_ns /= v;
  const Schedule schedule = lower(compute);
  return summarize(simulate(schedule, {.pipeline_parallel_size = p}, UniformCostModel(costs), 1), 0, schedule);
}

IterationSummary run_units(const Schedule& compute) { return run(compute, {.forward_ns = kUnit, .input_gradient_ns = kUnit, .weight_gradient_ns = kUnit}); }

double makespan(const Schedule& compute) { return static_cast<double>(run_units(compute).makespan_ns) / kUnit; }
double longest_span(const Schedule& compute) { return static_cast<double>(run_units(compute).longest_rank_span_ns) / kUnit; }

struct Golden {
  int p, m;
  double one_f_one_b, interleaved_2, interleaved_4, h1, h2, h2_span, zbv, zbv_span, dual_split, dual_joined;
};

TEST(GoldenSchedules, HaveTheDerivedMakespans) {
  for (const Golden& golden : {Golden{4, 8, 33, 28.5, 26.25, 27, 27, 24, 25.5, 24, 25.5, 27}, Golden{4, 16, 57, 52.5, 50.25, 51, 51, 48, 49.5, 48, 49.5, 51},
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

/// A row of Zero Bubble's Tables 9 and 5: times in ms, stages per rank of its interleaved column, bubble rates.
struct PublishedRow {
  int p, m, v;
  double forward, input_gradient, weight_gradient, latency;
  double one_f_one_b, interleaved, h1, h2;
};

const PublishedRow kTable5[] = {
    {8, 24, 3, 18.522, 18.086, 9.337, .601, .2431, .1055, .1585, .1083},   {8, 32, 3, 18.513, 18.086, 9.331, .626, .1985, .0818, .1242, .0837},
    {8, 64, 3, 18.546, 18.097, 9.321, .762, .1240, .0443, .0674, .0444},   {8, 24, 4, 29.718, 29.444, 19.927, .527, .2347, .0808, .1323, .0698},
    {8, 32, 4, 29.802, 29.428, 19.530, .577, .1898, .0628, .1045, .0559},  {8, 64, 4, 29.935, 29.621, 19.388, .535, .1091, .0320, .0554, .0294},
    {16, 48, 3, 11.347, 11.248, 8.132, .377, .2552, .1104, .1397, .0672},  {16, 64, 3, 11.307, 11.254, 8.101, .379, .2082, .0852, .1088, .0516},
    {16, 128, 3, 11.325, 11.308, 8.109, .378, .1251, .0445, .0576, .0266}, {32, 96, 2, 10.419, 10.207, 7.715, .408, .2646, .1493, .1421, .0641},
    {32, 128, 2, 10.408, 10.204, 7.703, .408, .2168, .1164, .1106, .0490}, {32, 256, 2, 10.402, 10.248, 7.698, .460, .1352, .0624, .0594, .0257},
};

UniformCosts costs_of(const PublishedRow& row) {
  const auto nanoseconds = [](double ms) { return static_cast<Nanoseconds>(std::llround(ms * 1e6)); };
  return {.forward_ns = nanoseconds(row.forward), .input_gradient_ns = nanoseconds(row.input_gradient),
          .weight_gradient_ns = nanoseconds(row.weight_gradient), .latency_ns = nanoseconds(row.latency)};
}

/// (cost - m T) / cost with the paper's cost: the longest span of one rank.
double bubble_rate(double cost_ns, const PublishedRow& row) {
  const UniformCosts costs = costs_of(row);
  const auto work = static_cast<double>(row.m * (costs.forward_ns + costs.input_gradient_ns + costs.weight_gradient_ns));
  return (cost_ns - work) / cost_ns;
}

TEST(ZeroBubbleTable5, AllThirtySixRatesToFourDigits) {
  for (const PublishedRow& row : kTable5) {
    SCOPED_TRACE(::testing::Message() << "p " << row.p << " m " << row.m);
    const ScheduleShape shape{.pipeline_parallel_size = row.p, .num_micro_batches = row.m};
    const auto rate = [&](const Schedule& compute) { return bubble_rate(static_cast<double>(run(compute, costs_of(row)).longest_rank_span_ns), row); };
    EXPECT_NEAR(rate(one_f_one_b(shape)), row.one_f_one_b, .00005001);
    EXPECT_NEAR(rate(zero_bubble_h1(shape)), row.h1, .00005001);
    EXPECT_NEAR(rate(zero_bubble_h2(shape)), row.h2, .00005001);
  }
}

TEST(ZeroBubbleTable5, InterleavedColumnWithoutOneSweepOfLatencies) {
  // The paper's column leaves out one sweep of p hops.
  for (const PublishedRow& row : kTable5) {
    SCOPED_TRACE(::testing::Message() << "p " << row.p << " m " << row.m);
    const Schedule compute = interleaved_one_f_one_b({row.p, row.m, 0, row.v});
    const UniformCosts costs = costs_of(row);
    const auto cost = static_cast<double>(run(compute, costs).longest_rank_span_ns - row.p * costs.latency_ns);
    EXPECT_NEAR(bubble_rate(cost, row), row.interleaved, .0003);
  }
}

}  // namespace
}  // namespace frostpipe
