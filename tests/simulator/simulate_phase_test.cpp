#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "simulator/simulate.h"
#include "tests/plan/examples.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

using test::free_cluster;
using test::synthetic_profile;
using test::SyntheticLayer;

constexpr Optimizer kOptimizer = Optimizer::kAdamW;
constexpr DType kDtype = DType::kFloat32;

Phase phase_of(const Partition& partition, int replicas, int num_micro_batches, int first_trainable_layer) {
  Phase phase;
  phase.first_trainable_layer = first_trainable_layer;
  phase.layout.pipeline_parallel_size = static_cast<int>(partition.size());
  phase.layout.data_parallel_size = replicas;
  phase.partition = partition;
  phase.num_micro_batches = num_micro_batches;
  phase.tokens = test::kSyntheticTokens;
  return phase;
}

Nanoseconds end_of_step(const Trace& trace, int step) {
  Nanoseconds end = 0;
  for (const Span& span : trace.spans) {
    if (span.step == step) end = std::max(end, span.end_ns);
  }
  return end;
}

TEST(SimulatePhase, AddsPipelineAndUpdate) {
  // Two stages of two layers, two micro-batches of one sample. F = 2; stage 0: B = 10 + 200, stage 1: B = 20 + 200.
  // rank 0: 0F0 0-2 0F1 2-4, rank 1: 1F0 2-4 1B0 4-224 1F1 224-226 1B1 226-446, rank 0: 0B0 224-434 0B1 446-656; the
  // update takes 100.
  SyntheticLayer layer;
  layer.update_ns = 50;
  const Profile profile = synthetic_profile(1, {layer});
  const Cluster cluster = free_cluster(2);
  const auto result = simulate_phase(phase_of({{0, 2}, {2, 4}}, 1, 2, 0), {/*global_batch_size=*/2, kOptimizer, kDtype},
                                     profile, cluster);
  EXPECT_EQ(result.summary.makespan_ns, 656 + 100);
  EXPECT_EQ(result.summary.iteration_ns, 756);
  EXPECT_EQ(result.summary.busy_ns, (std::vector<Nanoseconds>{2 * 212, 2 * 222}));
}

TEST(SimulatePhase, TheTimelineIsOneIterationAlone) {
  const Profile profile = synthetic_profile(2, {SyntheticLayer{}});
  Cluster cluster = free_cluster(2);
  cluster.intra_node.point_to_point.latency_ns = 9;
  for (const int first_trainable : {0, 3, 5}) {
    const Phase phase = phase_of({{0, 3}, {3, 6}}, 1, 3, first_trainable);
    const auto result = simulate_phase(phase, {6, kOptimizer, kDtype}, profile, cluster);
    const ProfileCostModel costs(phase, {6, kOptimizer, kDtype}, profile, cluster);
    EXPECT_EQ(result.timeline, simulate(schedule_of(phase), phase.layout, costs, 1));
  }
}

TEST(SimulatePhase, AWhollyFrozenStageRunsAhead) {
  // Stage 0 is frozen with F = 2000. Stage 1 trains layer 3 with F = 1000 + 1, B = 100. With one micro-batch the first
  // iteration takes 2000 + 1101; after that the slower stage 0 determines the period.
  const Profile profile = synthetic_profile(1, {SyntheticLayer{}});
  const Cluster cluster = free_cluster(2);
  const auto result = simulate_phase(phase_of({{0, 2}, {2, 4}}, 1, 1, 3), {1, kOptimizer, kDtype}, profile, cluster);
  EXPECT_EQ(result.summary.makespan_ns, 3101);
  EXPECT_EQ(result.summary.iteration_ns, 2000);
}

// F = 10, B = 20, no messages. A flush costs (p - 1)(F + B). Where iterations overlap, all ranks still synchronize for
// the norm: rank 0's last backward ends (p - 1) B after that of rank p - 1.
TEST(SimulatePhase, IterationsThatOverlapStillSynchronize) {
  const Profile profile =
      synthetic_profile(3, {{.forward_ns = 10, .input_gradient_ns = 0, .weight_gradient_ns = 20, .update_ns = 0}});
  const Cluster cluster = free_cluster(8);
  for (const int p : {1, 2, 4, 8}) {
    Partition partition;
    for (int stage = 0; stage < p; ++stage) partition.push_back({8 * stage / p, 8 * (stage + 1) / p});
    const Nanoseconds forward = 80 / p, backward = 160 / p;
    for (const int m : {8, 9, 16}) {
      Phase phase = phase_of(partition, 1, m, 0);
      const auto iteration_ns = [&] {
        const StepSettings settings{m, kOptimizer, kDtype};
        const Nanoseconds found = simulate_phase(phase, settings, profile, cluster).summary.iteration_ns;
        EXPECT_EQ(simulated_iteration_ns(phase, settings, profile, cluster), found);
        return found;
      };
      EXPECT_EQ(iteration_ns(), (m + p - 1) * (forward + backward)) << p << " " << m;
      phase.schedule = "PipeDream-2BW";
      EXPECT_EQ(iteration_ns(), m * (forward + backward) + (p - 1) * backward) << p << " " << m;
    }
  }
}

