#include "plan/memory.h"

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::chain_model;
using examples::cluster_of;
using examples::flat_profile;
using examples::message_of;
using examples::two_stages;

std::vector<RankMemory> memory(const Phase& phase, Optimizer optimizer = Optimizer::kAdamW) {
  return memory_of(phase, {.global_batch_size = 8, .optimizer = optimizer}, flat_profile(chain_model(2), 4, 16),
                   cluster_of(2));
}

TEST(Memory, IsWeightsGradientsTwoMomentsSavedActivationsAndWorkspace) {
  // Each layer: 100 B output, 1000 B saved, 10 B workspace (examples.h); 4 bytes per parameter.
  const auto pipeline_ranks = memory(two_stages());
  ASSERT_EQ(pipeline_ranks.size(), 2u);
  EXPECT_EQ(pipeline_ranks[0], (RankMemory{.weights = 2200 * 4,
                                           .gradients = 2200 * 4,
                                           .optimizer_state = 2 * 2200 * 4,
                                           .saved_activations = 2 * 3 * 1000,  // two in flight, three layers
                                           .workspace = 10 + 100}));           // and the activation it sends
  EXPECT_EQ(pipeline_ranks[1], (RankMemory{.weights = 1230 * 4,
                                           .gradients = 1230 * 4,
                                           .optimizer_state = 2 * 1230 * 4,
                                           .saved_activations = 1 * (3 * 1000 + 100),  // one in flight, with its input
                                           .workspace = 10 + 100}));
  EXPECT_EQ(pipeline_ranks[1].total(), 4 * 1230 * 4 + 3100 + 110);
}

/// By hand: the embedding has 300 of 1000 parameters on both ranks, the attentions 24 of 400, the head all 30.
TEST(Memory, TensorRanksShareOutWhatTheyDoNotHoldWhole) {
  Profile profile = flat_profile(chain_model(2), 4, 16);
  for (Measurement& one : profile.measurements) one.key.tensor_parallel_size = 2;
  Phase phase = two_stages();
  phase.layout.tensor_parallel_size = 2;
  const auto weights = [&] {
    std::vector<Bytes> weights;
    for (const RankMemory& rank : memory_of(phase, {.global_batch_size = 8}, profile, cluster_of(4))) {
      weights.push_back(rank.weights);
      EXPECT_EQ(rank.gradients, rank.weights);
      EXPECT_EQ(rank.optimizer_state, 2 * rank.weights);
    }
    return weights;
  };
  EXPECT_EQ(weights(), (std::vector<Bytes>{1100 * 4, 615 * 4}));
  profile.model.layers[0].whole_parameter_count = 300;
  profile.model.layers[1].whole_parameter_count = profile.model.layers[3].whole_parameter_count = 24;
  profile.model.layers[5].whole_parameter_count = 30;
  EXPECT_EQ(weights(), (std::vector<Bytes>{(300 + 350 + 24 + 188 + 400) * 4, (24 + 188 + 400 + 30) * 4}));
}

/// By hand: 8 samples of 5 tokens use at most 40 of 80 rows of 8, so 680 of 1000 parameters have gradients.
TEST(Memory, ReplicasAddWholeParametersOnEveryTensorRank) {
  Model model = chain_model(2);
  model.hidden_size = 8;
  model.vocab_size = 80;
  Phase phase = two_stages();
  phase.tokens = 5;
  const auto reduced = [&](int layer) { return reduced_gradient_bytes(phase, model, layer, 8, DType::kFloat32); };
  model.layers[0].whole_parameter_count = 300;
  model.layers[1].whole_parameter_count = 24;
  EXPECT_EQ(reduced(0), 680 * 4);
  phase.layout.tensor_parallel_size = 2;
  EXPECT_EQ(reduced(0), (300 + 190) * 4);
  EXPECT_EQ(reduced(1), (24 + 188) * 4);
  EXPECT_EQ(reduced(2), 400 * 4);
  model.layers[0].whole_parameter_count = 1000;  // the table too
  EXPECT_EQ(reduced(0), 680 * 4);
}

TEST(Memory, IsThatOfTheLargestMicroBatch) {
  Phase phase = two_stages();
  phase.tokens = 5;  // not measured: only the 16 tokens per sample of the largest micro-batch are
  phase.longest_tokens = 40;
  phase.largest_micro_batch_tokens = 64;  // of 4 samples
  EXPECT_EQ(memory(phase), memory(two_stages()));
}

