#include "plan/reconfiguration.h"

#include <map>
#include <random>
#include <set>

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::chain_model;
using testing::ElementsAre;

Phase phase_of(int p, int d, Partition partition, int first_trainable_layer) {
  Phase phase;
  phase.layout.pipeline_parallel_size = p;
  phase.layout.data_parallel_size = d;
  phase.partition = std::move(partition);
  phase.first_trainable_layer = first_trainable_layer;
  return phase;
}

TEST(Diff, OfAPhaseWithItselfIsNothing) {
  const Phase phase = phase_of(2, 1, {{0, 2}, {2, 4}}, 0);
  EXPECT_EQ(diff(phase, phase, chain_model(1), Optimizer::kAdamW, DType::kFloat32), Reconfiguration{});
}

TEST(Diff, PackingOntoHalfTheRanksMovesWhatTheyDoNotHoldYet) {
  // Embedding and block 0 on rank 0, head on rank 1, block frozen; afterwards both hold everything.
  const Reconfiguration change = diff(phase_of(2, 1, {{0, 3}, {3, 4}}, 0), phase_of(1, 2, {{0, 4}}, 3), chain_model(1),
                                      Optimizer::kAdamW, DType::kFloat32);
  EXPECT_EQ(change.first_trainable_before, 0);
  EXPECT_EQ(change.first_trainable_after, 3);
  EXPECT_THAT(change.newly_frozen, ElementsAre(0, 1, 2));
  EXPECT_TRUE(change.regroup);
  // 1000, 400 and 800 frozen parameters of 4 bytes; the head's 30 with two moments.
  EXPECT_THAT(change.moves, ElementsAre(TensorMove{0, 0, 1, false, 4000}, TensorMove{1, 0, 1, false, 1600},
                                        TensorMove{2, 0, 1, false, 3200}, TensorMove{3, 1, 0, true, 30 * 4 * 3}));
}

TEST(Diff, OfStagesPerRankMovesWhatTheOtherRankHeld) {
  // Layers 0 1 | 2 3 on two ranks, then 0 | 1 | 2 | 3 dealt out: rank 0 gets 2, rank 1 gets 1.
  const Phase before = phase_of(2, 1, {{0, 2}, {2, 4}}, 0);
  Phase after = phase_of(2, 1, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}, 0);
  after.virtual_stages = 2;
  const Reconfiguration change = diff(before, after, chain_model(1), Optimizer::kSgd, DType::kFloat32);
  EXPECT_TRUE(change.regroup);
  EXPECT_THAT(change.moves, ElementsAre(TensorMove{1, 0, 1, false, 1600}, TensorMove{2, 1, 0, false, 3200}));
  Phase frozen = after;
  frozen.first_trainable_layer = 1;  // both ranks still train
  EXPECT_FALSE(diff(after, frozen, chain_model(1), Optimizer::kSgd, DType::kFloat32).regroup);
  frozen.first_trainable_layer = 3;  // rank 1 alone
  EXPECT_TRUE(diff(after, frozen, chain_model(1), Optimizer::kSgd, DType::kFloat32).regroup);
}

TEST(Diff, OtherNeighboursAreOtherGroups) {
  Phase loop = phase_of(2, 1, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}, 0);
  loop.virtual_stages = 2;
  loop.schedule = "InterleavedZeroBubble";
  Phase v = loop;
  v.schedule = "ZBVZeroBubble";  // stages 2 and 3 change places
  EXPECT_TRUE(diff(loop, v, chain_model(1), Optimizer::kSgd, DType::kFloat32).regroup);
}

TEST(Diff, SgdHasNoMomentsToMoveAndDoublesAreTwiceAsLarge) {
  const Reconfiguration change = diff(phase_of(2, 1, {{0, 3}, {3, 4}}, 0), phase_of(1, 2, {{0, 4}}, 3), chain_model(1),
                                      Optimizer::kSgd, DType::kFloat64);
  EXPECT_EQ(change.moves[3], (TensorMove{3, 1, 0, false, 30 * 8}));
}

