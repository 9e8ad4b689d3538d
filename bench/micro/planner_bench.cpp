// Measures whether planning is interactive: make_plan should take less than a second, and re-planning during a run
// (best_phase) much less than an iteration. The arguments are the numbers of Transformer blocks and ranks; costs are
// those of a small model on one CPU core.
#include <benchmark/benchmark.h>

#include <random>

#include "plan/memory.h"
#include "planner/make_plan.h"
#include "planner/published/pipedream.h"
#include "planner/search/best_phase.h"
#include "planner/search/partition.h"
#include "planner/search/slice_tokens.h"
#include "simulator/simulate.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

Profile profile_of(int blocks) {
  std::vector<test::SyntheticLayer> layers(2 * blocks + 2);
  for (auto& layer : layers) {
    layer = {.forward_ns = 1'000'000,
             .input_gradient_ns = 1'000'000,
             .weight_gradient_ns = 1'000'000,
             .frozen_forward_ns = 900'000,
             .update_ns = 300'000,
             .output_activation_bytes = 98'304,
             .saved_activation_bytes = 400'000,
             .workspace_bytes = 100'000,
             .parameter_count = 900'000};
  }
  return test::synthetic_profile(blocks, layers);
}

Cluster cluster_of(int ranks, Bytes memory_limit_bytes) {
  Cluster cluster = test::free_cluster(ranks, memory_limit_bytes);
  cluster.intra_node.point_to_point = {.latency_ns = 50'000, .bandwidth_bytes_per_second = 2'000'000'000};
  cluster.intra_node.collective = {.latency_ns = 100'000, .bandwidth_bytes_per_second = 1'000'000'000};
  return cluster;
}

PlanOptions options_of() {
  PlanOptions options;
  options.global_batch_size = 64;
  options.num_steps = 1000;
  options.tokens = test::kSyntheticTokens;
  return options;
}

void make_elastic_plan(benchmark::State& state) {
  const int blocks = static_cast<int>(state.range(0));
  const int ranks = static_cast<int>(state.range(1));
  const Profile profile = profile_of(blocks);
  const Cluster cluster = cluster_of(ranks, /*memory_limit_bytes=*/40'000'000 * blocks);
  std::size_t phases = 0;
  for (auto _ : state) {
    const PlanResult result = make_plan({profile, cluster, options_of()});
    phases = std::holds_alternative<TrainingPlan>(result) ? std::get<TrainingPlan>(result).phases.size() : 0;
  }
  state.counters["phases"] = static_cast<double>(phases);
}
BENCHMARK(make_elastic_plan)
    ->ArgNames({"blocks", "ranks"})
    ->ArgsProduct({{6, 12, 24}, {2, 4, 8, 16}})
    ->Unit(benchmark::kMillisecond);

/// Predicts every phase of an elastic run again, after a change: its time and memory.
void what_if_on_an_elastic_plan(benchmark::State& state) {
  const int blocks = static_cast<int>(state.range(0)), ranks = static_cast<int>(state.range(1));
  const Profile profile = profile_of(blocks);
  const Cluster cluster = cluster_of(ranks, /*memory_limit_bytes=*/40'000'000 * blocks);
  TrainingPlan plan = std::get<TrainingPlan>(make_plan({profile, cluster, options_of()}));
  for (auto _ : state) {
    for (Phase& phase : plan.phases) {
      phase.predicted.iteration_ns = simulated_iteration_ns(phase, step_settings(plan), profile, cluster);
      benchmark::DoNotOptimize(memory_of(phase, step_settings(plan), profile, cluster));
    }
    benchmark::DoNotOptimize(predicted_run_ns(plan));
  }
  state.counters["phases"] = static_cast<double>(plan.phases.size());
}
BENCHMARK(what_if_on_an_elastic_plan)
    ->ArgNames({"blocks", "ranks"})
    ->Args({6, 2})
    ->Args({24, 8})
    ->Unit(benchmark::kMillisecond);

void choose_one_phase(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  const Profile profile = profile_of(6);
  const Cluster cluster = cluster_of(ranks, 1'000'000'000);
  for (auto _ : state) benchmark::DoNotOptimize(best_phase({profile, cluster, options_of()}, ranks, 0));
}
BENCHMARK(choose_one_phase)->ArgName("ranks")->Arg(1)->Arg(2)->Arg(4)->Arg(8)->Unit(benchmark::kMillisecond);

void partition_exactly(benchmark::State& state) {
  std::mt19937 random(1);
  std::vector<Nanoseconds> cost(state.range(0));
  for (auto& one : cost) one = random() % 1000;
  const int stages = static_cast<int>(state.range(1));
  for (auto _ : state) benchmark::DoNotOptimize(partition_exact(cost, stages));
}
BENCHMARK(partition_exactly)
    ->ArgNames({"layers", "stages"})
    ->ArgsProduct({{100, 300, 1000}, {2, 8, 64}})
    ->Unit(benchmark::kMicrosecond);

/// TeraPipe's dynamic program for 2,048 tokens in steps of 8, on 96 stages, with the paper's tolerance of 0.1 ms and
/// times like those of its model with 175 billion parameters.
void slice_two_thousand_tokens(benchmark::State& state) {
  const auto time = [](int length, int context) {
    return std::max<Nanoseconds>(9'300'000, 6'000'000 + 47'000 * length * (1 + context / 70'000.0));
  };
  for (auto _ : state) benchmark::DoNotOptimize(slice_tokens(2048, 8, 96, 2, time, 100'000));
}
BENCHMARK(slice_two_thousand_tokens)->Unit(benchmark::kMillisecond);

void pipedream_on_servers(benchmark::State& state) {
  std::mt19937 random(1);
  std::vector<PipeDreamLayer> layers(state.range(0));
  for (auto& layer : layers)
    layer = {.compute_ns = 1e5 + random() % 1000000,
             .activation_bytes = 1.0 * (random() % 4000000),
             .parameter_bytes = 1.0 * (random() % 400000)};
  const int parts = static_cast<int>(state.range(1));
  for (auto _ : state)
    benchmark::DoNotOptimize(pipedream_plan(
        layers, {{.parts = parts, .bytes_per_second = 1e10}, {.parts = parts, .bytes_per_second = 1e9}}));
}
BENCHMARK(pipedream_on_servers)
    ->ArgNames({"layers", "GPUs and servers"})
    ->ArgsProduct({{100, 200, 400}, {4, 8}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace frostpipe
