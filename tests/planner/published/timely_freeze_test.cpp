// Oracles: closed forms, the simulator if no ratio is free, and random ratios, none of which may be faster.
#include "planner/published/timely_freeze.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "base/error.h"
#include "plan/schedule_rows.h"
#include "planner/auto_zero_bubble_plan.h"
#include "planner/published/auto_zero_bubble.h"
#include "simulator/simulate.h"
#include "simulator/table_cost_model.h"

namespace frostpipe {
namespace {

Schedule lowered(const std::string& name, int p, int m) {
  return lower(build_schedule(name, {.pipeline_parallel_size = p, .num_micro_batches = m}));
}

/// Simulates with ratios that are the same for all of a stage's micro-batches, or 0.
Nanoseconds simulated(const Schedule& schedule, const std::vector<StageDurations>& stages,
                      const std::vector<double>& ratio) {
  std::vector<std::vector<StageTimes>> times;
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    times.push_back({{.forward_ns = stages[stage].forward_ns,
                      .backward_ns = stages[stage].input_gradient_ns +
                                     static_cast<Nanoseconds>((1 - ratio[stage]) *
                                                              static_cast<double>(stages[stage].weight_gradient_ns))}});
  const TableCostModel costs(times, std::vector<Segment>(stages.size()));
  return simulate_timing(schedule, {.pipeline_parallel_size = static_cast<int>(stages.size())}, costs, 1)
      .iteration_end_ns.front();
}

TEST(TimelyFreeze, OneStageFreezesAsMuchAsItMay) {
  // m (F + I + (1 - r) W) = 4 (10 + 20 + 0.6 x 30).
  const TimelyFreeze made = timely_freeze(lowered("1F1B", 1, 4), {{10000, 20000, 30000}}, 0, 0.4);
  EXPECT_NEAR(static_cast<double>(made.makespan_ns), 4 * 48000.0, 5);
  EXPECT_NEAR(std::accumulate(made.ratio[0].begin(), made.ratio[0].end(), 0.0), 1.6, 1e-3);
}

TEST(TimelyFreeze, FreezesNothingWhereTheSlowerStageHidesIt) {
  // Stage 1 takes ten times as long, so stage 0 waits for it anyway, except for its last backward (and those for which
  // the last ones wait).
  const TimelyFreeze made = timely_freeze(lowered("1F1B", 2, 8), {{1000, 1000, 1000}, {10000, 10000, 10000}}, 0, 0.5);
  EXPECT_LE(std::accumulate(made.ratio[0].begin(), made.ratio[0].end(), 0.0), 1.001);
  EXPECT_NEAR(std::accumulate(made.ratio[1].begin(), made.ratio[1].end(), 0.0), 4, 1e-2);
}

TEST(TimelyFreeze, IsTheSimulatedIterationWhereNothingOrAllMayFreezeAndNeverAboveAnyRatios) {
  std::mt19937 random(41);
  for (int round = 0; round < 60; ++round) {
    const int p = 1 + static_cast<int>(random() % 4), m = 1 + static_cast<int>(random() % 6);
    const Schedule schedule = lowered(random() % 2 ? "1F1B" : "GPipe", p, m);
    std::vector<StageDurations> stages(p);
    for (auto& stage : stages) {
      const auto draw = [&] { return static_cast<Nanoseconds>(1000 + random() % 9000); };
      stage = {draw(), draw(), draw()};
    }
    const auto none = static_cast<double>(simulated(schedule, stages, std::vector<double>(p, 0)));
    const auto all = static_cast<double>(simulated(schedule, stages, std::vector<double>(p, 1)));
    EXPECT_NEAR(static_cast<double>(timely_freeze(schedule, stages, 0, 0).makespan_ns), none, 1 + 1e-6 * none);
    EXPECT_NEAR(static_cast<double>(timely_freeze(schedule, stages, 0, 1).makespan_ns), all, 1 + 1e-4 * none);
    const auto best = static_cast<double>(timely_freeze(schedule, stages, 0, 0.3).makespan_ns);
    for (int other = 0; other < 5; ++other) {
      std::vector<double> ratio(p);
      for (double& one : ratio) one = 0.3 * static_cast<double>(random() % 1000) / 1000;
      EXPECT_LE(best, static_cast<double>(simulated(schedule, stages, ratio)) + 1e-4 * none);
    }
  }
}

TEST(TimelyFreeze, RefusesOtherRatiosAndSchedules) {
  EXPECT_THROW(timely_freeze(lowered("1F1B", 1, 1), {{1, 1, 1}}, 0, 1.5), InvalidInput);
  EXPECT_THROW(timely_freeze(lowered("1F1B", 2, 2), {{1, 1, 1}}, 0, 0.5), InvalidInput);
}

/// For two stages that take equally long.
std::string timely_freeze_refusal(const Schedule& schedule) {
  try {
    timely_freeze(schedule, {{10, 20, 30}, {10, 20, 30}}, 0, 0.5);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(TimelyFreeze, RefusesSplitBackwardsAlsoOfAListWithANameOfItsOwn) {
  const std::string rule =
      "schedule: must compute each backward in one piece for TimelyFreeze's linear program (try 1F1B or GPipe), is ";
  const ScheduleShape shape{.pipeline_parallel_size = 2, .num_micro_batches = 4};
  Phase phase;
  phase.layout.pipeline_parallel_size = 2;
  phase.partition = {{0, 2}, {2, 6}};
  phase.num_micro_batches = 4;
  const UniformCosts costs{.forward_ns = 10, .input_gradient_ns = 20, .weight_gradient_ns = 30};
  set_schedule_rows(phase, kAutoZeroBubble, rows_of(to_csv(auto_zero_bubble(shape, costs, 2))), "a test");
  EXPECT_EQ(timely_freeze_refusal(schedule_of(phase)), rule + kAutoZeroBubble);
  EXPECT_EQ(timely_freeze_refusal(lowered("ZB-H1", 2, 4)), rule + "ZB-H1");
  set_schedule_rows(phase, "mine.csv", rows_of(to_csv(one_f_one_b(shape))), "a test");
  EXPECT_EQ(timely_freeze_refusal(schedule_of(phase)), "");  // by rows with unsplit backwards
}

TEST(TimelyFreeze, RefusesIterationsThatOverlap) {
  EXPECT_EQ(timely_freeze_refusal(lowered("PipeDream-2BW", 2, 4)),
            "schedule: must end an iteration before the next for TimelyFreeze's linear program (try 1F1B or GPipe), is "
            "PipeDream-2BW");
}

}  // namespace
}  // namespace frostpipe
