// Oracle: attention of whole samples.
#include "executor/models/sliced_attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "executor/models/attention.h"
#include "executor/models/task.h"

namespace frostpipe {
namespace {

constexpr std::int64_t kSlicedHidden = 12;
constexpr double kSliceRounding = 1e-12;
constexpr std::int64_t kToTheEnd = std::numeric_limits<std::int64_t>::max();

TransformerConfig config_with(double dropout) {
  TransformerConfig config{.hidden_size = kSlicedHidden, .num_attention_heads = 3, .vocab_size = 7, .dropout = dropout};
  config.is_causal = true;
  return config;
}

/// Repeated lengths, samples that end in the middle of a slice, and samples that are not in some slices.
const std::vector<std::vector<std::int64_t>> kWholeLengths{{1}, {5, 5, 5}, {1, 2, 2, 3, 4, 4, 4, 9}};
const std::vector<std::vector<TokenRange>> kTokenRanges{
    {{0, kToTheEnd}}, {{0, 3}, {3, kToTheEnd}}, {{0, 1}, {1, 4}, {4, 5}, {5, kToTheEnd}}};

MicroBatch whole_batch(const std::vector<std::int64_t>& lengths, bool drops) {
  MicroBatch batch;
  batch.lengths = lengths;
  if (drops) batch.dropout_keys = at::arange(100, 100 + batch.size(), at::kLong);
  return batch;
}

at::Tensor wave_rows(std::int64_t rows, std::int64_t columns, double from) {
  return at::sin(at::arange(rows * columns, at::TensorOptions().dtype(at::kDouble)) + from).view({rows, columns});
}

/// Calls check(config, batch, slices) with and without dropout.
template <class Check>
void for_all_slices(Check check) {
  for (const double dropout : {0.0, 0.3}) {
    for (const auto& lengths : kWholeLengths) {
      for (const auto& slices : kTokenRanges) {
        SCOPED_TRACE(testing::Message() << lengths.size() << " samples, " << slices.size() << " slices, " << dropout);
        check(config_with(dropout), whole_batch(lengths, dropout > 0), slices);
      }
    }
  }
}

TEST(SlicedAttention, OfAllSlicesIsThatOfWholeSamples) {
  for_all_slices([](const TransformerConfig& config, const MicroBatch& batch, const std::vector<TokenRange>& slices) {
    const std::int64_t tokens = batch.num_tokens();
    at::Tensor whole = wave_rows(tokens, 3 * kSlicedHidden, 0);
    whole.requires_grad_(true);
    const at::Tensor gradient = wave_rows(tokens, kSlicedHidden, 2),
                     expected = attend(config, 1, {.query = whole}, batch);
    torch::autograd::backward({expected}, {gradient});

    KeyValuesOfLayers key_values;
    struct Slice {
      at::Tensor rows, input, output;
    };
    std::vector<Slice> computed;
    for (const TokenRange& range : slices) {
      const MicroBatch slice = batch.slice(range, key_values);
      if (slice.num_tokens() == 0) continue;
      const at::Tensor rows = rows_of_slice(batch.lengths, range);
      at::Tensor input = whole.detach().index_select(0, rows);
      input.requires_grad_(true);
      computed.push_back({rows, input, attend(config, 1, {.query = input}, slice)});
      EXPECT_TRUE(at::allclose(computed.back().output, expected.index_select(0, rows), kSliceRounding, kSliceRounding));
    }
    for (auto slice = computed.rbegin(); slice != computed.rend(); ++slice) {
      torch::autograd::backward({slice->output}, {gradient.index_select(0, slice->rows)});
      EXPECT_TRUE(
          at::allclose(slice->input.grad(), whole.grad().index_select(0, slice->rows), kSliceRounding, kSliceRounding));
    }
  });
}

TEST(SlicedAttention, DropsOfEverySliceWhatWholeSamplesDrop) {
  for_all_slices([](const TransformerConfig& config, const MicroBatch& batch, const std::vector<TokenRange>& slices) {
    const at::Tensor x = wave_rows(batch.num_tokens(), kSlicedHidden - 1, 0);  // offsets of values are odd, too
    const at::Tensor whole = apply_dropout(config, 2, DropoutSite::output, x, batch, {});
    KeyValuesOfLayers key_values;
    for (const TokenRange& range : slices) {
      const at::Tensor rows = rows_of_slice(batch.lengths, range);
      const MicroBatch slice = batch.slice(range, key_values);
      const at::Tensor dropped = apply_dropout(config, 2, DropoutSite::output, x.index_select(0, rows), slice, {});
      EXPECT_TRUE(dropped.equal(whole.index_select(0, rows)));
    }
  });
}

/// In a layer that is a whole block, attention and MLP drop different values, and others than the next layer.
TEST(SlicedAttention, EverySiteDropsByItsOwnNumbers) {
  const TransformerConfig config = config_with(0.3);
  for (const auto& lengths : kWholeLengths) {
    const MicroBatch batch = whole_batch(lengths, /*drops=*/true);
    const at::Tensor x = at::ones({batch.num_tokens(), 64});
    std::vector<at::Tensor> all;
    for (const int layer : {2, 3})
      for (const DropoutSite site : {DropoutSite::attention, DropoutSite::output, DropoutSite::mlp_output})
        all.push_back(apply_dropout(config, layer, site, x, batch, {}));
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(all[i].equal(all[j])) << i << ", " << j;
  }
}

TEST(SlicedAttention, LossesAndPositionsOfAllSlicesAreThoseOfWholeSamples) {
  for_all_slices([](const TransformerConfig& config, MicroBatch batch, const std::vector<TokenRange>& slices) {
    TransformerConfig causal = config;
    causal.task = Task::causal_language_modeling;
    batch.labels = at::arange(batch.num_tokens(), at::kLong).remainder(config.vocab_size);
    const at::Tensor logits = wave_rows(batch.num_tokens(), config.vocab_size, 0);
    const auto loss = [&](const at::Tensor& of, const MicroBatch& part) {
      return loss_sum(causal, of, part, /*label_smoothing=*/0.1).item<double>();
    };
    double sum = 0;
    KeyValuesOfLayers key_values;
    for (const TokenRange& range : slices) {
      const MicroBatch slice = batch.slice(range, key_values);
      if (slice.num_tokens() == 0) continue;
      const at::Tensor rows = rows_of_slice(batch.lengths, range);
      sum += loss(logits.index_select(0, rows), slice);
      EXPECT_TRUE(positions(slice, {}, at::kCPU).equal(positions(batch, {}, at::kCPU).index_select(0, rows)));
    }
    EXPECT_NEAR(sum, loss(logits, batch), kSliceRounding);
  });
}

}  // namespace
}  // namespace frostpipe
