#include <fmt/format.h>

#include "papers/published_suites.h"
#include "papers/zero_bubble_table5.h"
#include "planner/published/auto_zero_bubble.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

double rate_of(const Schedule& compute, const zero_bubble::Table5Row& row) {
  const int p = num_pipeline_ranks(compute), v = num_stages(compute) / p;
  UniformCosts costs = zero_bubble::costs_of(row);
  for (Nanoseconds* const time : {&costs.forward_ns, &costs.input_gradient_ns, &costs.weight_gradient_ns}) *time /= v;
  const Schedule schedule = lower(compute);
  const Timing timing = simulate_timing(schedule, {.pipeline_parallel_size = p}, UniformCostModel(costs), 1);
  return zero_bubble::bubble_rate(static_cast<double>(summarize(timing, schedule).longest_rank_span_ns), row);
}

}  // namespace

PublishedTable zero_bubble_table() {
  PublishedTable table{.suite = "zero-bubble",
                       .source = "Qi et al., ICLR 2024: Table 5, bubble rates from the times of Table 9",
                       .rows = {}};
  constexpr const char* kModels[] = {"1.5B", "6.2B", "14.6B", "28.3B"};
  int index = 0;
  for (const zero_bubble::Table5Row& row : zero_bubble::kTable5) {
    const ScheduleShape shape{.pipeline_parallel_size = row.p, .num_micro_batches = row.m};
    ScheduleShape interleaved = shape;
    interleaved.virtual_stages = row.v;
    const std::string run = fmt::format("{}, p {} m {}", kModels[index++ / 3], row.p, row.m);
    const auto add = [&](const char* group, double published, double ours, const char* note = "") {
      table.rows.push_back({.group = group,
                            .what = "bubble rate",
                            .run = fmt::format("{}, {}", group, run),
                            .measured = published,
                            .predicted = ours,
                            .note = note});
    };
    add("1F1B", row.one_f_one_b, rate_of(one_f_one_b(shape), row));
    add("1F1B interleaved", row.interleaved, rate_of(interleaved_one_f_one_b(interleaved), row),
        "the paper leaves p latencies out");
    add("ZB-H1", row.h1, rate_of(zero_bubble_h1(shape), row));
    add("ZB-H2", row.h2, rate_of(zero_bubble_h2(shape), row));
    add("ZB-2p, automatic", row.automatic_2p,
        rate_of(auto_zero_bubble(shape, zero_bubble::costs_of(row), 2 * row.p), row),
        "a different heuristic, at most 0.005 worse");
  }
  return table;
}

}  // namespace frostpipe