TEST(Memory, IsThatOfTheLongestSamplesWhereNothingElseIsKnown) {
  Phase phase = two_stages();
  phase.tokens = 5;
  phase.longest_tokens = 16;
  EXPECT_EQ(memory(phase), memory(two_stages()));
}

TEST(PlannedMicroBatch, HasItsTokensPerSampleRoundedUp) {
  Phase phase = two_stages();  // 4 of 8 samples in a micro-batch
  phase.tokens = 5;
  phase.longest_tokens = 40;
  const auto tokens_with = [&](std::int64_t largest) {
    phase.largest_micro_batch_tokens = largest;
    const MicroBatchSize size = planned_micro_batch(phase, 8);
    EXPECT_EQ(size.samples, 4);
    EXPECT_EQ(size.all_tokens(), 4 * size.tokens);
    return size.tokens;
  };
  EXPECT_EQ(tokens_with(60), 15);
  EXPECT_EQ(tokens_with(61), 16);
  EXPECT_EQ(tokens_with(64), 16);
  EXPECT_EQ(tokens_with(0), 40);                      // all samples may be the longest
  EXPECT_EQ(tokens_with(4), 5);                       // the tokens for which time is predicted need memory too
  EXPECT_EQ(tokens_with(std::int64_t{1} << 48), 40);  // no sample is longer
}

TEST(LargestMicroBatch, IsTheLongestPieceOfTheLongestMiniBatch) {
  // 64 samples of 31.75 +- 6.5 tokens, at most 48, have at most 2032 + 6 x 52 = 2344, and a piece of 8 has (2344 + 7 x
  // 48) / 8.
  const Workload workload = examples::example_workload();
  EXPECT_EQ(largest_micro_batch_tokens({.pipeline_parallel_size = 4}, 8, 64, 1, workload), 335);
  EXPECT_EQ(largest_micro_batch_tokens({.data_parallel_size = 2}, 4, 64, 1, workload), 335);
  EXPECT_EQ(largest_micro_batch_tokens({}, 1, 64, 1, workload), 2344);
  EXPECT_EQ(largest_micro_batch_tokens({}, 64, 64, 1, workload), 48);
}

TEST(LargestMicroBatch, IsOfANodesPartWhereReplicasHaveTheirOwnNodesSamples) {
  // 16 of the 64 samples have at most 508 + 6 x 26 = 664 tokens, and each of two pieces (664 + 48) / 2.
  const Workload workload = examples::example_workload();
  EXPECT_EQ(largest_micro_batch_tokens({.data_parallel_size = 4}, 2, 64, 4, workload), 356);
  EXPECT_EQ(largest_micro_batch_tokens({.data_parallel_size = 2}, 4, 64, 4, workload), 335);  // replicas of two nodes
}

TEST(LargestMicroBatch, IsNotKnownWithoutTheSpreadOfLengths) {
  Workload workload = examples::example_workload();
  workload.tokens_deviation.reset();
  EXPECT_EQ(largest_micro_batch_tokens({}, 8, 64, 1, workload), 0);
}

TEST(Memory, TiedGradientsAreExchangedWhenNothingIsInFlight) {
  Profile profile = flat_profile(chain_model(2), 4, 16);
  const auto memory_with = [&](std::int64_t tied, int first_trainable_layer) {
    profile.model.tied_parameter_count = tied;
    Phase phase = two_stages();
    phase.first_trainable_layer = first_trainable_layer;
    return memory_of(phase, {.global_batch_size = 8}, profile, cluster_of(2));
  };
  EXPECT_EQ(memory_with(750, 0)[1].exchange, 3000);
  EXPECT_EQ(memory_with(750, 0)[1].total(), 4 * 1230 * 4 + 3100 + 110);  // replaces the saved activations
  const auto pipeline_ranks = memory_with(2000, 0);
  EXPECT_EQ(pipeline_ranks[0].total(), 4 * 2200 * 4 + 8000);
  EXPECT_EQ(pipeline_ranks[1].total(), 4 * 1230 * 4 + 8000);
  EXPECT_EQ(memory_with(2000, 1)[0].exchange, 0);  // the embeddings are untied: layer 0 is frozen

  const Trace timeline{.spans = {{0, 0, {.kind = ActionKind::forward}, 0, 10},
                                 {0, 0, {.kind = ActionKind::backward}, 10, 30},
                                 {0, 0, {.kind = ActionKind::reduce_gradient}, 30, 40}}};
  const MemoryChange peak = largest(memory_over_time(timeline, 0, pipeline_ranks[0], pipeline_ranks));
  EXPECT_EQ(peak.action.kind, ActionKind::reduce_gradient);
  EXPECT_EQ(peak.bytes, pipeline_ranks[0].total());
}

