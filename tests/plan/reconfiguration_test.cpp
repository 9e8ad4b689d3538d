#include "plan/reconfiguration.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

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
  // Embedding and block 0 are on rank 0, the head on rank 1; then everything before the head freezes and both ranks
  // hold everything.
  const Reconfiguration change = diff(phase_of(2, 1, {{0, 3}, {3, 4}}, 0), phase_of(1, 2, {{0, 4}}, 3), chain_model(1),
                                      Optimizer::kAdamW, DType::kFloat32);
  EXPECT_EQ(change.first_trainable_before, 0);
  EXPECT_EQ(change.first_trainable_after, 3);
  EXPECT_THAT(change.newly_frozen, ElementsAre(0, 1, 2));
  EXPECT_TRUE(change.regroup);
  // 1000, 400 and 800 frozen parameters of 4 bytes; 30 of the head with two moments.
  EXPECT_THAT(change.moves, ElementsAre(TensorMove{0, 0, 1, false, 4000}, TensorMove{1, 0, 1, false, 1600},
                                        TensorMove{2, 0, 1, false, 3200}, TensorMove{3, 1, 0, true, 30 * 4 * 3}));
}

TEST(Diff, OfStagesPerRankMovesWhatTheOtherRankHeld) {
  // Layers 0 1 | 2 3 on two ranks become 0 | 1 | 2 | 3, placed in a loop: rank 0 gets layer 2, rank 1 gets layer 1.
  const Phase before = phase_of(2, 1, {{0, 2}, {2, 4}}, 0);
  Phase after = phase_of(2, 1, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}, 0);
  after.virtual_stages = 2;
  const Reconfiguration change = diff(before, after, chain_model(1), Optimizer::kSgd, DType::kFloat32);
  EXPECT_TRUE(change.regroup);
  EXPECT_THAT(change.moves, ElementsAre(TensorMove{1, 0, 1, false, 1600}, TensorMove{2, 1, 0, false, 3200}));
  Phase frozen = after;
  frozen.first_trainable_layer = 1;  // both ranks still train
  EXPECT_FALSE(diff(after, frozen, chain_model(1), Optimizer::kSgd, DType::kFloat32).regroup);
  frozen.first_trainable_layer = 3;  // only rank 1 trains
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
  // 4 replicas become 8: ranks 4..7 need everything, and per layer each of 0..3 sends to one of them in turn.
  const Reconfiguration change = diff(phase_of(1, 4, {{0, 4}}, 0), phase_of(1, 8, {{0, 4}}, 0), chain_model(1),
                                      Optimizer::kAdamW, DType::kFloat32);
  std::map<int, Bytes> sent;
  for (const auto& move : change.moves) sent[move.from_rank] += move.bytes;
  ASSERT_EQ(sent.size(), 4u);
  for (const auto& [rank, bytes] : sent) EXPECT_EQ(bytes, 2230 * 4 * 3) << rank;
}

/// 40 of the attention's 400 parameters are whole, and all 30 of the head.
Model model_with_whole_parameters() {
  Model model = chain_model(1);
  model.layers[1].whole_parameter_count = 40;
  model.layers[3].whole_parameter_count = 30;
  return model;
}

Phase phase_of_tensor_ranks(int d, int t, std::vector<int> placement = {}) {
  Phase phase = phase_of(1, d, {{0, 4}}, 3);
  phase.layout.tensor_parallel_size = t;
  phase.layout.placement = std::move(placement);
  return phase;
}

std::vector<TensorMove> moves_between(const Phase& before, const Phase& after) {
  return diff(before, after, model_with_whole_parameters(), Optimizer::kAdamW, DType::kFloat32).moves;
}

/// One rank becomes three tensor ranks. Rank 0 keeps its third and sends each of the others a third of the shared
/// parameters (333 or 334 of 1000, 120 of 360, 266 or 267 of 800) and all whole ones.
TEST(Diff, ToTensorRanksMovesTheirThirdsAndWhatIsWhole) {
  EXPECT_THAT(moves_between(phase_of_tensor_ranks(1, 1), phase_of_tensor_ranks(1, 3)),
              ElementsAre(TensorMove{0, 0, 1, false, 333 * 4, {1, 2, 3}, true},
                          TensorMove{0, 0, 2, false, 334 * 4, {2, 3, 3}, true},
                          TensorMove{1, 0, 1, false, (120 + 40) * 4, {1, 2, 3}, true},
                          TensorMove{1, 0, 2, false, (120 + 40) * 4, {2, 3, 3}, true},
                          TensorMove{2, 0, 1, false, 267 * 4, {1, 2, 3}, true},
                          TensorMove{2, 0, 2, false, 267 * 4, {2, 3, 3}, true},
                          TensorMove{3, 0, 1, true, 30 * 4 * 3, {1, 2, 3}, true},
                          TensorMove{3, 0, 2, true, 30 * 4 * 3, {2, 3, 3}, true}));
}

