// Measures how many actions per second the simulator interprets. The planner simulates every candidate, so this limits
// its speed. Items per second = actions (compute, sends, receives, whole-stage actions) of all ranks.
#include <benchmark/benchmark.h>

#include "simulator/simulate.h"

namespace frostpipe {
namespace {

const UniformCostModel kCosts({.forward_ns = 1'000'000,
                               .input_gradient_ns = 1'000'000,
                               .weight_gradient_ns = 1'000'000,
                               .latency_ns = 20'000,
                               .occupancy_ns = 50'000});

std::int64_t num_actions(const Schedule& schedule) {
  std::int64_t count = 0;
  for (const auto& list : schedule.body) count += static_cast<std::int64_t>(list.size());
  return count;
}

struct Pipeline {
  Schedule schedule;
  ParallelLayout layout;
};

Pipeline pipeline_of(const benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  return {.schedule = lower(
              one_f_one_b({.pipeline_parallel_size = ranks, .num_micro_batches = static_cast<int>(state.range(1))})),
          .layout = {.pipeline_parallel_size = ranks}};
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"ranks", "micro_batches"})->ArgsProduct({{8, 64}, {64, 512}})->Unit(benchmark::kMicrosecond);
}

/// Runs the whole simulation: makes the schedule, lowers it, resolves it and times it.
void build_and_time_1f1b(benchmark::State& state) {
  std::int64_t actions = 0;
  for (auto _ : state) {
    const Pipeline pipeline = pipeline_of(state);
    benchmark::DoNotOptimize(simulate_timing(pipeline.schedule, pipeline.layout, kCosts, 1));
    actions = num_actions(pipeline.schedule);
  }
  state.SetItemsProcessed(state.iterations() * actions);
}
BENCHMARK(build_and_time_1f1b)->Apply(sizes);

void time_1f1b(benchmark::State& state) {
  const Pipeline pipeline = pipeline_of(state);
  for (auto _ : state) benchmark::DoNotOptimize(simulate_timing(pipeline.schedule, pipeline.layout, kCosts, 1));
  state.SetItemsProcessed(state.iterations() * num_actions(pipeline.schedule));
}
BENCHMARK(time_1f1b)->Apply(sizes);

void trace_1f1b(benchmark::State& state) {
  const Pipeline pipeline = pipeline_of(state);
  for (auto _ : state) benchmark::DoNotOptimize(simulate(pipeline.schedule, pipeline.layout, kCosts, 1));
  state.SetItemsProcessed(state.iterations() * num_actions(pipeline.schedule));
}
BENCHMARK(trace_1f1b)->Apply(sizes);

void events_1f1b(benchmark::State& state) {
  const Pipeline pipeline = pipeline_of(state);
  for (auto _ : state) benchmark::DoNotOptimize(simulate_by_events(pipeline.schedule, pipeline.layout, kCosts, 1));
  state.SetItemsProcessed(state.iterations() * num_actions(pipeline.schedule));
}
BENCHMARK(events_1f1b)->Apply(sizes);

/// A GPT of a trillion parameters on 3,072 devices (p = 64, t = 8, d = 6, m = 512, v = 2): each of the 48 pipelines is
/// simulated separately.
void trillion_parameters(benchmark::State& state) {
  const ParallelLayout layout{.pipeline_parallel_size = 64, .data_parallel_size = 48};
  std::int64_t actions = 0;
  for (auto _ : state) {
    const Schedule schedule =
        lower(interleaved_one_f_one_b({.pipeline_parallel_size = 64, .num_micro_batches = 512, .virtual_stages = 2}));
    benchmark::DoNotOptimize(simulate_timing(schedule, layout, kCosts, 1));
    actions = 48 * num_actions(schedule);
  }
  state.SetItemsProcessed(state.iterations() * actions);
}
BENCHMARK(trillion_parameters)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace frostpipe