/// By hand: 640 of the embedding's 1000 parameters are tied.
TEST(Memory, TiedGradientsOfATableThatEveryTensorRankHasAreExchangedWhole) {
  Model model = chain_model(2);
  model.tied_parameter_count = 640;
  Phase phase = two_stages();
  phase.layout.tensor_parallel_size = 2;
  const auto exchanged = [&](std::int64_t whole) {
    model.layers[0].whole_parameter_count = whole;
    return tied_gradient_bytes(phase, model, DType::kFloat32);
  };
  EXPECT_EQ(exchanged(0), 320 * 4);
  EXPECT_EQ(exchanged(360), 320 * 4);          // positions and norm alone
  EXPECT_EQ(exchanged(460), (100 + 270) * 4);  // 100 of them belong to the table
  EXPECT_EQ(exchanged(1000), 640 * 4);
}

TEST(Memory, SgdHasNoMoments) { EXPECT_EQ(memory(two_stages(), Optimizer::kSgd)[0].optimizer_state, 0); }

TEST(Memory, FrozenLayersKeepWeightsOnly) {
  Phase phase = two_stages();
  phase.first_trainable_layer = 5;  // both blocks frozen, inside stage 1
  const auto pipeline_ranks = memory(phase);
  // A wholly frozen stage also has the outputs sent for two micro-batches.
  EXPECT_EQ(pipeline_ranks[0], (RankMemory{.weights = 2200 * 4, .workspace = 10 + 100 + 100, .sent_ahead = 2 * 100}));
  EXPECT_EQ(pipeline_ranks[0].total(), 2200 * 4 + 210 + 200);
  EXPECT_EQ(pipeline_ranks[1], (RankMemory{.weights = 1230 * 4,
                                           .gradients = 30 * 4,
                                           .optimizer_state = 2 * 30 * 4,
                                           .saved_activations = 1000 + 100,  // the head, and its input
                                           .workspace = 10 + 100 + 100}));
}

TEST(Memory, FrozenLayersInBfloat16KeepARoundedCopyBesideTheirWeights) {
  Profile profile = flat_profile(chain_model(2), 4, 16);
  profile.frozen_dtype = DType::kBFloat16;
  const auto weights = [&](int first_trainable_layer) {
    Phase phase = two_stages();
    phase.first_trainable_layer = first_trainable_layer;
    const auto pipeline_ranks = memory_of(phase, {.global_batch_size = 8}, profile, cluster_of(2));
    return std::pair(pipeline_ranks[0].weights, pipeline_ranks[1].weights);
  };
  EXPECT_EQ(weights(0), std::pair(Bytes{2200 * 4}, Bytes{1230 * 4}));
  EXPECT_EQ(weights(1), std::pair(Bytes{2200 * 4 + 1000 * 2}, Bytes{1230 * 4}));  // the embedding
  EXPECT_EQ(weights(5), std::pair(Bytes{2200 * 6}, Bytes{1230 * 4 + 1200 * 2}));  // all but the head
}

/// Layers of 1000 400 | 800 400 | 800 30 parameters on three ranks with PipeDream-2BW and AdamW in bfloat16: a version
/// of a weight has 4 bytes and a rounded copy of 2; its gradient and each of two moments have 4.
std::vector<RankMemory> memory_with_delayed_updates(int first_trainable_layer, std::int64_t tied_parameter_count) {
  Profile profile = flat_profile(chain_model(2), 4, 16);
  profile.model.tied_parameter_count = tied_parameter_count;
  for (Measurement& one : profile.measurements) one.key.dtype = DType::kBFloat16;
  Phase phase = two_stages();
  phase.layout.pipeline_parallel_size = 3;
  phase.partition = {{0, 2}, {2, 4}, {4, 6}};
  phase.num_micro_batches = 3;
  phase.schedule = "PipeDream-2BW";
  phase.first_trainable_layer = first_trainable_layer;
  return memory_of(phase, {.global_batch_size = 12, .dtype = DType::kBFloat16}, profile, cluster_of(3));
}

