// Oracle: the definitions, worked out by hand.
#include "executor/training/evaluation/label_scores.h"

#include <gtest/gtest.h>

#include <cmath>

namespace frostpipe {
namespace {

Dataset dataset_of(ProblemType problem_type, std::vector<std::string> names, std::vector<std::vector<double>> targets) {
  Dataset dataset;
  dataset.problem_type = problem_type;
  dataset.label_names = std::move(names);
  dataset.targets = std::move(targets);
  return dataset;
}

TEST(LabelScores, OfSeveralLabelsAreMicroF1AndExactMatch) {
  Dataset dataset = dataset_of(ProblemType::multi_label, {"x", "y"}, {{1, 0}, {0, 0}, {1, 1}});
  // Predicted: x and y; nothing; y. (A probability of 1/2 is not enough.)
  const std::vector<double> answers{.9, .6, .2, .5, .4, .8};
  const Score score = score_of(dataset, {0, 1, 2}, answers);
  EXPECT_EQ(score.metric, "micro F1");
  EXPECT_DOUBLE_EQ(score.value, 2.0 * 2 / (3 + 3)) << "x of the first, y of the third";
  // Deviations, 2 hits - F1 (labels + predictions): 2 - 2, 0, 2 - 2.
  EXPECT_DOUBLE_EQ(score.standard_error, 0);
  ASSERT_EQ(score.others.size(), 1u);
  EXPECT_EQ(score.others[0].name, "exact match");
  EXPECT_DOUBLE_EQ(score.others[0].value, 1.0 / 3);
  ASSERT_EQ(score.of_labels.size(), 2u);
  EXPECT_EQ(score.of_labels[0].count, 2);
  EXPECT_EQ(score.of_labels[0].predicted, 1);
  EXPECT_EQ(score.of_labels[1].hits, 1);
  dataset.items = {"a", "b, c", "d"};
  EXPECT_EQ(predictions_file(dataset, answers),
            "text,label,predicted,probability of x,probability of y\n"
            "a,\"[\"\"x\"\"]\",\"[\"\"x\"\",\"\"y\"\"]\",0.900000,0.600000\n"
            "\"b, c\",[],[],0.200000,0.500000\n"
            "d,\"[\"\"x\"\",\"\"y\"\"]\",\"[\"\"y\"\"]\",0.400000,0.800000\n");
  dataset.targets.clear();
  EXPECT_EQ(score_of(dataset, {0, 1, 2}, answers).metric, "");
}

TEST(LabelScores, OfNumbersAreCorrelationsAndTheSquaredError) {
  Dataset dataset = dataset_of(ProblemType::regression, {"LABEL_0"}, {{0}, {1}, {2}, {3}});
  const std::vector<double> answers{1, 1, 4, 2};
  const Score score = score_of(dataset, {0, 1, 2, 3}, answers);
  EXPECT_EQ(score.metric, "Pearson correlation");
  EXPECT_DOUBLE_EQ(score.value, 3 / std::sqrt(5.0 * 6)) << "products 3, squares 5 and 6 about the means 1.5 and 2";
  EXPECT_DOUBLE_EQ(score.standard_error, (1 - 0.3) / std::sqrt(3));
  ASSERT_EQ(score.others.size(), 2u);
  EXPECT_DOUBLE_EQ(score.others[0].value, 3.5 / std::sqrt(5 * 4.5)) << "ranks 0.5, 0.5, 3, 2";
  EXPECT_DOUBLE_EQ(score.others[1].value, (1 + 0 + 4 + 1) / 4.0);
  dataset.items = {"a", "b", "c", "d"};
  EXPECT_EQ(predictions_file(dataset, answers), "text,label,predicted\na,0,1\nb,1,1\nc,2,4\nd,3,2\n");
  dataset.targets.clear();
  EXPECT_EQ(predictions_file(dataset, answers), "text,predicted\na,1\nb,1\nc,4\nd,2\n");
}

TEST(LabelScores, OfConstantNumbersAreNoCorrelation) {
  const std::vector<double> constant{2, 2, 2}, other{1, 2, 3};
  EXPECT_EQ(pearson_correlation(constant, other), 0);
  EXPECT_EQ(spearman_correlation(constant, other), 0);
  EXPECT_DOUBLE_EQ(spearman_correlation(other, std::vector<double>{1, 10, 100}), 1);
}

// Oracle: pearsonr and spearmanr of scipy.
TEST(LabelScores, OfNumbersWithANaNAreNaN) {
  const double nan = std::nan("");
  const Dataset dataset = dataset_of(ProblemType::regression, {"LABEL_0"}, {{0}, {1}, {2}});
  const Score score = score_of(dataset, {0, 1, 2}, {1, nan, 2});
  EXPECT_TRUE(std::isnan(score.value));
  EXPECT_TRUE(std::isnan(score.standard_error));
  for (const NamedValue& other : score.others) EXPECT_TRUE(std::isnan(other.value)) << other.name;
  EXPECT_TRUE(std::isnan(spearman_correlation(std::vector<double>{1, 2}, std::vector<double>{nan, nan})));
  EXPECT_TRUE(std::isnan(pearson_correlation(std::vector<double>{1, 1}, std::vector<double>{1, nan})));
}

TEST(LabelScores, F1OfNothingIsNone) {
  EXPECT_EQ(f1_of(std::vector<Matches>{{0, 0, 0}}).value, 0);
  EXPECT_EQ(f1_of(std::vector<Matches>{}).standard_error, 0);
}

}  // namespace
}  // namespace frostpipe
