#include "plan/freeze.h"

#include <cmath>
#include <limits>
#include <random>

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using testing::ElementsAre;

std::vector<int> caps(int num_blocks, double alpha, int count) {
  std::vector<int> found;
  for (int decisions = 0; decisions < count; ++decisions) found.push_back(cap_rule(num_blocks, alpha, decisions));
  return found;
}

TEST(CapRule, IsTheScheduleOfThePublishedCodeFor12Layers) {
  // Frozen layers at epochs 0..9 in PipeTransformer.
  EXPECT_THAT(caps(12, 0.07, 10), ElementsAre(0, 1, 2, 3, 4, 4, 5, 5, 6, 6));
  EXPECT_THAT(caps(12, 1. / 5, 10), ElementsAre(0, 3, 5, 6, 8, 9, 9, 10, 10, 11));
  EXPECT_THAT(caps(12, 1. / 4, 10), ElementsAre(0, 3, 6, 7, 9, 10, 10, 11, 11, 12));
  EXPECT_THAT(caps(12, 1. / 3, 10), ElementsAre(0, 4, 7, 9, 10, 11, 11, 12, 12, 12));
  EXPECT_THAT(caps(12, 2. / 5, 10), ElementsAre(0, 5, 8, 10, 11, 12, 12, 12, 12, 12));
  EXPECT_THAT(caps(12, 1. / 2, 10), ElementsAre(0, 6, 9, 11, 12, 12, 12, 12, 12, 12));
}

TEST(CapRule, IsTheScheduleOfThePublishedCodeFor24Layers) {
  EXPECT_THAT(caps(24, 1. / 5, 3), ElementsAre(0, 5, 9));
  EXPECT_THAT(caps(24, 1. / 3, 3), ElementsAre(0, 8, 14));
  EXPECT_THAT(caps(24, 1. / 2, 3), ElementsAre(0, 12, 18));
}

TEST(CapRule, IsExactAtIntegers) {
  EXPECT_EQ(cap_rule(6, 0.5, 1), 3);
  // alpha = a / 10 and L = 10^T: the cap L - L (1 - a / 10)^T = 10^T - (10 - a)^T is a whole number.
  for (int a = 1; a < 10; ++a)
    for (int t = 1; t <= 6; ++t)
      EXPECT_EQ(cap_rule(std::lround(std::pow(10, t)), a / 10., t),
                std::lround(std::pow(10, t)) - std::lround(std::pow(10 - a, t)));
}

TEST(CapRule, RefusesAnAlphaThatIsNoFraction) {
  for (const double alpha : {0., 1., -0.5, 2., std::nan("")}) EXPECT_THROW(cap_rule(12, alpha, 1), InvalidInput);
}

TEST(PaperRule, FreezesBelowTheSmallestNormButAtMostTheCap) {
  const std::vector<double> norms{5, 4, 3, 1, 2, 6};
  EXPECT_EQ(paper_rule(0, 6, 0.9, norms), 3);  // layer 3 has the smallest norm; the cap would be 6
  EXPECT_EQ(paper_rule(0, 6, 0.3, norms), 2);  // ceil(1.8)
  EXPECT_EQ(paper_rule(4, 6, 0.5, norms), 4);  // of layers 4 and 5, 4 has the smaller norm: nothing more freezes
  EXPECT_EQ(paper_rule(3, 6, 0.5, norms), 3);
}

TEST(PaperRule, TiesGoToTheLowerLayerAndNanIsNeverSmallest) {
  const double nan = std::nan("");
  EXPECT_EQ(paper_rule(0, 4, 0.9, std::vector<double>{3, 1, 1, 2}), 1);
  EXPECT_EQ(paper_rule(0, 4, 0.9, std::vector<double>{nan, 5, nan, 2}), 3);
  EXPECT_EQ(paper_rule(1, 4, 0.9, std::vector<double>{nan, nan, nan, nan}), 1);
}

TEST(PaperRule, IsMonotoneAndNeverAboveTheCap) {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    const int layers = 1 + static_cast<int>(random() % 24);
    const double alpha = (1 + static_cast<int>(random() % 98)) / 100.;
    int frozen = 0;
    for (int decision = 0; decision < 12; ++decision) {
      std::vector<double> norms(layers);
      for (auto& norm : norms) norm = static_cast<double>(random() % 1000);
      const int next = paper_rule(frozen, layers, alpha, norms);
      EXPECT_GE(next, frozen);
      EXPECT_LE(next, layers);
      EXPECT_LE(next - frozen, std::ceil(alpha * (layers - frozen)));
      frozen = next;
    }
  }
}

TEST(DecisionSteps, StartAfterTheWarmUpAndRepeatAtTheInterval) {
  // 34 % of 100 is 34 though 0.34 * 100 is a little more in floating point; an eighth of 100 is 12.5, rounded 13.
  EXPECT_THAT(decision_steps(100, {}), ElementsAre(34, 47, 60, 73, 86, 99));
  EXPECT_THAT(decision_steps(8, {}), ElementsAre(3, 4, 5, 6, 7));
  EXPECT_THAT(decision_steps(10, {.warm_up_fraction = 0, .interval_fraction = 0.5, .alpha = 0.5}), ElementsAre(0, 5));
  EXPECT_THAT(decision_steps(10, {.warm_up_fraction = 1, .interval_fraction = 0.5, .alpha = 0.5}), ElementsAre());
  EXPECT_THAT(decision_steps(0, {}), ElementsAre());
}

TEST(DecisionSteps, RefuseFractionsThatAreNone) {
  EXPECT_THROW(decision_steps(10, {.warm_up_fraction = -0.1}), InvalidInput);
  EXPECT_THROW(decision_steps(10, {.warm_up_fraction = 1.1}), InvalidInput);
  EXPECT_THROW(decision_steps(10, {.interval_fraction = 0}), InvalidInput);
  EXPECT_THROW(decision_steps(10, {.interval_fraction = std::nan("")}), InvalidInput);
}

TEST(ForecastCap, ListsOnlyWhatFreezesMore) {
  // 6 blocks, alpha 1/2: 3, 5, 6, 6, ...
  EXPECT_THAT(forecast_cap(6, 100, {}), ElementsAre(FreezeEvent{34, 3}, FreezeEvent{47, 5}, FreezeEvent{60, 6}));
  EXPECT_THAT(forecast_cap(0, 100, {}), ElementsAre());
}

TEST(ForecastFixed, FreezesAtTheDecisionsThatFreezeMore) {
  EXPECT_EQ(parse_fixed_layers("2,2,6"), (std::vector<int>{2, 2, 6}));
  for (const char* text : {"", "3,2", "3,", "x", "3;4"}) EXPECT_FALSE(parse_fixed_layers(text)) << text;
  // Decisions before steps 34, 47, 60, ...
  EXPECT_THAT(forecast_fixed(std::vector<int>{2, 2, 6}, 100, {}), ElementsAre(FreezeEvent{34, 2}, FreezeEvent{60, 6}));
}

}  // namespace
}  // namespace frostpipe
