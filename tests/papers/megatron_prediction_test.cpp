// Oracles: the published numbers of operations (Narayanan et al. 2021, Table 1) and closed forms of the terms.
#include "papers/megatron_prediction.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace frostpipe {
namespace {

/// Everything except launches takes no time.
MegatronConstants launches_alone() {
  return {.peak_flops = 1e30,
          .memory_bytes_per_second = 1e30,
          .gemm_efficiency = 1,
          .gemm_half_flops = 0,
          .memory_efficiency = 1,
          .launch_ns = 1'000'000,
          .nvlink_bytes_per_second = 1e30,
          .tree_step_ns = 0,
          .network_bytes_per_second = 1e30,
          .iteration_ns = 0};
}

TEST(IterationFlops, ArePublished) {
  const auto flops = [](int hidden, int layers, int batch) {
    return iteration_flops({.hidden = hidden, .layers = layers, .global_batch_size = batch});
  };
  EXPECT_NEAR(flops(2304, 24, 512), 1.547e16, 0.001e16);
  EXPECT_NEAR(flops(6144, 40, 1024), 3.248e17, 0.001e17);
  EXPECT_NEAR(flops(20480, 105, 2520), 2.222e19, 0.001e19);
  EXPECT_NEAR(flops(25600, 128, 3072), 5.139e19, 0.001e19);
}

TEST(PredictIterationNs, ASmallModelIsBoundByItsLaunches) {
  // Forward 1 ms, recomputed forward 1, backward 1.6, for each of 4 layers and 3 micro-batches.
  EXPECT_EQ(predict_iteration_ns({.hidden = 64, .heads = 1, .layers = 4, .tokens = 16, .global_batch_size = 3},
                                 launches_alone()),
            3 * 4 * 3'600'000);
}

TEST(PredictIterationNs, PipelinesHaveTheirBubble) {
  // (m + p - 1) (F + B), and over v stages per rank m (F + B) + (p - 1) (F + B) / v; messages take 20 us of latency,
  // which does not overlap with compute here.
  MegatronRun run{
      .hidden = 64, .heads = 1, .layers = 8, .tokens = 16, .pipeline_parallel_size = 2, .global_batch_size = 4};
  const Nanoseconds stage = 4 * 3'600'000, once = predict_iteration_ns(run, launches_alone());
  EXPECT_GE(once, 5 * stage);
  EXPECT_LE(once, 5 * stage + 10 * 20'000);
  run.virtual_stages = 2;
  const Nanoseconds interleaved = predict_iteration_ns(run, launches_alone());
  EXPECT_GE(interleaved, 4 * stage + stage / 2);
  EXPECT_LE(interleaved, 4 * stage + stage / 2 + 20 * 20'000);
}

TEST(PredictIterationNs, EmbeddingsTakeTheirLayersPlaces) {
  // 10 layers on 3 ranks are 3, 4 and 3: the middle rank works without a break between the first one's forward and
  // backward.
  MegatronRun run{.hidden = 64,
                  .heads = 1,
                  .layers = 10,
                  .tokens = 16,
                  .pipeline_parallel_size = 3,
                  .global_batch_size = 20,
                  .embeddings_count_as_layers = true};
  const Nanoseconds ends = 3 * 3'600'000, middle = 20 * 4 * 3'600'000;
  EXPECT_GE(predict_iteration_ns(run, launches_alone()), ends + middle);
  EXPECT_LE(predict_iteration_ns(run, launches_alone()), ends + middle + ends);
  run.pipeline_parallel_size = 1;
  EXPECT_EQ(predict_iteration_ns(run, launches_alone()), 20 * 10 * 3'600'000LL);
  run.layers = 8;
  run.virtual_stages = 2;
  EXPECT_THROW(predict_iteration_ns(run, launches_alone()), InvalidInput);
}

TEST(PredictIterationNs, ProductsOfUnalignedWidthsTakeLonger) {
  MegatronConstants constants = launches_alone();
  constants.launch_ns = 0;
  constants.peak_flops = 1e12;
  const auto time = [&](int hidden) {
    return predict_iteration_ns(
        {.hidden = hidden, .heads = 1, .layers = 1, .tokens = 1, .vocabulary = 64, .global_batch_size = 1}, constants);
  };
  const Nanoseconds aligned = time(6400), unaligned = time(6401);
  constants.unaligned_efficiency = 0.5;
  EXPECT_EQ(time(6400), aligned);
  EXPECT_NEAR(static_cast<double>(time(6401)), 2.0 * static_cast<double>(unaligned),
              1e-3 * static_cast<double>(aligned));
}

TEST(PredictIterationNs, ReplicasReduceOverTheNetworkAndTensorRanksOverTheNode) {
  MegatronConstants constants = launches_alone();
  constants.network_bytes_per_second = 1e9;
  MegatronRun run{.hidden = 64,
                  .heads = 1,
                  .layers = 4,
                  .tokens = 16,
                  .vocabulary = 100,
                  .data_parallel_size = 16,
                  .global_batch_size = 48};
  const double bytes = 2.0 * (4 * 12.0 * 64 * 64 + 100 * 64);
  EXPECT_NEAR(static_cast<double>(predict_iteration_ns(run, constants)), 3 * 4 * 3'600'000 + 2.0 * 15 / 16 * bytes, 2);
  run.gradient_bytes = 4;
  EXPECT_NEAR(static_cast<double>(predict_iteration_ns(run, constants)), 3 * 4 * 3'600'000 + 2 * 2.0 * 15 / 16 * bytes,
              2);
}

/// Oracle: a sum by hand. 2^16 replicas of 2^16 tensor ranks are 2^32 ranks, which no int holds.
TEST(PredictIterationNs, ReplicasOfAnyNumberReduceOverTheNetwork) {
  MegatronConstants constants = launches_alone();
  constants.network_bytes_per_second = 1e9;
  const MegatronRun run{.hidden = 64,
                        .heads = 1,
                        .layers = 4,
                        .tokens = 16,
                        .vocabulary = 100,
                        .tensor_parallel_size = 65536,
                        .data_parallel_size = 65536,
                        .global_batch_size = 65536};
  const double bytes = 2.0 * (4 * 12.0 * 64 * 64 + 100 * 64);
  EXPECT_NEAR(static_cast<double>(predict_iteration_ns(run, constants)), 4 * 3'600'000 + 2.0 * 65535 / 65536 * bytes,
              2);
}

/// Oracle: Megatron's scheme (Shoeybi et al. 2019, Figure 3; Narayanan et al. 2021, 3.3): two all-reduces in each of
/// forward, recomputed forward and backward; a tree's latency is 2 log2(t) steps. Only steps take time.
TEST(PredictIterationNs, ARecomputedLayerHasSixAllReducesWhoseLatencyGrowsWithLog2OfTheGroup) {
  MegatronConstants constants = launches_alone();
  constants.launch_ns = 0;
  constants.tree_step_ns = 1'000'000;
  for (const auto& [ranks, steps] : {std::pair{1, 0}, {2, 2}, {4, 4}, {8, 6}, {16, 8}})
    EXPECT_EQ(predict_iteration_ns({.hidden = 64,
                                    .heads = 16,
                                    .layers = 3,
                                    .tokens = 16,
                                    .tensor_parallel_size = ranks,
                                    .global_batch_size = 5},
                                   constants),
              5 * 3 * 6 * steps * 1'000'000)
        << ranks;
}

/// Oracle: without recomputing, a layer has a forward of 1 ms and a backward of 1.6, and two all-reduces in each.
TEST(PredictIterationNs, ALayerThatKeepsItsActivationsHasOneForwardAndFourAllReduces) {
  MegatronRun run{.hidden = 64, .heads = 16, .layers = 3, .tokens = 16, .global_batch_size = 5, .recomputes = false};
  EXPECT_EQ(predict_iteration_ns(run, launches_alone()), 5 * 3 * 2'600'000);
  MegatronConstants constants = launches_alone();
  constants.launch_ns = 0;
  constants.tree_step_ns = 1'000'000;
  run.tensor_parallel_size = 4;
  EXPECT_EQ(predict_iteration_ns(run, constants), 5 * 3 * 4 * 4 * 1'000'000);
}

/// Oracle: the three products of the head have 2 n h V / t operations each, for n tokens, and V / t rounded down.
TEST(PredictIterationNs, AnOddVocabularyPerRankSlowsTheHead) {
  MegatronConstants constants = launches_alone();
  constants.launch_ns = 0;
  constants.peak_flops = 1e12;
  constants.odd_vocabulary_efficiency = 0.25;
  const auto time = [&](int vocabulary, int ranks) {
    return static_cast<double>(predict_iteration_ns({.hidden = 64,
                                                     .heads = 2,
                                                     .layers = 1,
                                                     .tokens = 1000,
                                                     .vocabulary = vocabulary,
                                                     .tensor_parallel_size = ranks,
                                                     .global_batch_size = 1},
                                                    constants));
  };
  const double column = 1e9 * 3 * 2 * 1000 * 64 / constants.peak_flops;  // ns of a column of the vocabulary
  EXPECT_NEAR(time(1000, 1) - time(500, 1), 500 * column, 3);
  EXPECT_NEAR(time(1001, 1) - time(500, 1), (1001 / 0.25 - 500) * column, 3);
  EXPECT_NEAR(time(1001, 2) - time(500, 2), (500 - 250) * column, 3);
  EXPECT_NEAR(time(1002, 2) - time(500, 2), (501 / 0.25 - 250) * column, 3);
}

TEST(PredictIterationNs, RefusesWhatDoesNotDivide) {
  EXPECT_THROW(predict_iteration_ns(
                   {.hidden = 64, .heads = 1, .layers = 5, .pipeline_parallel_size = 2, .global_batch_size = 4}, {}),
               InvalidInput);
  EXPECT_THROW(predict_iteration_ns(
                   {.hidden = 64, .heads = 1, .layers = 4, .data_parallel_size = 3, .global_batch_size = 4}, {}),
               InvalidInput);
  EXPECT_THROW(predict_iteration_ns({.hidden = 64, .heads = 1, .layers = 4, .global_batch_size = 1'000'000'000}, {}),
               InvalidInput);  // and a run that would take minutes to simulate
  EXPECT_THROW(predict_iteration_ns({.hidden = 0, .heads = 1, .layers = 4, .global_batch_size = 4}, {}), InvalidInput);
}

}  // namespace
}  // namespace frostpipe