/// Tensor ranks 0 and 1 hold [0, 3) and [3, 6) sixths; then rank 1 is the first of three, 0 the second and 2 the last.
/// Rank 0 already has [2, 3), and rank 1 has nothing of [0, 2). Only rank 2 lacks the whole parameters.
TEST(Diff, FromTwoTensorRanksToThreeMovesSixths) {
  const std::vector<TensorMove> moves =
      moves_between(phase_of_tensor_ranks(1, 2), phase_of_tensor_ranks(1, 3, {1, 0, 2}));
  ASSERT_EQ(moves.size(), 3u * 3 + 1);
  EXPECT_EQ(moves[3], (TensorMove{1, 1, 0, false, 60 * 4, {3, 4, 6}, false}));
  EXPECT_EQ(moves[4], (TensorMove{1, 0, 1, false, 120 * 4, {0, 2, 6}, false}));
  EXPECT_EQ(moves[5], (TensorMove{1, 1, 2, false, (120 + 40) * 4, {4, 6, 6}, true}));
  EXPECT_EQ(moves[9], (TensorMove{3, 1, 2, true, 30 * 4 * 3, {4, 6, 6}, true})) << "the head is whole on ranks 0 and 1";
}

/// A new replica of two tensor ranks: each gets its half from the rank that has the same half.
TEST(Diff, BetweenEqualNumbersOfTensorRanksMovesWholeSlices) {
  const std::vector<TensorMove> moves = moves_between(phase_of_tensor_ranks(1, 2), phase_of_tensor_ranks(2, 2));
  ASSERT_EQ(moves.size(), 4u * 2);
  for (std::size_t i = 0; i < moves.size(); ++i) {
    EXPECT_EQ(moves[i].from_rank + 2, moves[i].to_rank);
    EXPECT_EQ(moves[i].slice, slice_of(moves[i].from_rank, 2));
    EXPECT_TRUE(moves[i].with_whole);
  }
  EXPECT_EQ(moves[2].bytes, (180 + 40) * 4);
}

/// A random phase of p x d x t ranks, at most 16, in any order, with `num_layers` layers.
Phase random_phase(std::mt19937& random, int num_layers) {
  Phase phase;
  do {
    phase.layout = {.pipeline_parallel_size = 1 + static_cast<int>(random() % 4),
                    .data_parallel_size = 1 + static_cast<int>(random() % 4),
                    .tensor_parallel_size = 1 + static_cast<int>(random() % 6),
                    .placement = {}};
  } while (num_ranks(phase.layout) > 16);
  const int p = phase.layout.pipeline_parallel_size;
  for (int stage = 0; stage < p; ++stage)
    phase.partition.push_back({stage * num_layers / p, (stage + 1) * num_layers / p});
  phase.layout.placement.resize(16);
  std::iota(phase.layout.placement.begin(), phase.layout.placement.end(), 0);
  std::shuffle(phase.layout.placement.begin(), phase.layout.placement.end(), random);
  phase.layout.placement.resize(num_ranks(phase.layout));
  return phase;
}

/// Units (layer, number) on a rank; the first `num_whole` of a layer are whole.
using Units = std::set<std::pair<int, int>>;

Units units_of(const Layer& layer, int number, const TensorSlice& slice, bool with_whole) {
  const int whole = static_cast<int>(layer.whole_parameter_count), all = static_cast<int>(layer.parameter_count);
  Units units;
  for (int unit = 0; unit < whole && with_whole; ++unit) units.insert({number, unit});
  for (int unit = static_cast<int>(slice.begin_in(all - whole)); unit < slice.end_in(all - whole); ++unit)
    units.insert({number, whole + unit});
  return units;
}

std::vector<Units> holdings_of(const Phase& phase, const Model& model) {
  std::vector<Units> held(16);
  for (int rank = 0; rank < 16; ++rank) {
    const std::optional<MeshCoordinate> coordinate = find_coordinate(phase.layout, rank);
    if (!coordinate) continue;
    const LayerRange stage = phase.partition[coordinate->pipeline_rank];
    for (int layer = stage.begin; layer < stage.end; ++layer)
      held[rank].merge(
          units_of(model.layers[layer], layer, slice_of(coordinate->tensor, phase.layout.tensor_parallel_size), true));
  }
  return held;
}

/// Oracle: brute force over every unit of every layer on every rank, with numbers of units that no t divides.
TEST(Diff, AfterTheMovesEveryRankHoldsItsPartAndNothingCameTwice) {
  std::mt19937 random(9);
  Model model = chain_model(2);
  for (int round = 0; round < 1000; ++round) {
    for (Layer& layer : model.layers) {
      layer.whole_parameter_count = random() % 4;
      layer.parameter_count = layer.whole_parameter_count + random() % 14;
    }
    const Phase before = random_phase(random, 6), after = random_phase(random, 6);
    const std::vector<Units> held = holdings_of(before, model), wanted = holdings_of(after, model);
    std::vector<Units> now = held;
    std::tuple<int, int, int> last{-1, -1, -1};
    for (const TensorMove& move : diff(before, after, model, Optimizer::kAdamW, DType::kFloat32).moves) {
      const std::tuple order{move.layer, move.to_rank, move.slice.begin};
      EXPECT_LT(last, order);
      last = order;
      const Units units = units_of(model.layers[move.layer], move.layer, move.slice, move.with_whole);
      EXPECT_EQ(move.bytes, std::ssize(units) * 4 * 3);
      for (const auto& unit : units) {
        EXPECT_TRUE(held[move.from_rank].contains(unit));
        EXPECT_TRUE(wanted[move.to_rank].contains(unit));
        EXPECT_TRUE(now[move.to_rank].insert(unit).second) << "it had that";
      }
    }
    for (int rank = 0; rank < 16; ++rank)
      EXPECT_TRUE(std::includes(now[rank].begin(), now[rank].end(), wanted[rank].begin(), wanted[rank].end()));
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

/// Oracle: each field, by hand.
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
