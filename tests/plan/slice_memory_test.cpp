// Memory with token slices. Oracle: counted by hand from the schedule's list.
#include "plan/memory.h"
#include "plan/token_slices.h"
#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::chain_model;
using examples::cluster_of;
using examples::flat_profile;

/// Two blocks on two stages, [0,3) [3,6), with an attention layer in each; 2 micro-batches of 4 samples of 16 tokens.
/// Each layer has 100 B output, 1000 B saved and 10 B workspace per whole micro-batch (examples.h).
Phase two_stages(const std::string& schedule) {
  Phase phase;
  phase.layout.pipeline_parallel_size = 2;
  phase.partition = {{0, 3}, {3, 6}};
  phase.num_micro_batches = 2;
  phase.tokens = 16;
  phase.schedule = schedule;
  phase.token_slices = {4, 12};
  return phase;
}

std::vector<RankMemory> memory(const Phase& phase) {
  return memory_of(phase, {.global_batch_size = 8}, flat_profile(chain_model(2), 4, 16), cluster_of(2));
}

TEST(SliceMemory, IsTheTokensInFlightBesideWholeKeysAndValues) {
  const Phase phase = two_stages("Seq1F1B");
  ASSERT_EQ(to_text(seq_one_f_one_b({.pipeline_parallel_size = 2, .num_micro_batches = 2, .token_slices = 2})),
            "rank 0: 0F0s0 0F0s1 0F1s0 0B0s1 0F1s1 0B0s0 0B1s1 0B1s0\n"
            "rank 1: 1F0s0 1F0s1 1B0s1 1F1s0 1B0s0 1F1s1 1B1s1 1B1s0\n");
  const auto pipeline_ranks = memory(phase);
  // Keys and values are 2 x 100 of 3000 B, so a token has 2800 / 16 B, rounded up. The peak is before 0B0s1 with 4 + 12
  // + 4 tokens of both micro-batches; on rank 1, with 100 B of input, 16 tokens of one.
  EXPECT_EQ(pipeline_ranks[0].saved_activations, 20 * 175 + 2 * 200);
  EXPECT_EQ(pipeline_ranks[1].saved_activations, 16 * 182 + 200);
  // The workspace is that of 12 of 16 tokens, plus the gradients of keys and values.
  EXPECT_EQ(pipeline_ranks[0].workspace, 110 * 12 / 16 + 200);
  EXPECT_EQ(pipeline_ranks[0].weights, 2200 * 4);
}

TEST(SliceMemory, OfTeraPipeIsThatOfAllMicroBatches) {
  EXPECT_EQ(memory(two_stages("TeraPipe"))[0].saved_activations, 2 * (16 * 175 + 200));
}

TEST(SliceMemory, OfFrozenLayersIsTheKeysAndValuesOfOneMicroBatch) {
  Phase phase = two_stages("Seq1F1B");
  phase.first_trainable_layer = 3;
  const RankMemory frozen = memory(phase)[0];
  EXPECT_EQ(frozen.saved_activations, 0);
  EXPECT_EQ(frozen.workspace, (10 + 100 + 100) * 12 / 16 + 200);
}

/// The first stage reads and writes the cache: it reads ahead rows of two micro-batches, and to write it assembles a
/// whole micro-batch from its slices.
TEST(SliceMemory, OfACacheIsThatOfWholeSamples) {
  Phase phase = two_stages("Seq1F1B");
  phase.first_trainable_layer = 2;
  const RankMemory without = memory(phase)[0];
  phase.cache.on = true;
  const RankMemory with = memory(phase)[0];
  EXPECT_EQ(with.cache, 2 * 2 * 100);
  EXPECT_EQ(with.workspace - without.workspace, 100);
}

TEST(SliceMemory, OverTimePeaksAtTheWhole) {
  const Phase phase = two_stages("Seq1F1B");
  const Schedule schedule = schedule_of(phase);
  const auto pipeline_ranks = memory(phase);
  const auto stages =
      memory_of_stages(phase, {.global_batch_size = 8}, flat_profile(chain_model(2), 4, 16), cluster_of(2));
  for (int rank = 0; rank < 2; ++rank) {
    Trace timeline{.num_ranks = 2, .spans = {}, .events = {}};
    Nanoseconds now = 0;
    for (const Action& action : schedule.body[rank]) {
      timeline.spans.push_back({.rank = rank, .step = 0, .action = action, .begin_ns = now, .end_ns = now + 10});
      now += 10;
    }
    const auto changes = memory_over_time(timeline, rank, pipeline_ranks[rank], stages, tokens_of_slices(phase, 16));
    EXPECT_EQ(largest(changes).bytes, pipeline_ranks[rank].total());
    EXPECT_EQ(changes.back().bytes, pipeline_ranks[rank].lasting());
  }
}

}  // namespace
}  // namespace frostpipe
