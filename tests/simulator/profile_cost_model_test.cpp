#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "simulator/cost_model.h"
#include "tests/plan/examples.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

using examples::message_of;
using test::free_cluster;
using test::synthetic_profile;
using test::SyntheticLayer;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Layers 0..3 are embedding, attention, MLP, head. The digits show what a time consists of: forward 1, input gradient
/// 10, weight gradient 100, frozen forward 1000, all times 1 + layer.
Profile digits() {
  std::vector<SyntheticLayer> layers;
  for (int layer = 0; layer < 4; ++layer) {
    layers.push_back({.forward_ns = layer + 1,
                      .input_gradient_ns = 10 * (layer + 1),
                      .weight_gradient_ns = 100 * (layer + 1),
                      .frozen_forward_ns = 1000 * (layer + 1),
                      .update_ns = 10000 * (layer + 1),
                      .output_activation_bytes = layer + 1,
                      .parameter_count = layer + 1});
  }
  return synthetic_profile(1, layers);
}

Phase frozen_phase_of(const Partition& partition, int replicas, int num_micro_batches, int first_trainable_layer) {
  Phase phase;
  phase.first_trainable_layer = first_trainable_layer;
  phase.layout.pipeline_parallel_size = static_cast<int>(partition.size());
  phase.layout.data_parallel_size = replicas;
  phase.partition = partition;
  phase.num_micro_batches = num_micro_batches;
  phase.tokens = test::kSyntheticTokens;
  return phase;
}

Nanoseconds only_compute(const CostModel& costs, const char* action, int pipeline_rank, int replica = 0) {
  const auto segments = costs.segments(parse_action(action, "test"), pipeline_rank, replica);
  EXPECT_EQ(segments.size(), 1U) << action;
  EXPECT_THAT(segments.at(0).collective_ranks, IsEmpty()) << action;
  return segments.at(0).duration_ns;
}

TEST(ProfileCostModel, SumsTheLayersOfAStage) {
  const Profile profile = digits();
  const Cluster cluster = free_cluster(2);
  const ProfileCostModel costs(frozen_phase_of({{0, 2}, {2, 4}}, 1, 2, 0), {.global_batch_size = 4}, profile, cluster);
  EXPECT_EQ(only_compute(costs, "0F0", 0), 2 * (1 + 2));
  EXPECT_EQ(only_compute(costs, "1F1", 1), 2 * (3 + 4));
  EXPECT_EQ(only_compute(costs, "1B0", 1), 2 * (30 + 40 + 300 + 400));
}

/// I and W are measured separately: I takes 50 per layer, W takes 80 plus the layer's number.
TEST(ProfileCostModel, PricesIAndWAsMeasuredApart) {
  std::vector<SyntheticLayer> layers;
  for (int layer = 0; layer < 4; ++layer)
    layers.push_back({.forward_ns = 1000,
                      .input_gradient_ns = 10,
                      .weight_gradient_ns = 100,
                      .split_backward = SplitBackward{.input_ns = 50, .weight_ns = 80 + layer}});
  const Profile profile = synthetic_profile(1, layers);
  Phase phase = frozen_phase_of({{0, 2}, {2, 4}}, 1, 2, 1);
  phase.schedule = "ZB-H1";
  phase.recompute = RecomputeMode::attention;
  const ProfileCostModel costs(phase, {.global_batch_size = 4}, profile, free_cluster(2));
  // Layer 1 is the first trainable layer: its backward of 100 has no input gradient, and 81 of it are W. Its forward is
  // recomputed.
  EXPECT_EQ(only_compute(costs, "0I0", 0), 2 * (100 - 81 + 1000));
  EXPECT_EQ(only_compute(costs, "0W0", 0), 2 * 81);
  EXPECT_EQ(only_compute(costs, "1I1", 1), 2 * (50 + 50));
  EXPECT_EQ(only_compute(costs, "1W1", 1), 2 * (82 + 83));
  EXPECT_EQ(
      message_of([&] { const ProfileCostModel none(phase, {.global_batch_size = 4}, digits(), free_cluster(2)); }),
      "profile: split_backward: must be measured for a schedule that splits it; profile again, is missing");
}

