// Oracle: the column ZB-2p of Zero Bubble's Table 5, an automatic schedule with 2 p micro-batches in flight.
#include "planner/published/auto_zero_bubble.h"

#include <gtest/gtest.h>

#include "papers/zero_bubble_table5.h"
#include "plan/memory.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

Nanoseconds longest_rank_span_ns(const Schedule& compute, const UniformCosts& costs) {
  const Schedule lowered = lower(compute);
  return summarize(simulate_timing(lowered, {.pipeline_parallel_size = num_pipeline_ranks(lowered)},
                                   UniformCostModel(costs), 1),
                   lowered)
      .longest_rank_span_ns;
}

TEST(AutoZeroBubble, IsNoWorseThanThePublishedOneWithinHalfAPoint) {
  for (const zero_bubble::Table5Row& row : zero_bubble::kTable5) {
    const UniformCosts costs = zero_bubble::costs_of(row);
    const Schedule found =
        auto_zero_bubble({.pipeline_parallel_size = row.p, .num_micro_batches = row.m}, costs, 2 * row.p);
    EXPECT_LE(zero_bubble::bubble_rate(static_cast<double>(longest_rank_span_ns(found, costs)), row),
              row.automatic_2p + .005)
        << "p " << row.p << " m " << row.m;
    for (const double peak : peak_in_flight(found, kWeightGradientShare)) EXPECT_LE(peak, 2 * row.p + 1e-9);
  }
}

TEST(AutoZeroBubble, IsNeverWorseThanTheHandmadeSchedulesThatFit) {
  for (const zero_bubble::Table5Row& row : zero_bubble::kTable5) {
    if (row.p > 16) continue;
    const UniformCosts costs = zero_bubble::costs_of(row);
    const ScheduleShape shape{.pipeline_parallel_size = row.p, .num_micro_batches = row.m};
    EXPECT_LE(longest_rank_span_ns(auto_zero_bubble(shape, costs, row.p), costs),
              longest_rank_span_ns(zero_bubble_h1(shape), costs));
    EXPECT_LE(longest_rank_span_ns(auto_zero_bubble(shape, costs, 2 * row.p - 1), costs),
              longest_rank_span_ns(zero_bubble_h2(shape), costs));
  }
}

TEST(AutoZeroBubble, KeepsItsMemoryLimitAndIsValid) {
  const UniformCosts costs{.forward_ns = 7, .input_gradient_ns = 6, .weight_gradient_ns = 5, .latency_ns = 2};
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 7; ++m) {
      for (int limit = 1; limit <= 2 * p; ++limit) {
        const Schedule found = auto_zero_bubble({.pipeline_parallel_size = p, .num_micro_batches = m}, costs, limit);
        EXPECT_NO_THROW(validate(lower(found)));
        for (const double peak : peak_in_flight(found, kWeightGradientShare))
          EXPECT_LE(peak, limit + 1e-9) << "p " << p << " m " << m;
        const Schedule strict =
            auto_zero_bubble({.pipeline_parallel_size = p, .num_micro_batches = m}, costs, limit, 1);
        for (const double peak : peak_in_flight(strict)) EXPECT_LE(peak, limit) << "p " << p << " m " << m;
      }
    }
  }
}

}  // namespace
}  // namespace frostpipe
