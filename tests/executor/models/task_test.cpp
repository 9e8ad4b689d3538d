#include "executor/models/task.h"
#include "profiles/transformer/families.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace frostpipe {
namespace {

/// Worked out by hand: the question is token 0, the context 1 to 3. Token 3 closes BERT's second segment; GPT-2's has
/// no such token. Another sample follows, whose tokens would all be better.
TEST(Answers, BestSpanIsOfTheContextAlone) {
  MicroBatch batch;
  batch.lengths = {4, 2};
  batch.token_types = at::tensor({0, 1, 1, 1, 0, 1}, at::kLong);
  const at::Tensor logits = at::tensor({9.f, 9.f, 1.f, 0.f, 2.f, 3.f, 0.f, 5.f, 9.f, 9.f, 9.f, 9.f})
                                .view({6, 2});  // start and end of each token
  const auto best = [&](Family family) {
    TransformerConfig config = described(family);
    config.task = Task::question_answering;
    const at::Tensor answer = answers_of(config, logits, batch);
    return std::vector<double>(answer.data_ptr<double>(), answer.data_ptr<double>() + 3);
  };
  EXPECT_EQ(best(Family::bert), (std::vector<double>{2, 2, 5}));
  EXPECT_EQ(best(Family::gpt2), (std::vector<double>{2, 3, 7}));
}

/// Worked out by hand: e^ln 3 / (e^0 + e^ln 3) = 3/4.
TEST(Answers, AClassComesWithItsProbability) {
  const at::Tensor logits = at::tensor({0.0, std::log(3.0), 5.0, 5.0}, at::kDouble).view({2, 2});
  for (const Task task : {Task::sequence_classification, Task::image_classification}) {
    const at::Tensor answer = answers_of({.task = task}, logits, MicroBatch());
    ASSERT_EQ(answer.sizes(), (std::vector<std::int64_t>{2, answer_size(task)}));
    const double* const value = answer.data_ptr<double>();
    EXPECT_EQ(value[0], 1);
    EXPECT_NEAR(value[1], 0.75, 1e-12);
    EXPECT_EQ(value[2], 0);
    EXPECT_NEAR(value[3], 0.5, 1e-12);
  }
}

}  // namespace
}  // namespace frostpipe
