#include "plan/memory.h"

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::chain_model;
using examples::cluster_of;
using examples::flat_profile;
using examples::message_of;

/// Two blocks on two stages, [0,3) [3,6): layers of 1000 400 800 | 400 800 30 parameters; 2 micro-batches of 4 samples.
Phase two_stages() {
  Phase phase;
  phase.layout.pipeline_parallel_size = 2;
  phase.partition = {{0, 3}, {3, 6}};
  phase.num_micro_batches = 2;
  phase.tokens = 16;
  return phase;
}

std::vector<RankMemory> memory(const Phase& phase, std::string_view optimizer = "adamw") {
  return memory_of(phase, 8, optimizer, "float32", flat_profile(chain_model(2), 4, 16), cluster_of(2));
}

TEST(Memory, IsWeightsGradientsTwoMomentsStashAndWorkspace) {
  // Each layer: 100 B output, 1000 B stashed, 10 B workspace (examples.h); 4 bytes per parameter.
  const auto positions = memory(two_stages());
  ASSERT_EQ(positions.size(), 2u);
  EXPECT_EQ(positions[0], (RankMemory{.weights = 2200 * 4,
                                      .gradients = 2200 * 4,
                                      .optimizer_state = 2 * 2200 * 4,
                                      .stash = 2 * 3 * 1000,     // two in flight, three layers
                                      .workspace = 10 + 100}));  // and the activation it sends
  EXPECT_EQ(positions[1], (RankMemory{.weights = 1230 * 4,
                                      .gradients = 1230 * 4,
                                      .optimizer_state = 2 * 1230 * 4,
                                      .stash = 1 * (3 * 1000 + 100),  // one in flight, with its input
                                      .workspace = 10 + 100}));
  EXPECT_EQ(positions[1].total(), 4 * 1230 * 4 + 3100 + 110);
}

TEST(Memory, IsThatOfTheLongestSample) {
  Phase phase = two_stages();
  phase.tokens = 5;  // not measured: only the longest sample's 16 tokens may be asked for
  phase.longest_tokens = 16;
  EXPECT_EQ(memory(phase), memory(two_stages()));
}

TEST(Memory, SgdHasNoMoments) { EXPECT_EQ(memory(two_stages(), "sgd")[0].optimizer_state, 0); }

TEST(Memory, FrozenLayersKeepWeightsOnly) {
  Phase phase = two_stages();
  phase.first_trainable_layer = 5;  // both blocks frozen, inside stage 1
  const auto positions = memory(phase);
  EXPECT_EQ(positions[0], (RankMemory{.weights = 2200 * 4, .workspace = 10 + 100 + 100}));
  EXPECT_EQ(positions[1], (RankMemory{.weights = 1230 * 4,
                                      .gradients = 30 * 4,
                                      .optimizer_state = 2 * 30 * 4,
                                      .stash = 1000 + 100,  // the head, and its input
                                      .workspace = 10 + 100 + 100}));
}

TEST(Memory, MoreMicroBatchesAreInFlightUnderGPipe) {
  Phase phase = two_stages();
  phase.schedule = "GPipe";
  EXPECT_EQ(memory(phase)[1].stash, 2 * (3 * 1000 + 100));
}

TEST(Memory, WhatDoesNotFitNamesStageRankAndParts) {
  const Phase phase = two_stages();
  const auto positions = memory(phase);
  EXPECT_EQ(what_does_not_fit(phase, positions, cluster_of(2)), "");
  EXPECT_EQ(what_does_not_fit(phase, positions, cluster_of(2, positions[0].total())), "");
  EXPECT_EQ(
      what_does_not_fit(phase, positions, cluster_of(2, 40 << 10)),
      "stage 0 needs 40.3 KiB (weights 8.59 KiB, gradients 8.59 KiB, optimizer 17.2 KiB, stash 5.86 KiB, workspace "
      "110 B), rank 0 has 40.0 KiB");
}

TEST(Memory, EveryReplicaMustFit) {
  Phase phase = two_stages();
  phase.layout.data_parallel_size = 2;
  Cluster cluster = cluster_of(4);
  cluster.devices[3].memory_limit_bytes = 1;
  EXPECT_THAT(what_does_not_fit(phase, memory(two_stages()), cluster), testing::EndsWith("rank 3 has 1 B"));
}

TEST(Memory, NamesOfTypesAndOptimizersAreChecked) {
  EXPECT_EQ(bytes_per_value("float32"), 4);
  EXPECT_EQ(bytes_per_value("float64"), 8);
  EXPECT_EQ(bytes_per_value("bfloat16"), 2);
  EXPECT_EQ(message_of([] { bytes_per_value("int3"); }), "dtype: must be float32, float64 or bfloat16, is \"int3\"");
  EXPECT_EQ(message_of([] { optimizer_moments("adam"); }), "optimizer: must be adamw or sgd, is \"adam\"");
}

}  // namespace
}  // namespace frostpipe