// Each layer has 100 B output, 1000 B saved and 10 B workspace. Rank r has 3 - r micro-batches in flight.
TEST(Memory, OfDelayedUpdatesHasASecondVersionAndTheNextForwardsBesideTheExchange) {
  const auto ranks = memory_with_delayed_updates(0, 600);
  EXPECT_EQ(ranks[0], (RankMemory{.weights = 1400 * 6,
                                  .older_weights = 1400 * 6,
                                  .gradients = 1400 * 4,
                                  .optimizer_state = 2 * 1400 * 4,
                                  .saved_activations = 3 * 2000,  // two layers, and token ids are next to nothing
                                  .workspace = 10 + 100,
                                  // 600 gradients from the head, while the next iteration has begun 3 - 1 forwards.
                                  .exchange = 600 * 4 + 2 * 2000}));
  EXPECT_EQ(ranks[1], (RankMemory{.weights = 1200 * 6,
                                  .older_weights = 1200 * 6,
                                  .gradients = 1200 * 4,
                                  .optimizer_state = 2 * 1200 * 4,
                                  .saved_activations = 2 * 2100,  // with their input
                                  .workspace = 10 + 100 + 100}));
  EXPECT_EQ(ranks[2], (RankMemory{.weights = 830 * 6,
                                  .older_weights = 830 * 6,
                                  .gradients = 830 * 4,
                                  .optimizer_state = 2 * 830 * 4,
                                  .saved_activations = 1 * 2100,
                                  .workspace = 10 + 100,
                                  .exchange = 600 * 4}));      // the last rank has begun none
  EXPECT_EQ(ranks[0].total(), 1400 * (6 + 6 + 4 + 8) + 6400);  // more than 6000 + 110
  EXPECT_EQ(ranks[1].total(), 1200 * (6 + 6 + 4 + 8) + 4200 + 210);
  EXPECT_EQ(ranks[2].total(), 830 * (6 + 6 + 4 + 8) + 2400);
}

TEST(Memory, OfDelayedUpdatesHasOneVersionOfFrozenLayers) {
  const auto embedding = memory_with_delayed_updates(1, 600);  // so the head is untied
  EXPECT_EQ(embedding[0], (RankMemory{.weights = 1400 * 6,
                                      .older_weights = 400 * 6,
                                      .gradients = 400 * 4,
                                      .optimizer_state = 2 * 400 * 4,
                                      .saved_activations = 3 * (1000 + 100),
                                      .workspace = 10 + 100 + 100}));
  EXPECT_EQ(embedding[2].exchange, 0);
  EXPECT_EQ(memory_with_delayed_updates(2, 600)[0],
            (RankMemory{.weights = 1400 * 6, .workspace = 10 + 100 + 100, .sent_ahead = 3 * 100}));
}

TEST(Memory, MoreMicroBatchesAreInFlightUnderGPipe) {
  Phase phase = two_stages();
  phase.schedule = "GPipe";
  EXPECT_EQ(memory(phase)[1].saved_activations, 2 * (3 * 1000 + 100));
}

TEST(Memory, AnExceededLimitNamesStageRankAndParts) {
  const Phase phase = two_stages();
  const auto pipeline_ranks = memory(phase);
  EXPECT_EQ(what_does_not_fit(phase, pipeline_ranks, cluster_of(2)), "");
  EXPECT_EQ(what_does_not_fit(phase, pipeline_ranks, cluster_of(2, pipeline_ranks[0].total())), "");
  EXPECT_EQ(what_does_not_fit(phase, pipeline_ranks, cluster_of(2, 40 << 10)),
            "stage 0 needs 40.3 KiB (weights 8.59 KiB, gradients 8.59 KiB, optimizer 17.2 KiB, saved activations 5.86 "
            "KiB, workspace "
            "110 B), rank 0 has 40.0 KiB");
}

