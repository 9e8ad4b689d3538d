#include "executor/loading/samples.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "executor/models/task.h"

namespace frostpipe {
namespace {

using Ranges = std::vector<SampleRange>;
using Lengths = std::vector<std::int64_t>;

/// Computed by hand: 24 tokens of two nodes' samples, 12 of each node.
TEST(Cut, AReplicasSamplesAreOfItsOwnNode) {
  const std::vector<int> samples{0, 1, 2, 3, 4, 5, 6};
  MiniBatch batch{.samples = samples, .lengths = {2, 2, 4, 4, 3, 3, 6}, .num_shards = 2};
  EXPECT_EQ(cut(batch, 2, 2), (Ranges{{0, 3}, {3, 4}, {4, 6}, {6, 7}}));
  batch.num_shards = 1;
  EXPECT_EQ(cut(batch, 2, 2), (Ranges{{0, 3}, {3, 5}, {5, 6}, {6, 7}}));
  batch.num_shards = 3;  // one replica would have to serve two nodes: the cut is of the whole
  EXPECT_EQ(cut(batch, 2, 2), (Ranges{{0, 3}, {3, 5}, {5, 6}, {6, 7}}));
}

TEST(BatchesOf, HaveAtMostSoManyTokensAndSamples) {
  // Samples 0 to 6 of 1, 1, 1, 1, 2, 3, 9 tokens.
  const TokenSamples data(
      {.token_ids = {{0}, {0}, {0}, {0}, {0, 0}, {0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 0}}, .labels = {}});
  const std::vector<int> all{0, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(batches_of(data, all, 3, 5), (Ranges{{0, 3}, {3, 5}, {5, 6}, {6, 7}}));
  EXPECT_EQ(batches_of(data, all, 4, 100), (Ranges{{0, 4}, {4, 7}}));
  EXPECT_EQ(batches_of(data, all, 4, 0), (Ranges{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}}));
  EXPECT_EQ(batches_of(data, std::vector<int>{6, 4, 5}, 4, 5), (Ranges{{0, 1}, {1, 3}}));
  EXPECT_EQ(batches_of(data, {}, 4, 5), Ranges{});
}

/// Tokens without a loss have the label "ignored"; the model's input is the same.
TEST(TokenSamples, OfTextsLabelTheTokensThatAreLearned) {
  EncodedData data{.token_ids = {{1, 2, 3, 4}, {5, 6}, {7}}, .labels = {}, .labels_per_sample = 0};
  const TokenSamples all(data);
  data.learned = {{{1, 2}, {3, 4}}, {{0, 2}}, {}};
  const TokenSamples some(data);
  const std::vector<int> numbers{1, 0, 2};
  const MicroBatch batch = some.load({}, numbers, at::kFloat, /*with_input=*/true);
  EXPECT_TRUE(batch.labels.equal(at::tensor({5L, 6L, kIgnored, 2L, kIgnored, 4L, kIgnored}, at::kLong)));
  EXPECT_TRUE(batch.input.equal(at::tensor({5, 6, 1, 2, 3, 4, 7}, at::kLong)));
  EXPECT_TRUE(all.load({}, numbers, at::kFloat, true).labels.equal(batch.input));
  EXPECT_EQ(some.key(0), all.key(0)) << "activations are those of the same tokens";
  EXPECT_NE(some.fingerprint(), all.fingerprint()) << "it is another run";
  EXPECT_DOUBLE_EQ(learned_part(some, numbers), 4.0 / 7);
  EXPECT_DOUBLE_EQ(learned_part(all, numbers), 1);
}

TEST(TokenSamples, MayHaveALabelForEachTokenOrSeveralNumbers) {
  const int none = static_cast<int>(kIgnored);
  EncodedData data{.token_ids = {{1, 2, 3}, {4, 5}, {6}}, .labels = {}};
  data.token_labels = {{none, 7, 0}, {1, none}, {none}};
  const TokenSamples words(data);
  const std::vector<int> numbers{1, 0, 2};
  EXPECT_TRUE(words.load({}, numbers, at::kFloat, false)
                  .labels.equal(at::tensor({1L, kIgnored, kIgnored, 7L, 0L, kIgnored}, at::kLong)));
  EXPECT_EQ(words.loss_terms(numbers), 3);
  EXPECT_EQ(words.loss_terms(std::vector<int>{2}), 0);
  data.token_labels[2] = {5};
  EXPECT_NE(TokenSamples(data).fingerprint(), words.fingerprint()) << "it is another run";
  data.token_labels.clear();
  data.targets = {{0, 1}, {0.5, -2}, {1, 1}};
  const TokenSamples several(data);
  const MicroBatch batch = several.load({}, numbers, at::kFloat, false);
  EXPECT_TRUE(batch.labels.equal(at::tensor({0.5, -2.0, 0.0, 1.0, 1.0, 1.0}, at::kDouble).view({3, 2})));
  EXPECT_TRUE(batch.narrow(1, 2).labels.equal(batch.labels.narrow(0, 1, 2)));
  EXPECT_EQ(several.loss_terms(numbers), 3);
}

TEST(AnswerBegins, FollowTheSamplesTokens) {
  const TokenSamples data({.token_ids = {{1, 2, 3}, {4, 5}, {6}}, .labels = {}});
  const std::vector<int> numbers{1, 0, 2};
  EXPECT_EQ(answer_begins(data, numbers, {.of_sample = 3}), (std::vector<std::size_t>{0, 3, 6, 9}));
  EXPECT_EQ(answer_begins(data, numbers, {.of_sample = 0, .of_token = 2}), (std::vector<std::size_t>{0, 4, 10, 12}));
}

/// Tokens and pixels of a micro-batch stay with their samples.
TEST(MicroBatch, PartsHoldTheirSamplesTokens) {
  EncodedData data{.token_ids = {{1, 2}, {3}, {4, 5, 6}}, .labels = {7, 8, 9}};
  data.first_segment_sizes = {1, 1, 2};
  data.contexts = {{1, 2}, {1, 1}, {2, 3}};
  const TokenSamples samples(std::move(data));
  const std::vector<int> numbers{2, 0, 1};
  const MicroBatch batch = samples.load({}, numbers, at::kFloat, /*with_input=*/true);
  EXPECT_EQ(batch.lengths, (Lengths{3, 2, 1}));
  EXPECT_EQ(batch.offsets(), (Lengths{0, 3, 5, 6}));
  const auto values = [](const at::Tensor& tensor) {
    return Lengths(tensor.data_ptr<std::int64_t>(), tensor.data_ptr<std::int64_t>() + tensor.numel());
  };
  EXPECT_EQ(values(batch.input), (Lengths{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(values(batch.token_types), (Lengths{0, 0, 1, 0, 1, 0}));
  EXPECT_EQ(values(batch.labels), (Lengths{9, 7, 8}));
  const MicroBatch last = batch.narrow(1, 2);
  EXPECT_EQ(last.lengths, (Lengths{2, 1}));
  EXPECT_EQ(values(last.input), (Lengths{1, 2, 3}));
  EXPECT_EQ(values(last.labels), (Lengths{7, 8}));
  EXPECT_EQ(last.contexts, (std::vector<TokenRange>{{1, 2}, {1, 1}}));
  const MicroBatch selected = batch.select(Lengths{2, 0});
  EXPECT_EQ(selected.lengths, (Lengths{1, 3}));
  EXPECT_EQ(values(selected.input), (Lengths{3, 4, 5, 6}));
  EXPECT_EQ(values(selected.token_types), (Lengths{0, 0, 0, 1}));
  EXPECT_EQ(values(selected.labels), (Lengths{8, 9}));
  EXPECT_EQ(selected.contexts, (std::vector<TokenRange>{{1, 1}, {2, 3}}));
}

TEST(TokenSamples, HaveOneLengthUnlessOneDiffers) {
  EXPECT_TRUE(has_one_length(TokenSamples({.token_ids = {{1, 2}, {3, 4}, {5, 6}}, .labels = {}})));
  EXPECT_FALSE(has_one_length(TokenSamples({.token_ids = {{1, 2}, {3, 4}, {5}}, .labels = {}})));
}

TEST(TokenSamples, EachLookedUpTokenIsNamedOnce) {
  const TokenSamples samples(EncodedData{.token_ids = {{9, 2, 9}, {4}, {2, 3}}, .labels = {0, 0, 0}});
  EXPECT_EQ(samples.distinct_tokens(std::vector<int>{2, 0}), (Lengths{2, 3, 9}));
  EXPECT_EQ(samples.distinct_tokens({}), Lengths());
}

}  // namespace
}  // namespace frostpipe
