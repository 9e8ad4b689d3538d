// How many actions a second does the simulator interpret? Training plans are chosen by simulating every candidate, so
// this bounds the planner. Sizes: ranks x micro-batches of 1F1B; one iteration (resolving the schedule included) and
// eight. Items per second = actions (compute, sends, receives, whole-stage actions) of all ranks.
#include <benchmark/benchmark.h>

#include "simulator/simulate.h"

namespace frostpipe {
namespace {

std::int64_t num_actions(const Schedule& schedule) {
  std::int64_t count = 0;
  for (const auto& list : schedule.body) count += static_cast<std::int64_t>(list.size());
  return count;
}

void simulate_1f1b(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  const int micro_batches = static_cast<int>(state.range(1));
  const int iterations = static_cast<int>(state.range(2));
  const Schedule schedule = lower(one_f_one_b({.pipeline_parallel_size = ranks, .num_micro_batches = micro_batches}));
  const ParallelLayout layout{
      .pipeline_parallel_size = ranks, .data_parallel_size = 1, .tensor_parallel_size = 1, .placement = {}};
  const UniformCostModel costs(
      {.forward_ns = 1'000'000, .input_gradient_ns = 1'000'000, .weight_gradient_ns = 1'000'000, .latency_ns = 20'000});
  for (auto _ : state) benchmark::DoNotOptimize(simulate(schedule, layout, costs, iterations));
  state.SetItemsProcessed(state.iterations() * iterations * num_actions(schedule));
}
BENCHMARK(simulate_1f1b)
    ->ArgNames({"ranks", "micro_batches", "iterations"})
    ->ArgsProduct({{2, 8, 64}, {8, 64, 512}, {1, 8}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace frostpipe