TEST(Diff, SpreadsTheSourcesOverTheRanksThatHoldTheLayer) {
  // 4 replicas -> 8: ranks 4..7 need all; each of 0..3 sends to one of them per layer in turn.
  const Reconfiguration change = diff(phase_of(1, 4, {{0, 4}}, 0), phase_of(1, 8, {{0, 4}}, 0), chain_model(1),
                                      Optimizer::kAdamW, DType::kFloat32);
  std::map<int, Bytes> sent;
  for (const auto& move : change.moves) sent[move.from_rank] += move.bytes;
  ASSERT_EQ(sent.size(), 4u);
  for (const auto& [rank, bytes] : sent) EXPECT_EQ(bytes, 2230 * 4 * 3) << rank;
}

TEST(Diff, AfterTheMovesEveryRankHoldsItsStage) {
  std::mt19937 random(9);
  const Model model = chain_model(3);  // 8 layers
  const auto random_phase = [&] {
    const int p = 1 << (random() % 3);
    Partition partition;
    for (int stage = 0; stage < p; ++stage) partition.push_back({stage * 8 / p, (stage + 1) * 8 / p});
    Phase phase = phase_of(p, 1 + static_cast<int>(random() % (8 / p)), partition, 0);
    if (random() % 2) {
      std::vector<int> ranks{0, 1, 2, 3, 4, 5, 6, 7};
      std::shuffle(ranks.begin(), ranks.end(), random);
      ranks.resize(num_ranks(phase.layout));
      phase.layout.placement = ranks;
    }
    return phase;
  };
  const auto holdings = [&](const Phase& phase) {
    std::set<std::pair<int, int>> held;  // (layer, rank)
    for (int layer = 0; layer < 8; ++layer)
      for (const int rank : replicas_of(phase.layout, stage_of_layer(phase.partition, layer)))
        held.insert({layer, rank});
    return held;
  };
  for (int round = 0; round < 200; ++round) {
    const Phase before = random_phase(), after = random_phase();
    const auto held = holdings(before);
    auto wanted = holdings(after);
    std::pair<int, int> last{-1, -1};
    for (const auto& move : diff(before, after, model, Optimizer::kAdamW, DType::kFloat32).moves) {
      EXPECT_LT(last, std::pair(move.layer, move.to_rank));  // in order, nothing twice
      last = {move.layer, move.to_rank};
      EXPECT_TRUE(held.contains({move.layer, move.from_rank}));
      EXPECT_FALSE(held.contains({move.layer, move.to_rank}));
      EXPECT_EQ(wanted.erase({move.layer, move.to_rank}), 1u);
    }
    for (const auto& still_wanted : wanted) EXPECT_TRUE(held.contains(still_wanted));
  }
}

/// Oracle: each field by hand.
TEST(KeepsWeightVersions, UnlessAnythingButCacheAndRecomputingChanges) {
  Phase phase = phase_of(2, 1, {{0, 2}, {2, 4}}, 2);
  phase.schedule = "PipeDream-2BW";
  phase.num_micro_batches = 2;
  Phase same = phase;
  same.from_step = 7;
  same.cache.on = true;
  same.recompute = RecomputeMode::layers;
  EXPECT_TRUE(keeps_weight_versions(phase, same));
  std::vector<Phase> others(6, phase);
  others[0].first_trainable_layer = 3;
  others[1].layout.data_parallel_size = 2;
  others[2].layout.placement = {1, 0};
  others[3].partition = {{0, 1}, {1, 4}};
  others[4].num_micro_batches = 3;
  others[5].schedule = "1F1B";
  for (const Phase& other : others) EXPECT_FALSE(keeps_weight_versions(phase, other)) << &other - others.data();
}

}  // namespace
}  // namespace frostpipe