/// Equal layers, one per stage, with a forward of 12 / v and a backward of 24 / v per micro-batch: 12 and 24 per rank.
Phase looped_phase(const std::string& schedule, int p, int v, int m) {
  Partition partition;
  for (int stage = 0; stage < p * v; ++stage) partition.push_back({stage, stage + 1});
  Phase phase = phase_of(partition, 1, m, 0);
  phase.layout.pipeline_parallel_size = p;
  phase.virtual_stages = v;
  phase.schedule = schedule;
  return phase;
}

// Narayanan et al. 2021: the bubble of 1F1B divided by v. These are the figures of golden_schedules_test.cpp, in units
// of F = I = W, for phases.
TEST(SimulatePhase, SeveralStagesPerRankDivideTheBubble) {
  constexpr Nanoseconds kForward = 12, kUnit = 12;
  const auto iteration_of = [](const std::string& schedule, int p, int v, int m) {
    const SyntheticLayer layer{.forward_ns = kForward / v, .input_gradient_ns = 0, .weight_gradient_ns = 24 / v};
    const Phase phase = looped_phase(schedule, p, v, m);
    return simulated_iteration_ns(phase, {m, kOptimizer, kDtype}, synthetic_profile(p * v / 2 - 1, {layer}),
                                  free_cluster(p));
  };
  for (const int p : {2, 4, 6})
    for (const int v : {1, 2, 3, 4})
      for (const int m : {p, 2 * p, 5 * p})
        for (const char* schedule : {"Interleaved1F1B", "LoopedBFS"})
          EXPECT_EQ(iteration_of(schedule, p, v, m), 36 * m + 36 * (p - 1) / v)
              << schedule << p << " " << v << " " << m;
  EXPECT_EQ(iteration_of("Interleaved1F1B", 4, 2, 8), 28.5 * kUnit);
  EXPECT_EQ(iteration_of("Interleaved1F1B", 4, 4, 8), 26.25 * kUnit);
  EXPECT_EQ(iteration_of("LoopedBFS", 8, 2, 24), 82.5 * kUnit);
}

// One micro-batch passes all p v stages and back, with messages between ranks and none within a rank.
TEST(SimulatePhase, StagesOfOneRankHandOverForNothing) {
  const SyntheticLayer layer{.forward_ns = 5, .input_gradient_ns = 0, .weight_gradient_ns = 7};
  for (const int p : {1, 2, 4}) {
    const int v = 8 / p;
    Cluster cluster = free_cluster(p);
    cluster.intra_node.point_to_point.latency_ns = 100;
    const Nanoseconds time = simulated_iteration_ns(looped_phase("Interleaved1F1B", p, v, 1), {1, kOptimizer, kDtype},
                                                    synthetic_profile(3, {layer}), cluster);
    EXPECT_EQ(time, 8 * 12 + (p == 1 ? 0 : 2 * 7 * 100));
  }
}

