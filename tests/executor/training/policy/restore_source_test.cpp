// Oracle: cases made by hand.
#include "executor/training/policy/restore_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"

namespace frostpipe {
namespace {

using testing::ElementsAre;
using Kind = RestoreSource::Kind;

// A model of four layers on two ranks, whose first layer froze before step 4.
const RankInventory kLowerHalf{
    .step = 6, .phase_from = 4, .num_recorded = 6, .layers = {0, 1}, .trainable = {1}, .offloaded = {{.layer = 0}}},
    kUpperHalf{.step = 6, .phase_from = 4, .num_recorded = 6, .layers = {2, 3}, .trainable = {2, 3}}, kSpare;
constexpr int kNumLayers = 4;

TrainingPlan plan_that_freezes_before(int step) {
  TrainingPlan plan{
      .method = PlanMethod::pipetransformer, .world_size = 2, .num_steps = 20, .phases = {Phase{}, Phase{}}};
  for (Phase& phase : plan.phases) {
    phase.layout = {.pipeline_parallel_size = 2};
    phase.partition = {{0, 2}, {2, 4}};
  }
  plan.phases[1].from_step = step;
  plan.phases[1].first_trainable_layer = 1;
  return plan;
}

Checkpoint snapshot_of(int step, const TrainingPlan& plan = plan_that_freezes_before(4)) {
  return {.step = step,
          .plan_fingerprint = fingerprint(to_json(plan)),
          .freeze_rule = "plan",
          .plan = plan,
          .folder = checkpoint_path("checkpoints", step)};
}

/// `plan` is the plan in the snapshots of the ranks that can describe the run.
RestoreSource chosen(const std::vector<RankInventory>& inventories, const std::optional<Checkpoint>& stored,
                     int num_moments = 2, const TrainingPlan& plan = plan_that_freezes_before(4)) {
  std::vector<SurvivorMemory> memories;
  for (const int reference : ranks_that_can_describe_run(inventories))
    memories.push_back(memory_of(inventories, reference, snapshot_of(inventories[reference].step, plan)));
  return choose_restore_source(inventories, whole_memory(memories, stored, kNumLayers, num_moments), stored);
}

TEST(RanksThatKnow, AreTheFirstWithTrainableLayersAndTheirFigures) {
  EXPECT_THAT(ranks_that_can_describe_run({kSpare, kUpperHalf, kLowerHalf}), ElementsAre(1));
  RankInventory unrecorded = kUpperHalf;
  unrecorded.num_recorded = 5;
  EXPECT_THAT(ranks_that_can_describe_run({unrecorded, kLowerHalf}), ElementsAre(1))
      << "lost in the middle of its last step";
  RankInventory frozen = kLowerHalf;
  frozen.trainable = {};
  EXPECT_THAT(ranks_that_can_describe_run({frozen, kSpare}), ElementsAre()) << "ranks of frozen layers know no loss";
}

RankInventory whole_model_at(int step) {
  return {.step = step,
          .phase_from = 4,
          .num_recorded = step,
          .layers = {0, 1, 2, 3},
          .trainable = {1, 2, 3},
          .offloaded = {{.layer = 0}}};
}

TEST(RanksThatKnow, AreTheFurthestFirst) {
  EXPECT_THAT(ranks_that_can_describe_run({whole_model_at(5), whole_model_at(6), whole_model_at(5)}),
              ElementsAre(1, 0));
}

TEST(RestoreSource, IsTheMemoryOfTheRankThatIsAheadOfItsReplicas) {
  const RestoreSource source = chosen({whole_model_at(5), whole_model_at(6)}, std::nullopt);
  EXPECT_EQ(source.kind, Kind::survivors);
  EXPECT_EQ(source.lost_steps, 0);
}

TEST(RestoreSource, IsTheMemoryOfThoseBehindWhereTheOneAheadHasHalf) {
  const RestoreSource source = chosen({kUpperHalf, whole_model_at(5)}, snapshot_of(3));
  EXPECT_EQ(source.kind, Kind::survivors);
  EXPECT_EQ(source.lost_steps, 1) << "which the upper half has done";
}

TEST(RestoreSource, OfARankAheadThatHasNotRecordedItsStepIsTheMemoryOfThoseBehind) {
  RankInventory unrecorded = whole_model_at(6);
  unrecorded.num_recorded = 5;
  const RestoreSource source = chosen({unrecorded, whole_model_at(5)}, std::nullopt);
  EXPECT_EQ(source.kind, Kind::survivors);
  EXPECT_EQ(source.lost_steps, 1);
}

TEST(RestoreSource, IsTheSurvivorsMemoryWhereEveryLayerIsInIt) {
  const RestoreSource source = chosen({kLowerHalf, kUpperHalf, kSpare}, snapshot_of(5));
  EXPECT_EQ(source.kind, Kind::survivors);
  EXPECT_EQ(source.lost_steps, 0);
  EXPECT_EQ(to_string(source, snapshot_of(5)), "the survivors' memory");
}

TEST(RestoreSource, IsTheNewestCheckpointWhereALayerIsLost) {
  const RestoreSource source = chosen({kSpare, kUpperHalf}, snapshot_of(5));
  EXPECT_EQ(source.kind, Kind::checkpoint);
  EXPECT_EQ(source.lost_steps, 6 - 5);
  EXPECT_EQ(to_string(source, snapshot_of(5)), "checkpoint step-00000005");
}

TEST(RestoreSource, IsTheCheckpointWhereOneSurvivorHasDoneTheUpdateAndTheOtherHasNot) {
  RankInventory behind = kLowerHalf;
  behind.step = 5;
  const RestoreSource source = chosen({behind, kUpperHalf}, snapshot_of(3));
  EXPECT_EQ(source.kind, Kind::checkpoint);
  EXPECT_EQ(source.lost_steps, 6 - 3) << "counted from the furthest";
}

TEST(RestoreSource, IsTheBeginningWhereNothingElseIsLeft) {
  const RestoreSource source = chosen({kSpare, kUpperHalf}, std::nullopt);
  EXPECT_EQ(source.kind, Kind::beginning);
  EXPECT_EQ(source.lost_steps, 6);
  EXPECT_EQ(to_string(source, std::nullopt), "the beginning");
  EXPECT_EQ(chosen({kSpare, kSpare}, std::nullopt).lost_steps, 0) << "nobody knows of any step";
}

TEST(RestoreSource, RanksOfFrozenLayersRunAheadAndLoseNoStep) {
  RankInventory ahead = kLowerHalf;
  ahead.step = 9;
  ahead.layers = {0};
  ahead.trainable = {};
  const RestoreSource source = chosen({ahead, kUpperHalf}, snapshot_of(6));
  EXPECT_EQ(source.kind, Kind::checkpoint) << "layer 1 is lost";
  EXPECT_EQ(source.lost_steps, 0);
}

TEST(RestoreSource, TheMomentsOfLayersThatFrozeMustBeSomewhere) {
  RankInventory without_moments = kLowerHalf;
  without_moments.offloaded = {};
  const std::vector<RankInventory> survivors{without_moments, kUpperHalf};
  EXPECT_EQ(chosen(survivors, std::nullopt).kind, Kind::beginning) << "a later unfreezing would lack them";
  EXPECT_EQ(chosen(survivors, snapshot_of(3)).kind, Kind::checkpoint) << "in it layer 0 still trains";
  EXPECT_EQ(chosen(survivors, snapshot_of(5)).kind, Kind::survivors) << "in it they are offloaded, as they still are";
  EXPECT_EQ(chosen(survivors, std::nullopt, /*num_moments=*/0).kind, Kind::survivors) << "SGD has none";
}

TEST(RestoreSource, ALossExactlyBeforeAFreezeFindsTheMomentsWithTheLayersThatStillTrain) {
  RankInventory lower = kLowerHalf;
  lower.phase_from = 0;
  lower.trainable = {0, 1};
  lower.offloaded = {};
  RankInventory upper = kUpperHalf;
  upper.phase_from = 0;
  const TrainingPlan plan = plan_that_freezes_before(6);
  for (const std::optional<Checkpoint>& stored :
       {std::optional<Checkpoint>(), std::optional(snapshot_of(3)), std::optional(snapshot_of(6, plan))}) {
    const RestoreSource source = chosen({lower, upper}, stored, /*num_moments=*/2, plan);
    EXPECT_EQ(source.kind, Kind::survivors);
    EXPECT_EQ(source.lost_steps, 0);
  }
}

TEST(PhasesAfter, OfTheSameRunAreTheSnapshotsOwn) {
  TrainOptions options{.plan = plan_that_freezes_before(4)};
  Checkpoint snapshot = snapshot_of(6);
  snapshot.plan.phases[1].num_micro_batches = 7;  // chosen during the run
  const std::vector<Phase> phases = phases_after(snapshot, options, 2);
  ASSERT_EQ(phases.size(), 1u);
  EXPECT_EQ(phases[0], snapshot.plan.phases[1]);
  EXPECT_EQ(phases_after(snapshot_of(3), options, 2), snapshot_of(3).plan.phases) << "the freeze is still to come";
}

TEST(PhasesAfter, WhereRanksAreThereAgainAreThePlans) {
  TrainOptions options{.plan = plan_that_freezes_before(4)};
  Checkpoint snapshot = snapshot_of(6);
  snapshot.plan.phases[1].num_micro_batches = 7;  // only on one rank
  snapshot.run.recoveries = {{.world_size = 1}};
  EXPECT_EQ(phases_after(snapshot, options, 1).front(), snapshot.plan.phases[1]) << "as few as before";
  EXPECT_EQ(phases_after(snapshot, options, 2).front(), options.plan.phases[1]);
}

TEST(PhasesAfter, OfAnotherPlanAreThatPlans) {
  const TrainOptions options{.plan = plan_that_freezes_before(8)};
  EXPECT_EQ(phases_after(snapshot_of(6), options, 2), options.plan.phases) << "layer 0 trains again until step 8";
}

TEST(PhasesAfter, WhereARuleDecidesWhatIsFrozenStaysFrozen) {
  TrainOptions options{.plan = plan_that_freezes_before(8)};
  options.freeze.rule = FreezePolicy::Rule::paper;
  const std::vector<Phase> phases = phases_after(snapshot_of(6), options, 2);
  ASSERT_EQ(phases.size(), 1u);
  EXPECT_EQ(phases[0].first_trainable_layer, 1);
  EXPECT_EQ(phases[0].partition, options.plan.phases[0].partition);
}

}  // namespace
}  // namespace frostpipe