// [0,3) = embedding, attention, mlp; [3,6) = attention, mlp, head. Two micro-batches are in flight on stage 0, one on
// stage 1.
TEST(Memory, RecomputingKeepsInputsAndHasOneSegmentMoreInABackward) {
  Phase phase = two_stages();
  phase.recompute = RecomputeMode::layers;
  auto pipeline_ranks = memory(phase);
  EXPECT_EQ(pipeline_ranks[0].saved_activations,
            2 * (100 + 100));  // inputs of attention and mlp; that of the embedding are token ids
  EXPECT_EQ(pipeline_ranks[0].workspace, 10 + 100 + 1000);                 // one layer's activations
  EXPECT_EQ(pipeline_ranks[1].saved_activations, 100 + 100 + 100 + 1000);  // three inputs, and the head's activations
  phase.recompute = RecomputeMode::stage;
  pipeline_ranks = memory(phase);
  EXPECT_EQ(pipeline_ranks[0].saved_activations, 0);
  EXPECT_EQ(pipeline_ranks[0].workspace, 10 + 100 + 3 * 1000);
  EXPECT_EQ(pipeline_ranks[1].saved_activations, 100 + 100 + 1000);
  EXPECT_EQ(pipeline_ranks[1].workspace, 10 + 100 + 2 * 1000);
  phase.recompute = RecomputeMode::attention;
  pipeline_ranks = memory(phase);
  EXPECT_EQ(pipeline_ranks[0].saved_activations, 2 * (1000 + 100 + 1000));  // embedding, mlp's input, mlp
  EXPECT_EQ(pipeline_ranks[1].saved_activations, 100 + 100 + 2 * 1000);
}

TEST(Memory, FrozenLayersAreNeverComputedAgain) {
  const Model model = chain_model(2);
  EXPECT_EQ(recompute_segments(RecomputeMode::layers, model, {0, 3}, 3), (std::vector<RecomputeSegment>{}));
  EXPECT_EQ(recompute_segments(RecomputeMode::stage, model, {1, 6}, 3),
            (std::vector<RecomputeSegment>{{{3, 5}, true}, {{5, 6}, false}}));
  EXPECT_EQ(recompute_segments(std::nullopt, model, {1, 6}, 3), (std::vector<RecomputeSegment>{{{3, 6}, false}}));
  EXPECT_EQ(recompute_segments(RecomputeMode::attention, model, {2, 6}, 0),
            (std::vector<RecomputeSegment>{{{2, 3}, false}, {{3, 4}, true}, {{4, 6}, false}}));
}

// Rank 0 of a 1F1B pipeline of two with F = B = 10: F0 F1 B0 B1, the first B at 30.
TEST(Memory, OverTimeStepsWithEveryMicroBatchAndPeaksAtTheWhole) {
  const RankMemory peak{.weights = 1000, .saved_activations = 200, .workspace = 7};
  const std::vector<RankMemory> stages = {{.until_backward = 100}};
  Trace timeline{.num_ranks = 1, .spans = {}, .events = {}};
  for (const auto& [text, begin, end] : {std::tuple{"0F0", 0, 10}, {"0F1", 10, 20}, {"0B0", 30, 40}, {"0B1", 50, 60}})
    timeline.spans.push_back(
        {.rank = 0, .step = 0, .action = parse_action(text, "test"), .begin_ns = begin, .end_ns = end});
  const auto changes = memory_over_time(timeline, 0, peak, stages);
  std::vector<std::pair<Nanoseconds, Bytes>> steps;
  for (const MemoryChange& change : changes) steps.emplace_back(change.at_ns, change.bytes);
  EXPECT_EQ(steps, (std::vector<std::pair<Nanoseconds, Bytes>>{
                       {0, 1107}, {10, 1100}, {10, 1207}, {20, 1200}, {30, 1207}, {40, 1100}, {50, 1107}, {60, 1000}}));
  EXPECT_EQ(largest(changes).bytes, peak.total());
  EXPECT_EQ(to_string(largest(changes).action), "0F1");
  EXPECT_TRUE(memory_over_time(timeline, 1, peak, stages).empty());
}

TEST(Memory, EveryReplicaMustFit) {
  Phase phase = two_stages();
  phase.layout.data_parallel_size = 2;
  Cluster cluster = cluster_of(4);
  cluster.devices[3].memory_limit_bytes = 1;
  EXPECT_THAT(what_does_not_fit(phase, memory(two_stages()), cluster), testing::EndsWith("rank 3 has 1 B"));
  phase.layout.data_parallel_size = 1;
  phase.layout.tensor_parallel_size = 2;
  EXPECT_THAT(what_does_not_fit(phase, memory(two_stages()), cluster), testing::EndsWith("rank 3 has 1 B"));
}

}  // namespace
}  // namespace frostpipe
