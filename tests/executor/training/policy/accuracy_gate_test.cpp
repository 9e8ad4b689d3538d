// Oracle: the rule by hand, with accuracies that are exact in binary.
#include "executor/training/policy/accuracy_gate.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

using Verdict = AccuracyGate::Verdict;

Phase frozen_up_to(int first_trainable_layer, int from_step = 0) {
  return {.from_step = from_step, .first_trainable_layer = first_trainable_layer};
}

TEST(AccuracyGate, NeedsABaselineOnlyBeforeMoreFreezes) {
  const AccuracyGate gate(0.125);
  EXPECT_TRUE(gate.needs_baseline(frozen_up_to(0), frozen_up_to(3)));
  EXPECT_FALSE(gate.needs_baseline(frozen_up_to(3), frozen_up_to(3))) << "only the layout changes";
}

TEST(AccuracyGate, OfSeveralFreezesBetweenTwoEvaluationsTheFirstCounts) {
  AccuracyGate gate(0.125);
  gate.open({.step = 40, .accuracy = 0.75});
  EXPECT_FALSE(gate.needs_baseline(frozen_up_to(3), frozen_up_to(5)));
  EXPECT_EQ(gate.baseline(), (AccuracyGate::Baseline{.step = 40, .accuracy = 0.75}));
  gate.close();
  EXPECT_TRUE(gate.needs_baseline(frozen_up_to(3), frozen_up_to(5)));
}

TEST(AccuracyGate, ConfirmsWhatCostsNoMoreThanTheTolerance) {
  AccuracyGate gate(0.125);
  EXPECT_EQ(gate.judge(0), Verdict::nothing_to_judge);
  gate.open({.step = 40, .accuracy = 0.75});
  EXPECT_EQ(gate.judge(0.875), Verdict::confirmed);
  EXPECT_EQ(gate.judge(0.625), Verdict::confirmed) << "exactly the tolerance less";
  EXPECT_EQ(gate.judge(0.624), Verdict::too_low);
  EXPECT_TRUE(gate.baseline()) << "a verdict leaves the gate as it is: the ranks have yet to act on it together";
  gate.close();
  EXPECT_EQ(gate.judge(0), Verdict::nothing_to_judge);
}

TEST(AccuracyGate, AnEvaluationIsToBeJudgedAfterTheFreezeAlone) {
  AccuracyGate gate(0.125);
  EXPECT_FALSE(gate.is_to_judge_at(50)) << "nothing froze";
  gate.open({.step = 40, .accuracy = 0.75});
  EXPECT_FALSE(gate.is_to_judge_at(40)) << "that is the baseline's";
  EXPECT_TRUE(gate.is_to_judge_at(41));
  gate.close();
  EXPECT_FALSE(gate.is_to_judge_at(41)) << "it was judged";
}

TEST(AccuracyGate, WithAToleranceOfZeroTheAccuracyMustNotFall) {
  AccuracyGate gate(0.0);
  gate.open({.step = 40, .accuracy = 0.75});
  EXPECT_EQ(gate.judge(0.75), Verdict::confirmed);
  EXPECT_EQ(gate.judge(0.749), Verdict::too_low);
}

TEST(AccuracyGate, WithoutAToleranceFreezesStay) {
  AccuracyGate gate(std::nullopt);
  EXPECT_FALSE(gate.needs_baseline(frozen_up_to(0), frozen_up_to(3)));
  gate.open({.step = 40, .accuracy = 0.75});  // from a checkpoint that has one
  EXPECT_EQ(gate.judge(0), Verdict::nothing_to_judge);
}

TEST(DelayChanges, LaterFreezesAreDelayedByTheStepsThatTheRunGoesBack) {
  TrainingPlan plan{.phases = {frozen_up_to(0, 0), frozen_up_to(3, 40), frozen_up_to(5, 60)}};
  delay_changes(plan, 40, 50);
  EXPECT_EQ(plan.phases[0].from_step, 0);
  EXPECT_EQ(plan.phases[1].from_step, 50);
  EXPECT_EQ(plan.phases[2].from_step, 70);
}

// A freeze before the first step, and one at the step at which the run went on with another layout.
TEST(DelayChanges, ThePhaseThatRunsIsNotDelayedIfItBeganAtTheSameStep) {
  TrainingPlan plan{.phases = {frozen_up_to(0, 0), frozen_up_to(3, 60)}};
  delay_changes(plan, 0, 10);
  EXPECT_EQ(plan.phases[0].from_step, 0);
  EXPECT_EQ(plan.phases[1].from_step, 70);
  plan.phases = {frozen_up_to(3, 0), frozen_up_to(3, 40), frozen_up_to(5, 60)};
  delay_changes(plan, 40, 50);
  EXPECT_EQ(plan.phases[1].from_step, 40);
  EXPECT_EQ(plan.phases[2].from_step, 70);
  plan.phases = {frozen_up_to(3, 40)};
  delay_changes(plan, 40, 50);
  EXPECT_EQ(plan.phases[0].from_step, 40) << "nothing freezes later";
}

}  // namespace
}  // namespace frostpipe
