// Repeats rank tests of other files with every rank on CUDA (or on FROSTPIPE_TEST_DEVICE), with their own oracles: one
// process on the CPU, or the undisturbed run. If there are fewer GPUs than ranks, ranks share them, and messages go
// through host memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "tests/executor/ranks.h"
#include "tests/executor/test_device.h"

namespace frostpipe::test {
namespace {

struct OnRanks {
  std::string name;
  int num_ranks;
};

/// All names are looked up first, with a GPU and without.
void pass_on_device(const std::vector<OnRanks>& tests) {
  for (const OnRanks& test : tests) ASSERT_TRUE(is_rank_test(test.name)) << "no rank test is called " << test.name;
  const bool is_given = std::getenv("FROSTPIPE_TEST_DEVICE") != nullptr;
  if (!is_given) setenv("FROSTPIPE_TEST_DEVICE", "cuda", 1);
  const auto reason = reason_without_device(std::getenv("FROSTPIPE_TEST_DEVICE"));
  if (!reason) {
    setenv("CUDA_MODULE_LOADING", "LAZY", 1);  // each rank is a separate program and uses few kernels
    for (const OnRanks& test : tests) EXPECT_TRUE(passes_on_ranks(test.name, test.num_ranks)) << test.name;
  }
  if (!is_given) unsetenv("FROSTPIPE_TEST_DEVICE");
  if (reason) GTEST_SKIP() << *reason;
}

/// Forward, backward and update of BERT, ViT and GPT-2 with each of their heads; frozen layers among them.
TEST(RanksOnDevice, EveryHead) {
  pass_on_device({{"Exactness.EveryHeadOn1StagesX1ReplicasEqualsOneProcess", 1},
                  {"Exactness.EveryHeadOn2StagesX2ReplicasEqualsOneProcess", 4},
                  {"Reconfiguration.RunOfEveryHeadThroughReconfigurationsEqualsOneProcess", 2}});
}

TEST(RanksOnDevice, Bfloat16) { pass_on_device({{"BFloat16.TrainsCloseToFloat32AndKeepsSmallSteps", 2}}); }

/// Recomputation, and dropout, whose random numbers the CPU generates.
TEST(RanksOnDevice, RecomputingAndDropout) {
  pass_on_device({{"Exactness.GradientsWithRecomputingEqualOneProcess", 2}, {"DropoutInLayouts.EqualsOneProcess", 2}});
}

/// These and the ones below cover every schedule.
TEST(RanksOnDevice, SchedulesOfOneStagePerRank) {
  pass_on_device({{"Exactness.GradientsOf4StagesX1ReplicasEqualOneProcess", 4},
                  {"Exactness.SplitBackwardsOf2StagesX1ReplicasEqualOneProcess", 2},
                  {"WeightDelay.FourStepsOn2StagesEqualOneProcess", 2},
                  {"WeightDelay.AChangeBeginsWithEqualVersions", 4}});
}

/// Iterations as CUDA graphs.
TEST(RanksOnDevice, CudaGraphs) {
  pass_on_device({{"IterationGraphs.GradientsOnOneRankEqualOneProcess", 1},
                  {"IterationGraphs.GradientsOnTwoRanksEqualOneProcess", 2},
                  {"IterationGraphs.GradientsOnTwoRanksWithReplicasEqualOneProcess", 4},
                  {"IterationGraphs.GradientsOfEveryHeadEqualOneProcess", 2},
                  {"IterationGraphs.StepsOfAPipelineAreThoseWithout", 2},
                  {"IterationGraphs.StepsOfReplicasAreThoseWithout", 2},
                  {"IterationGraphs.StepsOfAVWithReplicasAreThoseWithout", 4}});
}

/// Schedules with overlapping iterations.
TEST(RanksOnDevice, TiedEmbeddings) { pass_on_device({{"WeightDelay.FourStepsOfEveryHeadEqualOneProcess", 2}}); }

TEST(RanksOnDevice, SchedulesOfSeveralStagesPerRank) {
  pass_on_device({{"Schedules.GradientsOnTwoRanksEqualOneProcess", 2},
                  {"Schedules.GradientsOfEveryHeadEqualOneProcess", 2},
                  {"Reconfiguration.RunThroughSchedulesOfSeveralStagesPerRankEqualsOneProcess", 4}});
}

TEST(RanksOnDevice, TokenSlices) {
  pass_on_device({{"Slices.GradientsOn2StagesEqualOneProcess", 2},
                  {"Slices.GradientsThroughHostMemoryEqualOneProcess", 4},
                  {"Reconfiguration.RunThroughTokenSlicesEqualsOneProcess", 2}});
}

/// Embedding, loss and answers with tensor ranks.
TEST(RanksOnDevice, SharedVocabulary) {
  pass_on_device({{"Vocabulary.AloneLossesAndGradientsAreLibTorchs", 1},
                  {"Vocabulary.LossesAndTheirGradientsAreThoseOfTheWholeLogits", 2},
                  {"Vocabulary.PredictionsAreThoseOfTheWholeLogits", 2},
                  {"VocabularyParallel.SmoothedLossesOf2StagesEqualOneProcess", 4},
                  {"VocabularyParallel.AnswersOf2StagesEqualOneProcess", 4}});
}

/// Gradients are clipped by a norm on which tensor ranks agree, with and without sequence parallelism.
TEST(RanksOnDevice, TensorRanks) {
  pass_on_device({{"TensorExactness.ClippedStepsOf2StagesEqualOneProcess", 4},
                  {"TensorExactness.GradientsOfScatteredMessagesEqualOneProcess", 4},
                  {"TensorExactness.ClippedStepsOfSplitTokensOf2StagesEqualOneProcess", 4},
                  {"TensorExactness.DelayedStepsOf2StagesEqualOneProcess", 4}});
}

/// Measured by the allocator's live bytes.
TEST(RanksOnDevice, NothingOfAnIterationIsLeft) {
  pass_on_device({{"Schedules.NothingOfAnIterationIsLeftOnTwoRanks", 2}, {"Slices.NothingOfAnIterationIsLeft", 2}});
}

TEST(RanksOnDevice, LiveChange) {
  pass_on_device({{"Reconfiguration.SgdRunOf4To2To1StagesEqualsOneProcess", 4},
                  {"Reconfiguration.AdamWRunOf4To2To1StagesEqualsOneProcess", 4},
                  {"Reconfiguration.RunWithRanksThatAreIdleForAWhileEqualsOneProcess", 4},
                  {"Reconfiguration.StepAfterReconfigurationEqualsAFreshStartInTheNewLayoutToTheBit", 2}});
}

TEST(RanksOnDevice, ActivationCache) {
  pass_on_device({{"Cache.AcrossReBasesEqualsComputing", 2},
                  {"Cache.InSinglePrecisionEqualsComputing", 2},
                  {"Cache.StoredAsBfloat16IsWithinItsRounding", 2},
                  {"Cache.OfFrozenLayersInBfloat16EqualsComputing", 2},
                  {"Cache.WithAPrefixOverSeveralStagesEqualsComputing", 4},
                  {"Cache.WithTokenSlicesAcrossReBasesEqualsComputing", 2},
                  {"Cache.KeepsNothingThatAGpuHadAfterALoss", 1}});
}

TEST(RanksOnDevice, CheckpointAndResume) {
  pass_on_device({{"Resume.OnTheSame1StagesX1ReplicasGoesOnToTheBit", 1},
                  {"Resume.OnTheSame2StagesX2ReplicasGoesOnToTheBit", 4},
                  {"Resume.WithFrozenLayersInBfloat16GoesOnToTheBit", 2},
                  {"Resume.InAnotherLayoutTrainsTheSameModel", 4}});
}

}  // namespace
}  // namespace frostpipe::test