TEST(ProfileCostModel, TheRunsFirstTrainableLayerHasNoInputGradient) {
  const Profile profile = digits();
  const Cluster cluster = free_cluster(2);
  const ProfileCostModel unfrozen(frozen_phase_of({{0, 2}, {2, 4}}, 1, 1, 0), {.global_batch_size = 1}, profile,
                                  cluster);
  EXPECT_EQ(only_compute(unfrozen, "0B0", 0), 20 + 100 + 200);
  const ProfileCostModel frozen(frozen_phase_of({{0, 2}, {2, 4}}, 1, 1, 3), {.global_batch_size = 1}, profile, cluster);
  EXPECT_EQ(only_compute(frozen, "1B0", 1), 400);
}

TEST(ProfileCostModel, FrozenLayersCostTheirFrozenForwardOnAnyStage) {
  const Profile profile = digits();
  const Cluster cluster = free_cluster(2);
  const ProfileCostModel costs(frozen_phase_of({{0, 2}, {2, 4}}, 1, 1, 3), {.global_batch_size = 1}, profile, cluster);
  EXPECT_EQ(only_compute(costs, "0F0", 0), 1000 + 2000);
  EXPECT_EQ(only_compute(costs, "1F0", 1), 3000 + 4);
}

TEST(ProfileCostModel, MicroBatchSizesDifferByAtMostOne) {
  // 7 samples over 2 replicas with 2 micro-batches each: 2 2 | 2 1.
  const Profile profile = digits();
  const Cluster cluster = free_cluster(2);
  const ProfileCostModel costs(frozen_phase_of({{0, 4}}, 2, 2, 0), {.global_batch_size = 7}, profile, cluster);
  EXPECT_EQ(only_compute(costs, "0F0", 0, 0), 20);
  EXPECT_EQ(only_compute(costs, "0F1", 0, 0), 20);
  EXPECT_EQ(only_compute(costs, "0F0", 0, 1), 20);
  EXPECT_EQ(only_compute(costs, "0F1", 0, 1), 10);
}

