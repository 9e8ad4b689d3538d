#include "executor/models/task.h"
#include "profiles/transformer/families.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "executor/models/sliced_attention.h"

namespace frostpipe {
namespace {

/// Computed by hand: the question is token 0, the context 1 and 2, which token 3 closes, or 1 to 3. Another sample
/// follows, whose tokens would all have higher scores. A decoder's context may be closed, and an encoder's need not be.
TEST(Answers, BestSpanIsOfTheContextAlone) {
  MicroBatch batch;
  batch.lengths = {4, 2};
  const at::Tensor logits = at::tensor({9.f, 9.f, 1.f, 0.f, 2.f, 3.f, 0.f, 5.f, 9.f, 9.f, 9.f, 9.f})
                                .view({6, 2});  // start and end of each token
  const auto best = [&](Family family, const TokenRange& context) {
    batch.contexts = {context, {1, 2}};
    TransformerConfig config = described(family);
    config.task = Task::question_answering;
    const at::Tensor answer = answers_of(config, logits, batch);
    return std::vector<double>(answer.data_ptr<double>(), answer.data_ptr<double>() + 4);
  };
  for (const Family family : {Family::bert, Family::qwen3}) {
    EXPECT_EQ(best(family, {1, 3}), (std::vector<double>{2, 2, 5, 18})) << "the last is the first token's";
    EXPECT_EQ(best(family, {1, 4}), (std::vector<double>{2, 3, 7, 18}));
  }
}

/// Computed by hand: e^ln 3 / (e^0 + e^ln 3) = 3/4.
TEST(Answers, AClassComesWithItsProbability) {
  const at::Tensor logits = at::tensor({0.0, std::log(3.0), 5.0, 5.0}, at::kDouble).view({2, 2});
  for (const Task task : {Task::sequence_classification, Task::image_classification}) {
    const at::Tensor answer = answers_of({.task = task}, logits, MicroBatch());
    ASSERT_EQ(answer.sizes(), (std::vector<std::int64_t>{2, 2}));
    const double* const value = answer.data_ptr<double>();
    EXPECT_EQ(value[0], 1);
    EXPECT_NEAR(value[1], 0.75, 1e-12);
    EXPECT_EQ(value[2], 0);
    EXPECT_NEAR(value[3], 0.5, 1e-12);
  }
}

/// Worked out by hand: the sigmoid of ln 3 is 3/4.
TEST(Answers, OfSeveralLabelsAreTheirProbabilitiesAndOfRegressionTheNumbers) {
  const at::Tensor logits = at::tensor({0.0, std::log(3.0), -std::log(3.0), 0.0}, at::kDouble).view({2, 2});
  const at::Tensor several = answers_of({.num_labels = 2, .problem_type = ProblemType::multi_label}, logits, {});
  EXPECT_TRUE(at::allclose(several, at::tensor({0.5, 0.75, 0.25, 0.5}, at::kDouble).view({2, 2}), 1e-12)) << several;
  const at::Tensor numbers =
      answers_of({.num_labels = 1, .problem_type = ProblemType::regression}, logits.narrow(1, 1, 1), {});
  EXPECT_TRUE(numbers.equal(logits.narrow(1, 1, 1)));
  const at::Tensor words = answers_of({.task = Task::token_classification}, logits, {});
  EXPECT_TRUE(at::allclose(words, at::tensor({1.0, 0.75, 1.0, 0.75}, at::kDouble).view({2, 2}), 1e-12)) << words;
}

/// Two texts of 4 and 3 tokens over a vocabulary of 3; the rows of logits are ln 1 = 0, ln 2 and ln 5, so that a
/// token's probability is 1/8, 2/8 or 5/8 by its number. The first token is never predicted. Tokens 2 and 3 of the
/// first text and token 1 of the second have a loss.
struct MaskedTexts {
  MaskedTexts() {
    batch.lengths = {4, 3};
    batch.labels = at::tensor({0L, kIgnored, 2L, 1L, 2L, 0L, kIgnored}, at::kLong);
    const at::Tensor row = at::tensor({0.0, std::log(2.0), std::log(5.0)}, at::kDouble);
    logits = row.repeat({7, 1});
  }
  MicroBatch batch;
  at::Tensor logits;
  TransformerConfig config{.family = Family::gpt2, .task = Task::causal_language_modeling, .vocab_size = 3};
  double by_hand = -(std::log(5.0 / 8) + std::log(2.0 / 8)) / 2 - std::log(1.0 / 8);
};

TEST(CausalLoss, IsTheMeanOverTheTokensThatHaveOneByHand) {
  MaskedTexts texts;
  texts.logits.requires_grad_(true);
  const at::Tensor loss = loss_sum(texts.config, texts.logits, texts.batch, /*label_smoothing=*/0);
  EXPECT_NEAR(loss.item<double>(), texts.by_hand, 1e-12);
  loss.backward();
  // (softmax - target) / (number of tokens with a loss), in rows 1 and 2 (which predict tokens 2 and 3) and in row 4
  // (which predicts token 1 of the second text).
  const at::Tensor expected = at::tensor({0.,      0.,       0.,        //
                                          1. / 16, 2. / 16,  -3. / 16,  //
                                          1. / 16, -6. / 16, 5. / 16,   //
                                          0.,      0.,       0.,        //
                                          -7. / 8, 2. / 8,   5. / 8,    //
                                          0.,      0.,       0.,        //
                                          0.,      0.,       0.},
                                         at::kDouble)
                                  .view({7, 3});
  EXPECT_TRUE(at::allclose(texts.logits.grad(), expected, 1e-12, 1e-12)) << texts.logits.grad();
}

TEST(CausalLoss, OfAllSlicesIsThatOfTheTexts) {
  MaskedTexts texts;
  KeyValuesOfLayers key_values;
  double sum = 0;
  for (const TokenRange& range : {TokenRange{0, 2}, TokenRange{2, 3}, TokenRange{3, 9}}) {
    const MicroBatch slice = texts.batch.slice(range, key_values);
    const at::Tensor logits = texts.logits.index_select(0, rows_of_slice(texts.batch.lengths, range));
    sum += loss_sum(texts.config, logits, slice, /*label_smoothing=*/0).item<double>();
  }
  EXPECT_NEAR(sum, texts.by_hand, 1e-12);
}

TEST(CausalLoss, OfATextWithoutAnyTokenToPredictIsNone) {
  MaskedTexts texts;
  texts.batch.labels.fill_(kIgnored);
  EXPECT_EQ(loss_sum(texts.config, texts.logits, texts.batch, 0).item<double>(), 0);
}

/// The most likely token is 2 everywhere.
TEST(Answers, OfATextAreLossAndHitsOfTheTokensThatHaveALoss) {
  const MaskedTexts texts;
  const at::Tensor answers = answers_of(texts.config, texts.logits, texts.batch);
  const double* const value = answers.data_ptr<double>();
  EXPECT_NEAR(value[0], -(std::log(5.0 / 8) + std::log(2.0 / 8)) / 2, 1e-12);
  EXPECT_EQ(value[1], 2);
  EXPECT_EQ(value[2], 1);
  EXPECT_NEAR(value[3], -std::log(1.0 / 8), 1e-12);
  EXPECT_EQ(value[4], 1);
  EXPECT_EQ(value[5], 0);
}

}  // namespace
}  // namespace frostpipe
