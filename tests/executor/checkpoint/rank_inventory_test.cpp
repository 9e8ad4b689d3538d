// Oracle: cases made by hand.
#include "executor/checkpoint/rank_inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace frostpipe {
namespace {

using testing::ElementsAre;

const RankInventory kFirst{.step = 5, .layers = {0, 1}, .trainable = {1}, .offloaded = {{.layer = 0}}},
    kSecond{.step = 5, .layers = {2, 3}, .trainable = {2, 3}};
const RankInventory kNothing;

/// Returns whether the inventories that match the first one have every layer.
bool are_whole(const std::vector<RankInventory>& inventories, int num_layers, int first_trainable_layer,
               const std::vector<int>& needs_moments) {
  return hold_all_layers(consistent_with(inventories, inventories.front(), first_trainable_layer), num_layers,
                         needs_moments);
}

TEST(HoldAllLayers, NeedsEveryLayerAndOneStep) {
  EXPECT_TRUE(are_whole({kFirst, kSecond, kNothing}, 4, 1, {0}));
  EXPECT_FALSE(are_whole({kFirst, kNothing}, 4, 1, {})) << "layers 2 and 3 are lost";
  RankInventory without_moments = kFirst;
  without_moments.offloaded = {};
  EXPECT_FALSE(are_whole({without_moments, kSecond}, 4, 1, {0})) << "nobody has layer 0's moments";
  EXPECT_TRUE(are_whole({kFirst, kSecond}, 4, 1, {0, 1})) << "layer 1 trained until now, and has its moments";
  RankInventory behind = kSecond;
  behind.step = 4;
  EXPECT_FALSE(are_whole({kFirst, behind}, 4, 1, {})) << "one had done its update, the other not";
  EXPECT_TRUE(are_whole({kFirst, behind, kSecond}, 4, 1, {})) << "a replica of the other had done it too";
  RankInventory frozen{.step = 9, .layers = {0}, .trainable = {}, .offloaded = {{.layer = 0}}};
  EXPECT_TRUE(are_whole({kFirst, frozen, kSecond}, 4, 1, {0})) << "ranks of frozen layers run ahead";
  RankInventory earlier_phase = kSecond;
  earlier_phase.phase_from = -1;
  EXPECT_FALSE(are_whole({kFirst, earlier_phase}, 4, 1, {}));
  RankInventory froze{
      .step = 5, .phase_from = 5, .layers = {0, 1}, .trainable = {}, .offloaded = {{.layer = 0}, {.layer = 1}}};
  EXPECT_FALSE(are_whole({kSecond, froze}, 4, 1, {})) << "layer 1 froze before the others knew of it";
  EXPECT_TRUE(are_whole({kSecond, froze}, 4, 2, {})) << "the phase that is told freezes it too";
  EXPECT_FALSE(are_whole({kNothing, kNothing}, 4, 1, {}));
}

TEST(ThatFit, LeavesOutWhatTrainsElsewhere) {
  // One is ahead by an update; one is in a later phase, in which layer 1 is frozen.
  RankInventory ahead = kFirst, later = kFirst;
  ahead.step = 6;
  later.phase_from = 5;
  later.trainable = {};
  later.offloaded = {{.layer = 0}, {.layer = 1}};
  RankInventory frozen_alone = kFirst;
  frozen_alone.layers = {0};
  frozen_alone.trainable = {};
  RankInventory frozen_ahead = frozen_alone, frozen_later = frozen_alone;
  frozen_ahead.step = 6;
  frozen_later.phase_from = 5;
  EXPECT_THAT(consistent_with({kFirst, ahead, later, kSecond, kNothing}, kFirst, 1),
              ElementsAre(kFirst, frozen_ahead, frozen_later, kSecond, kNothing));
}

/// One of two stages has the norm of the sixth step, and has done the step; the other had not got the norm yet.
TEST(WithCompletedSteps, AreThoseWhoseNormAnotherRankHas) {
  RankInventory done = kFirst, waiting = kSecond;
  done.step = done.num_recorded = 6;
  done.gradient_norm = 0.1;
  waiting.lacks_norm = true;
  EXPECT_FALSE(are_whole({done, waiting}, 4, 1, {})) << "a step apart";
  const std::vector<RankInventory> completed = with_completed_steps({done, waiting, kNothing});
  RankInventory has_done_it_too = kSecond;
  has_done_it_too.step = 6;
  has_done_it_too.gradient_norm = 0.1;
  EXPECT_THAT(completed, ElementsAre(done, has_done_it_too, kNothing));
  EXPECT_TRUE(are_whole(completed, 4, 1, {}));

  RankInventory later = done, without_norm = done, without_figures = done;
  later.step = later.num_recorded = 7;
  without_figures.num_recorded = 5;
  without_norm.gradient_norm.reset();
  RankInventory in_another_phase = done;
  in_another_phase.phase_from = 6;
  for (const RankInventory& other : {kFirst, later, without_norm, without_figures, in_another_phase})
    EXPECT_THAT(with_completed_steps({other, waiting}), ElementsAre(other, waiting));
  RankInventory without_gradients = waiting;
  without_gradients.lacks_norm = false;
  EXPECT_THAT(with_completed_steps({done, without_gradients}), ElementsAre(done, without_gradients));
}

TEST(MovesToRestore, BringAReplacedRankItsLayersFromItsReplica) {
  // Two stages x two replicas; rank 3 is new.
  Phase phase{.first_trainable_layer = 1,
              .layout = {.pipeline_parallel_size = 2, .data_parallel_size = 2},
              .partition = {{0, 2}, {2, 4}}};
  const std::vector<TensorMove> moves = moves_to_restore({kFirst, kFirst, kSecond, kNothing}, phase);
  EXPECT_THAT(moves, ElementsAre(TensorMove{2, 2, 3, true, 0}, TensorMove{3, 2, 3, true, 0}));
}

TEST(MovesToRestore, SpreadTheSourcesOverTheReplicas) {
  Phase phase{.layout = {.data_parallel_size = 4}, .partition = {{0, 1}}};
  const RankInventory whole{.step = 1, .layers = {0}, .trainable = {0}};
  EXPECT_THAT(moves_to_restore({kNothing, whole, kNothing, whole}, phase),
              ElementsAre(TensorMove{0, 1, 0, true, 0}, TensorMove{0, 3, 2, true, 0}));
}

RankInventory part_of(int tensor, int tensor_parallel_size) {
  return {.step = 5, .layers = {0}, .trainable = {0}, .slice = slice_of(tensor, tensor_parallel_size)};
}

TEST(HoldAllLayers, NeedsEveryPartOfWhatTensorRanksShare) {
  EXPECT_TRUE(are_whole({part_of(0, 2), part_of(1, 2)}, 1, 0, {}));
  EXPECT_FALSE(are_whole({part_of(0, 2), part_of(0, 2)}, 1, 0, {})) << "nobody has the second half";
  EXPECT_FALSE(are_whole({part_of(0, 2), part_of(1, 3), part_of(2, 3)}, 1, 0, {}))
      << "between a half and the second third there is nothing that begins at the half";
  RankInventory frozen = part_of(0, 2);
  frozen.trainable = {};
  frozen.offloaded = {{.layer = 0, .slice = slice_of(0, 2)}};
  EXPECT_TRUE(are_whole({frozen, part_of(1, 2)}, 1, 1, {0})) << "half of the moments is offloaded, half in use";
  frozen.offloaded = {};
  EXPECT_FALSE(are_whole({frozen, part_of(1, 2)}, 1, 1, {0})) << "half of the moments is lost";
}

TEST(MovesToRestore, BringAReplacedTensorRankItsHalfFromItsReplica) {
  // Two replicas of two tensor ranks; rank 3 is new.
  const Phase phase{.layout = {.data_parallel_size = 2, .tensor_parallel_size = 2}, .partition = {{0, 1}}};
  EXPECT_THAT(moves_to_restore({part_of(0, 2), part_of(1, 2), part_of(0, 2), kNothing}, phase),
              ElementsAre(TensorMove{0, 1, 3, true, 0, slice_of(1, 2)}));
}

TEST(MovesToRestore, CutHalvesIntoThirds) {
  const Phase phase{.layout = {.tensor_parallel_size = 3}, .partition = {{0, 1}}};
  // In sixths: rank 0 has 0-2 and wants 0-1, rank 1 has 3-5 and wants 2-3, rank 2 has nothing and wants 4-5.
  EXPECT_THAT(moves_to_restore({part_of(0, 2), part_of(1, 2), kNothing}, phase),
              ElementsAre(TensorMove{0, 0, 1, true, 0, {2, 3, 6}, false}, TensorMove{0, 1, 2, true, 0, {4, 6, 6}}));
}

TEST(MovesToRestore, LeaveOutRanksThatHaveTheirPartAlready) {
  // Two tensor ranks should become one in each of two replicas; the first replica had changed when rank 3 was lost.
  const Phase phase{.layout = {.data_parallel_size = 3}, .partition = {{0, 1}}};
  const RankInventory whole = part_of(0, 1), half = part_of(0, 2);
  EXPECT_THAT(moves_to_restore({whole, whole, half}, phase),
              ElementsAre(TensorMove{0, 0, 2, true, 0, {0, 1, 1}, false}));
  const Phase halves{.layout = {.data_parallel_size = 2, .tensor_parallel_size = 2}, .partition = {{0, 1}}};
  EXPECT_THAT(moves_to_restore({whole, whole, half, kNothing}, halves),
              ElementsAre(TensorMove{0, 0, 3, true, 0, {1, 2, 2}}));
}

TEST(RankInventory, ARankWhoseLayersHaveOnlyRecordedStepsKnowsTheRun) {
  RankInventory inventory = kSecond;
  EXPECT_FALSE(can_describe_run(inventory)) << "interrupted after its update";
  inventory.num_recorded = 5;
  EXPECT_TRUE(can_describe_run(inventory));
  EXPECT_FALSE(can_describe_run({.step = 9, .num_recorded = 9, .layers = {0}})) << "frozen layers only";
}

TEST(RankInventory, SurvivesItsText) {
  RankInventory third = kFirst;
  third.slice = slice_of(1, 3);
  third.offloaded = {{.layer = 0, .slice = slice_of(2, 3)}};
  RankInventory fourth = kFirst;
  fourth.gradient_norm = 0.1;
  fourth.lacks_norm = true;
  for (const RankInventory& inventory : {kFirst, third, fourth})
    EXPECT_EQ(inventory_from_text(to_text(inventory)), inventory);
}

}  // namespace
}  // namespace frostpipe
