// Oracle: worked by hand.
#include "papers/prediction_errors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace frostpipe {
namespace {

TEST(PredictionErrors, AreThoseOfAWorkedExample) {
  const std::vector<Predicted> pairs = {{110, 100}, {180, 200}, {300, 300}, {480, 400}};  // +10, -10, 0, +20 %
  const PredictionErrors errors = prediction_errors(pairs);
  EXPECT_EQ(errors.count, 4);
  EXPECT_NEAR(errors.mean, 0.10, 1e-12);
  EXPECT_NEAR(errors.median, 0.10, 1e-12);
  EXPECT_NEAR(errors.largest, 0.20, 1e-12);
  EXPECT_NEAR(errors.bias, 0.05, 1e-12);
  EXPECT_NEAR(errors.rank_correlation, 1, 1e-12);
}

TEST(PredictionErrors, RankCorrelationSeesTheOrderAlone) {
  EXPECT_NEAR(prediction_errors(std::vector<Predicted>{{3, 1}, {2, 2}, {1, 3}}).rank_correlation, -1, 1e-12);
  // Ranks 1, 2.5, 2.5 against 1, 2, 3: covariance 1.5, deviations sqrt(1.5 * 2).
  EXPECT_NEAR(prediction_errors(std::vector<Predicted>{{1, 1}, {5, 2}, {5, 3}}).rank_correlation, 1.5 / std::sqrt(3.0),
              1e-12);
  EXPECT_EQ(prediction_errors(std::vector<Predicted>{{1, 1}}).rank_correlation, 0);
  EXPECT_EQ(prediction_errors({}).count, 0);
}

}  // namespace
}  // namespace frostpipe