TEST(ProfileCostModel, AMicroBatchWithoutSamplesCostsAndSendsNothing) {
  const Profile profile = digits();
  Cluster cluster = free_cluster(2);
  cluster.intra_node.point_to_point = {.latency_ns = 5, .bandwidth_bytes_per_second = 1'000'000'000};
  const ProfileCostModel costs(frozen_phase_of({{0, 2}, {2, 4}}, 1, 3, 0), {.global_batch_size = 2}, profile, cluster);
  EXPECT_EQ(only_compute(costs, "0F2", 0), 0);
  EXPECT_EQ(only_compute(costs, "0B2", 0), 0);
  EXPECT_EQ(costs.transfer(parse_action("0SEND_F2", "test"), 0), TransferCost{});
  EXPECT_EQ(costs.transfer(parse_action("1SEND_B2", "test"), 0), TransferCost{});
  EXPECT_EQ(costs.transfer(parse_action("0SEND_F1", "test"), 0).latency_ns, 5);
}

TEST(ProfileCostModel, BothDirectionsCarryTheActivationBeforeTheCut) {
  // The cut is after layer 1, whose output has 2 bytes per sample; 3 samples at 1 byte per ns.
  const Profile profile = digits();
  Cluster cluster = free_cluster(2);
  cluster.intra_node.point_to_point = {.latency_ns = 5, .bandwidth_bytes_per_second = 1'000'000'000};
  const ProfileCostModel costs(frozen_phase_of({{0, 2}, {2, 4}}, 1, 1, 0), {.global_batch_size = 3}, profile, cluster);
  const TransferCost expected{.occupancy_ns = 6, .latency_ns = 5};
  EXPECT_EQ(costs.transfer(parse_action("0SEND_F0", "test"), 0), expected);
  EXPECT_EQ(costs.transfer(parse_action("1SEND_B0", "test"), 0), expected);
}

TEST(ProfileCostModel, CrossesNodesByTheSlowerLink) {
  const Profile profile = digits();
  Cluster cluster = free_cluster(2);
  cluster.devices[1].node = 1;
  cluster.inter_node.point_to_point = {.latency_ns = 70, .bandwidth_bytes_per_second = 0};
  const ProfileCostModel costs(frozen_phase_of({{0, 2}, {2, 4}}, 1, 1, 0), {.global_batch_size = 1}, profile, cluster);
  EXPECT_EQ(costs.transfer(parse_action("0SEND_F0", "test"), 0).latency_ns, 70);
}

TEST(ProfileCostModel, GradientsOfTrainableLayersAreReducedOverReplicas) {
  // p = 2, d = 2: stage 1 is on ranks 2 and 3 and trains only layer 3 with 4 parameters = 16 bytes.
  const Profile profile = digits();
  Cluster cluster = free_cluster(4);
  cluster.intra_node.collective = {.latency_ns = 7, .bandwidth_bytes_per_second = 1'000'000'000};
  const ProfileCostModel costs(frozen_phase_of({{0, 2}, {2, 4}}, 2, 1, 3), {.global_batch_size = 2}, profile, cluster);
  const Segment expected{.duration_ns = all_reduce_ns(cluster, {2, 3}, 16), .collective_ranks = {2, 3}};
  EXPECT_THAT(costs.segments(parse_action("1REDUCE_GRAD", "test"), 1, 0), ElementsAre(expected));
  EXPECT_THAT(costs.segments(parse_action("1REDUCE_GRAD", "test"), 1, 1), ElementsAre(expected));
}

TEST(ProfileCostModel, OneReplicaReducesNothing) {
  const Profile profile = digits();
  const Cluster cluster = free_cluster(1);
  const ProfileCostModel costs(frozen_phase_of({{0, 4}}, 1, 1, 0), {.global_batch_size = 1}, profile, cluster);
  EXPECT_THAT(costs.segments(parse_action("0REDUCE_GRAD", "test"), 0, 0), IsEmpty());
  EXPECT_EQ(only_compute(costs, "0OPTIMIZER_STEP", 0), 100000);  // no other rank to synchronize with
}

TEST(ProfileCostModel, BothEndsAddTheGradientsOfTiedParametersUntilSomethingFreezes) {
  // p = 3, d = 2: replica 1 has ranks 1, 3, 5. One tied parameter has 4 bytes.
  Profile profile = digits();
  profile.model.tied_parameter_count = 1;
  Cluster cluster = free_cluster(6);
  cluster.intra_node.collective = {.latency_ns = 7, .bandwidth_bytes_per_second = 1'000'000'000};
  const ProfileCostModel costs(frozen_phase_of({{0, 1}, {1, 3}, {3, 4}}, 2, 1, 0), {.global_batch_size = 2}, profile,
                               cluster);
  const auto reduced = [&](std::vector<int> ranks, Bytes bytes) {
    return Segment{.duration_ns = all_reduce_ns(cluster, ranks, bytes), .collective_ranks = ranks};
  };
  EXPECT_THAT(costs.segments(parse_action("0REDUCE_GRAD", "test"), 0, 1),
              ElementsAre(reduced({0, 1}, 4), reduced({1, 5}, 4)));
  EXPECT_THAT(costs.segments(parse_action("1REDUCE_GRAD", "test"), 1, 1), ElementsAre(reduced({2, 3}, 20)));
  EXPECT_THAT(costs.segments(parse_action("2REDUCE_GRAD", "test"), 2, 0),
              ElementsAre(reduced({4, 5}, 16), reduced({0, 4}, 4)));
  const ProfileCostModel frozen(frozen_phase_of({{0, 1}, {1, 3}, {3, 4}}, 2, 1, 1), {.global_batch_size = 2}, profile,
                                cluster);
  EXPECT_THAT(frozen.segments(parse_action("2REDUCE_GRAD", "test"), 2, 0), ElementsAre(reduced({4, 5}, 16)));
  const ProfileCostModel one_stage(frozen_phase_of({{0, 4}}, 1, 1, 0), {.global_batch_size = 1}, profile,
                                   free_cluster(1));
  EXPECT_THAT(one_stage.segments(parse_action("0REDUCE_GRAD", "test"), 0, 0), IsEmpty());
}

TEST(ProfileCostModel, ReplicasAddTheRowsOfTheirTokensAlone) {
  // 2 samples of 8 tokens use 16 rows of 4 parameters, and there are 2 others; layer 1 has 2.
  Profile profile = digits();
  profile.model.layers[0].parameter_count = 100 * 4 + 2;
  profile.model.vocab_size = 100;
  Cluster cluster = free_cluster(2);
  cluster.intra_node.collective = {.latency_ns = 7, .bandwidth_bytes_per_second = 1'000'000'000};
  const ProfileCostModel costs(frozen_phase_of({{0, 4}}, 2, 1, 0), {.global_batch_size = 2}, profile, cluster);
  const Bytes bytes = 4 * (16 * 4 + 2 + 2 + 3 + 4);
  EXPECT_THAT(costs.segments(parse_action("0REDUCE_GRAD", "test"), 0, 0),
              ElementsAre(Segment{.duration_ns = all_reduce_ns(cluster, {0, 1}, bytes), .collective_ranks = {0, 1}}));
}

TEST(ProfileCostModel, AllTrainingRanksReduceTheNormBeforeTheUpdate) {
  const Profile profile = digits();
  Cluster cluster = free_cluster(4);
  cluster.intra_node.collective = {.latency_ns = 7, .bandwidth_bytes_per_second = 1'000'000'000};
  const ProfileCostModel costs(frozen_phase_of({{0, 2}, {2, 4}}, 2, 1, 0), {.global_batch_size = 2}, profile, cluster);
  EXPECT_THAT(costs.segments(parse_action("1OPTIMIZER_STEP", "test"), 1, 0),
              ElementsAre(Segment{all_reduce_ns(cluster, {0, 1, 2, 3}, 8), {0, 1, 2, 3}}, Segment{70000, {}}));
  // Stage 0 is wholly frozen, so its ranks have no optimizer step at which to synchronize.
  const ProfileCostModel frozen(frozen_phase_of({{0, 2}, {2, 4}}, 2, 1, 3), {.global_batch_size = 2}, profile, cluster);
  EXPECT_THAT(frozen.segments(parse_action("1OPTIMIZER_STEP", "test"), 1, 0),
              ElementsAre(Segment{all_reduce_ns(cluster, {2, 3}, 8), {2, 3}}, Segment{40000, {}}));
}

// Tensor rank 0 stands for the others, but all-reduces are over all of them.
TEST(ProfileCostModel, TensorRanksReduceTheNormToo) {
  Profile profile = digits();
  for (Measurement& one : profile.measurements) one.key.tensor_parallel_size = 2;
  Cluster cluster = free_cluster(4);
  cluster.devices[2].node = cluster.devices[3].node = 1;
  cluster.intra_node.collective = {.latency_ns = 7, .bandwidth_bytes_per_second = 1'000'000'000};
  cluster.inter_node.collective = {.latency_ns = 70, .bandwidth_bytes_per_second = 1'000'000'000};
  const auto step_of = [&](const Partition& partition, int replicas, int stage) {
    Phase phase = frozen_phase_of(partition, replicas, 1, 0);
    phase.layout.tensor_parallel_size = 2;
    const ProfileCostModel costs(phase, {.global_batch_size = 2}, profile, cluster);
    return costs.segments(parse_action(fmt::format("{}OPTIMIZER_STEP", stage), "test"), stage, 0);
  };
  // Updates take half of 100000 in all, and half of 70000.
  const Nanoseconds within = all_reduce_ns(cluster, {0, 1}, 8), over_all = all_reduce_ns(cluster, {0, 1, 2, 3}, 8);
  EXPECT_THAT(step_of({{0, 4}}, 1, 0), ElementsAre(Segment{within, {}}, Segment{50000, {}}));
  EXPECT_THAT(step_of({{0, 4}}, 2, 0), ElementsAre(Segment{over_all, {0, 2}}, Segment{50000, {}}));
  EXPECT_THAT(step_of({{0, 2}, {2, 4}}, 1, 1), ElementsAre(Segment{over_all, {0, 2}}, Segment{35000, {}}));
}

// One layer per stage: stages 0 and 2 are on rank 0, alone on node 0, and stages 1 and 3 on rank 1.
TEST(ProfileCostModel, SeveralStagesOfARankAreLayersOfItsDeviceAndReduceTheNormOnce) {
  const Profile profile = digits();
  Cluster cluster = free_cluster(2);
  cluster.devices[1].node = 1;
  cluster.inter_node.point_to_point = {.latency_ns = 70, .bandwidth_bytes_per_second = 0};
  cluster.inter_node.collective = {.latency_ns = 7, .bandwidth_bytes_per_second = 1'000'000'000};
  Phase phase = frozen_phase_of({{0, 1}, {1, 2}, {2, 3}, {3, 4}}, 1, 2, 0);
  phase.layout.pipeline_parallel_size = phase.virtual_stages = 2;
  phase.schedule = "Interleaved1F1B";
  const auto norm = Segment{all_reduce_ns(cluster, {0, 1}, 8), {0, 1}};
  {
    const ProfileCostModel costs(phase, {.global_batch_size = 2}, profile, cluster);
    EXPECT_EQ(only_compute(costs, "2F0", 0), 3);
    EXPECT_EQ(only_compute(costs, "2B1", 0), 330);
    EXPECT_EQ(costs.transfer(parse_action("1SEND_F0", "test"), 0).latency_ns, 70);
    EXPECT_EQ(costs.transfer(parse_action("2SEND_B0", "test"), 0).latency_ns, 70);
    EXPECT_THAT(costs.segments(parse_action("0OPTIMIZER_STEP", "test"), 0, 0), ElementsAre(norm, Segment{10000, {}}));
    EXPECT_THAT(costs.segments(parse_action("2OPTIMIZER_STEP", "test"), 0, 0), ElementsAre(Segment{30000, {}}));
  }
  phase.first_trainable_layer = 1;  // rank 0 trains only stage 2
  const ProfileCostModel costs(phase, {.global_batch_size = 2}, profile, cluster);
  EXPECT_THAT(costs.segments(parse_action("2OPTIMIZER_STEP", "test"), 0, 0), ElementsAre(norm, Segment{30000, {}}));
  EXPECT_THAT(costs.segments(parse_action("3OPTIMIZER_STEP", "test"), 1, 0), ElementsAre(Segment{40000, {}}));
}

TEST(ProfileCostModel, PricesEachRankByItsOwnDevice) {
  Profile profile = digits();
  const auto measured = profile.measurements;
  for (Measurement m : measured) {
    m.key.device_type = "fast";
    m.cost.forward_ns = m.key.micro_batch_size;
    profile.measurements.push_back(m);
  }
  std::sort(profile.measurements.begin(), profile.measurements.end(),
            [](const Measurement& a, const Measurement& b) { return a.key < b.key; });
  const auto updates = profile.updates;
  for (UpdateMeasurement u : updates) {
    u.device_type = "fast";
    profile.updates.push_back(u);
  }
  Cluster cluster = free_cluster(2);
  cluster.devices[1].type = "fast";
  const ProfileCostModel costs(frozen_phase_of({{0, 4}}, 2, 1, 0), {.global_batch_size = 2}, profile, cluster);
  EXPECT_EQ(only_compute(costs, "0F0", 0, 0), 1 + 2 + 3 + 4);
  EXPECT_EQ(only_compute(costs, "0F0", 0, 1), 4);
}

TEST(ProfileCostModel, RefusesMoreRanksThanDevices) {
  const Profile profile = digits();
  const Cluster cluster = free_cluster(1);
  EXPECT_THROW(ProfileCostModel(frozen_phase_of({{0, 2}, {2, 4}}, 1, 1, 0), {.global_batch_size = 1}, profile, cluster),
               InvalidInput);
}

TEST(ProfileCostModel, CacheSavesWhatIsFoundAndCostsItsEntries) {
  // Layers 0, 1 and 2 are frozen, with forwards of 1000, 2000 and 3000 ns per sample. Micro-batches have 4 samples.
  // Entries of 8 tokens x 4 values x 4 bytes = 128 bytes are read in 10 + 128 ns and written in 20 + 64 ns.
  Profile profile = digits();
  profile.cache = CacheSpeed{.read = {10, 1'000'000'000}, .write = {20, 2'000'000'000}};
  const Cluster cluster = free_cluster(2);
  const auto costs_of = [&](const Partition& partition, const CacheUse& cache) {
    Phase phase = frozen_phase_of(partition, 1, 1, 3);
    phase.cache = cache;
    return ProfileCostModel(phase, {.global_batch_size = 4}, profile, cluster);
  };
  const auto fill = costs_of({{0, 4}}, {.on = true});
  EXPECT_EQ(only_compute(fill, "0F0", 0), 4 * (1000 + 2000 + 3000 + 4));
  EXPECT_EQ(only_compute(fill, "0CACHE_READ0", 0), 0);
  EXPECT_EQ(only_compute(fill, "0CACHE_WRITE0", 0), 4 * 84);
  const auto hit = costs_of({{0, 4}}, {.on = true, .found = {{3, 1}}});
  EXPECT_EQ(only_compute(hit, "0F0", 0), 4 * 4);
  EXPECT_EQ(only_compute(hit, "0CACHE_READ0", 0), 4 * 138);
  EXPECT_EQ(only_compute(hit, "0CACHE_WRITE0", 0), 0);
  // Two of four samples are found at the boundary and one after layer 0, so 1 sample computes layer 0, and 2 compute
  // layers 1 and 2.
  const auto part = costs_of({{0, 4}}, {.on = true, .found = {{1, 0.25}, {3, 0.5}}});
  EXPECT_EQ(only_compute(part, "0F0", 0), 1 * 1000 + 2 * (2000 + 3000) + 4 * 4);
  EXPECT_EQ(only_compute(part, "0CACHE_READ0", 0), 3 * 138);
  EXPECT_EQ(only_compute(part, "0CACHE_WRITE0", 0), 2 * 84);
  // With a forward of 500 ns plus 500 per sample, one sample of four costs more than a quarter.
  for (Measurement& measured : profile.measurements)
    if (measured.key.layer == 0) measured.cost.frozen_forward_ns = 500 + 500 * measured.key.micro_batch_size;
  const auto uneven = costs_of({{0, 4}}, {.on = true, .found = {{1, 0.75}, {3, 0}}});
  EXPECT_EQ(only_compute(uneven, "0F0", 0), 500 + 500 + 4 * (2000 + 3000) + 4 * 4);
  for (Measurement& measured : profile.measurements)
    if (measured.key.layer == 0) measured.cost.frozen_forward_ns = 1000 * measured.key.micro_batch_size;
  // The prefix ends on the second stage, so its entries are useless to the first stage, but those at layer 1 are
  // useful.
  const auto split = costs_of({{0, 2}, {2, 4}}, {.on = true, .found = {{1, 0.25}, {3, 0.5}}});
  EXPECT_EQ(only_compute(split, "0F0", 0), 3 * 1000 + 4 * 2000);
  EXPECT_EQ(only_compute(split, "1F0", 1), 4 * (3000 + 4));
  EXPECT_EQ(only_compute(split, "1CACHE_WRITE0", 1), 2 * 84);
}

TEST(ProfileCostModel, CacheThatWasNotMeasuredIsAnError) {
  Phase phase = frozen_phase_of({{0, 4}}, 1, 1, 1);
  phase.cache.on = true;
  EXPECT_THROW(ProfileCostModel(phase, {.global_batch_size = 4}, digits(), free_cluster(1)), InvalidInput);
}

}  // namespace
}  // namespace frostpipe
