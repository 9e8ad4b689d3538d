#include "simulator/simulate_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace frostpipe {
namespace {

using ::testing::ElementsAre;

/// F, I and W take 1 ms each, so B = 2 ms.
constexpr UniformCosts kOneMillisecondEach{
    .forward_ns = 1'000'000, .input_gradient_ns = 1'000'000, .weight_gradient_ns = 1'000'000};

ScheduleSimulation simulation_of(const std::string& name, int ranks, int micro_batches,
                                 double weight_gradient_share = 1) {
  const Schedule schedule = build_schedule(name, {.pipeline_parallel_size = ranks, .num_micro_batches = micro_batches});
  return simulate_schedule(schedule, kOneMillisecondEach, weight_gradient_share);
}

TEST(SimulateSchedule, GPipeHasItsClosedForms) {
  // (m + p - 1)(F + B) = 11 x 3 ms, of which (p - 1) / (m + p - 1) is idle.
  const ScheduleSimulation found = simulation_of("GPipe", 4, 8);
  EXPECT_EQ(found.summary.makespan_ns, 33'000'000);
  EXPECT_DOUBLE_EQ(found.summary.bubble_fraction, 3.0 / 11);
  EXPECT_DOUBLE_EQ(found.span_bubble_fraction, 3.0 / 11) << "the first rank waits from its last F to its first B";
  EXPECT_THAT(found.summary.peak_in_flight, ElementsAre(8, 8, 8, 8));
  EXPECT_EQ(found.engine, "fast path");
}

TEST(SimulateSchedule, DoubleBufferedWeightsLeaveNoBubbleBetweenIterations) {
  // PipeDream-2BW: an iteration costs its work, m (F + B); a single one is 1F1B, (m + p - 1)(F + B).
  const ScheduleSimulation found = simulation_of("PipeDream-2BW", 4, 4);
  EXPECT_EQ(found.summary.makespan_ns, 21'000'000);
  EXPECT_EQ(found.summary.iteration_ns, 12'000'000);
  EXPECT_EQ(found.steady_bubble_fraction, 0);
  EXPECT_THAT(found.summary.peak_in_flight, ElementsAre(4, 3, 2, 1));
}

TEST(SimulateSchedule, ASteadyBubbleIsWhatTheIterationHasBesideItsWork) {
  for (const char* const name : {"GPipe", "1F1B", "ZB-H1"}) {
    const ScheduleSimulation found = simulation_of(name, 4, 8);
    const double work_ns = 8 * 3e6;
    EXPECT_NEAR(found.steady_bubble_fraction, 1 - work_ns / static_cast<double>(found.summary.iteration_ns), 1e-12)
        << name;
  }
}

TEST(SimulateSchedule, AWeightGradientKeepsItsShareInFlight) {
  // ZB-H1 holds p micro-batches on every rank; on the last one some of them only wait for their W.
  EXPECT_LT(simulation_of("ZB-H1", 4, 8, 0.5).summary.peak_in_flight.back(),
            simulation_of("ZB-H1", 4, 8, 1).summary.peak_in_flight.back());
}

}  // namespace
}  // namespace frostpipe