TEST(SimulatePhase, ItsPeriodIsThatOfALongRun) {
  std::mt19937 random(4);
  for (int round = 0; round < 150; ++round) {
    std::vector<SyntheticLayer> layers(8);
    for (auto& layer : layers) {
      layer = {.forward_ns = 1 + static_cast<Nanoseconds>(random() % 50),
               .input_gradient_ns = static_cast<Nanoseconds>(random() % 50),
               .weight_gradient_ns = static_cast<Nanoseconds>(random() % 50),
               .frozen_forward_ns = static_cast<Nanoseconds>(random() % 50),
               .update_ns = static_cast<Nanoseconds>(random() % 200),
               .output_activation_bytes = static_cast<Bytes>(random() % 20)};
    }
    const Profile profile = synthetic_profile(3, layers);
    Cluster cluster = free_cluster(6);
    cluster.intra_node.point_to_point = {.latency_ns = static_cast<Nanoseconds>(random() % 30),
                                         .bandwidth_bytes_per_second = 1'000'000'000};
    const bool deep = round % 2 == 0;
    const int frozen = static_cast<int>(random() % 4);
    Phase phase = phase_of(deep ? Partition{{0, 3}, {3, 6}, {6, 8}} : Partition{{0, 5}, {5, 8}}, deep ? 2 : 1,
                           1 + static_cast<int>(random() % 6), first_trainable_layer(profile.model, frozen));
    phase.schedule = random() % 2 == 0 ? "GPipe" : "1F1B";
    if (round % 3 == 0) {
      phase.partition = {{0, 1}, {1, 3}, {3, 5}, {5, 8}};
      phase.layout.pipeline_parallel_size = phase.virtual_stages = 2;
      phase.schedule = phase.schedule == "1F1B" && phase.num_micro_batches != 5 ? "Interleaved1F1B" : "LoopedBFS";
    }
    const ProfileCostModel costs(phase, {24, kOptimizer, kDtype}, profile, cluster);
    const Trace trace = simulate(schedule_of(phase), phase.layout, costs, 40);
    const Nanoseconds period = simulate_phase(phase, {24, kOptimizer, kDtype}, profile, cluster).summary.iteration_ns;
    EXPECT_EQ(period, end_of_step(trace, 39) - end_of_step(trace, 38)) << "round " << round;
    EXPECT_EQ(period, simulated_iteration_ns(phase, {24, kOptimizer, kDtype}, profile, cluster));
  }
}

TEST(ReconfigurationNs, MovesIntoOneRankFollowEachOther) {
  Cluster cluster = free_cluster(4);
  cluster.intra_node.point_to_point = {.latency_ns = 1, .bandwidth_bytes_per_second = 1'000'000'000};
  Reconfiguration change;
  change.moves = {{.layer = 0, .from_rank = 0, .to_rank = 1, .bytes = 10},
                  {.layer = 1, .from_rank = 2, .to_rank = 1, .bytes = 20},
                  {.layer = 2, .from_rank = 0, .to_rank = 3, .bytes = 5}};
  // 0 -> 1 until 11; 2 -> 1 until 11 + 21; 0 -> 3 until 11 + 6.
  EXPECT_EQ(reconfiguration_ns(change, cluster), 32);
  change.regroup = true;
  EXPECT_EQ(reconfiguration_ns(change, cluster), 32 + kRegroupNs);
  cluster.regroup_ns = 7000;  // measured
  EXPECT_EQ(reconfiguration_ns(change, cluster), 32 + 7000);
  cluster.new_memory_bytes_per_second = 500'000'000;  // two more nanoseconds per byte: until 31, 92 and 47
  EXPECT_EQ(reconfiguration_ns(change, cluster), 92 + 7000);
}

/// A new replica of two tensor ranks: 1115 parameters of 4 bytes in 4 layers go to each of its ranks, side by side. In
/// the second case one rank sends both halves, one after the other.
TEST(ReconfigurationNs, TensorRanksMoveTheirPartsSideBySide) {
  Cluster cluster = free_cluster(4);
  cluster.intra_node.point_to_point = {.latency_ns = 1, .bandwidth_bytes_per_second = 1'000'000'000};
  Phase whole, two, twice;
  whole.partition = two.partition = twice.partition = {{0, 4}};
  two.layout.tensor_parallel_size = twice.layout.tensor_parallel_size = 2;
  twice.layout.data_parallel_size = 2;
  whole.layout.placement = {3};
  const auto price = [&](const Phase& before, const Phase& after) {
    Reconfiguration change = diff(before, after, examples::chain_model(1), Optimizer::kSgd, DType::kFloat32);
    change.regroup = false;
    return reconfiguration_ns(change, cluster);
  };
  EXPECT_EQ(price(two, twice), 4 * (1000 + 400 + 800 + 30) / 2 + 4);
  EXPECT_EQ(price(whole, two), 4 * (1000 + 400 + 800 + 30) + 2 * 4);
}

/// Oracle: bytes over the card's bandwidth. Two tensor ranks of a node send to another node at 1 byte per nanosecond
/// each, and both pass a card of 1 byte per nanosecond, in order.
TEST(ReconfigurationNs, MovesOverASharedLinkFollowEachOther) {
  Cluster cluster = free_cluster(4);
  cluster.devices[2].node = cluster.devices[3].node = 1;
  cluster.inter_node.point_to_point = {.latency_ns = 5, .bandwidth_bytes_per_second = 1'000'000'000};
  const Reconfiguration change{
      .moves = {{.layer = 0, .from_rank = 0, .to_rank = 2, .bytes = 10, .slice = slice_of(0, 2)},
                {.layer = 0, .from_rank = 1, .to_rank = 3, .bytes = 20, .slice = slice_of(1, 2)}}};
  EXPECT_EQ(reconfiguration_ns(change, cluster), 20 + 5);
  cluster.shared_links = {{"card", 1, 1'000'000'000}};
  EXPECT_EQ(reconfiguration_ns(change, cluster), 10 + 20 + 5);
  cluster.shared_links.front().bandwidth_bytes_per_second /= 10;
  EXPECT_EQ(reconfiguration_ns(change, cluster), 100 + 200 + 5);
}

TEST(ReconfigurationNs, NothingToDoTakesNoTime) { EXPECT_EQ(reconfiguration_ns({}, free_cluster(1)), 0); }

TEST(PredictedRunNs, SumsPhasesAndReconfigurations) {
  TrainingPlan plan;
  plan.num_steps = 10;
  plan.phases.resize(2);
  plan.phases[0].predicted.iteration_ns = 100;
  plan.phases[1].from_step = 7;
  plan.phases[1].predicted = {.iteration_ns = 10, .transformation_ns = 5, .peak_memory_bytes = {}};
  EXPECT_EQ(predicted_run_ns(plan), 7 * 100 + 5 + 3 * 10);
}

}  // namespace
}  // namespace frostpipe
