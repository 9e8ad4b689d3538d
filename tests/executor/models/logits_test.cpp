// Oracles: LibTorch's functions on whole logits and their gradients; the memory meter.
#include "executor/models/logits.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "executor/device/memory_meter.h"
#include "executor/models/weight_gradients.h"
#include "tests/executor/models/vocabulary/sharing.h"

namespace frostpipe::test {
namespace {

constexpr std::int64_t kHeadTokens = 9, kHeadHidden = 5, kHeadRows = 11;

/// The kind of head, and its loss.
struct HeadKind {
  at::ScalarType type = at::kDouble;
  double soft_cap = 0, smoothing = 0;
  bool has_bias = false;
  std::string name() const {
    return fmt::format("{} cap {} smoothing {}{}", at::toString(type), soft_cap, smoothing, has_bias ? " bias" : "");
  }
};

std::vector<HeadKind> head_kinds(std::vector<at::ScalarType> types) {
  std::vector<HeadKind> all;
  for (const at::ScalarType type : types)
    for (const double soft_cap : {0.0, 2.0})
      for (const double smoothing : {0.0, 0.1}) all.push_back({type, soft_cap, smoothing, smoothing > 0});
  return all;
}

at::Tensor wave_values(at::IntArrayRef sizes, double pace) {
  return (at::arange(c10::multiply_integers(sizes), at::kDouble).mul(pace).sin() * 2).view(sizes);
}

/// Nine tokens of a vocabulary of 11, two of them without a loss, and LibTorch's results for them.
struct WholeHead {
  WholeHead(const HeadKind& of, const at::Device& device)
      : kind(of),
        x(wave_values({kHeadTokens, kHeadHidden}, 0.7).to(device, kind.type)),
        weight(wave_values({kHeadRows, kHeadHidden}, 1.3).to(device, kind.type)),
        bias(wave_values({kHeadRows}, 0.4).to(device, kind.type)),
        targets{at::tensor({0, 10, 5, -100, 4, 3, 7, 6, -100}, at::kLong).to(device), kHeadRows, kIgnored},
        weights((at::arange(1, kHeadTokens + 1, at::kDouble) / 4).to(device)) {
    const auto leaf = [](const at::Tensor& tensor) { return tensor.clone().requires_grad_(true); };
    const at::Tensor x0 = leaf(x), weight0 = leaf(weight), bias0 = leaf(bias);
    logits = at::linear(x0, weight0, kind.has_bias ? std::optional(bias0) : std::nullopt);
    if (kind.soft_cap > 0) logits = at::tanh(logits / kind.soft_cap) * kind.soft_cap;
    const at::Tensor precise = logits.to(kind.type == at::kDouble ? at::kDouble : at::kFloat);
    sum = (at::cross_entropy_loss(precise, targets.tokens, {}, at::Reduction::None, kIgnored, kind.smoothing) *
           weights.to(precise.scalar_type()))
              .sum();
    torch::autograd::backward({sum}, {at::full_like(sum, 0.25)});
    of_x = x0.grad();
    of_weight = weight0.grad();
    if (kind.has_bias) of_bias = bias0.grad();
  }

  HeadKind kind;
  at::Tensor x, weight, bias;
  Targets targets;
  at::Tensor weights;
  at::Tensor logits, sum, of_x, of_weight, of_bias;  // gradients of a quarter of the sum
};

Parameter trained_parameter(const at::Tensor& value) {
  return {value.clone().requires_grad_(true), at::ones_like(value, at::promoteTypes(at::kFloat, value.scalar_type()))};
}

bool is_close(const at::Tensor& found, const at::Tensor& expected, double bound) {
  return found.sizes() == expected.sizes() && (found - expected).abs().max().to(at::kDouble).item<double>() <=
                                                  bound * (1 + expected.abs().max().to(at::kDouble).item<double>());
}

/// Gradients are added to existing ones.
void expect_of_whole(const WholeHead& whole, const Logits& said, const TensorRanks& ranks,
                     const std::function<at::Tensor(const at::Tensor&)>& own_rows, const at::Tensor& of_x,
                     double bound) {
  const std::string what = fmt::format("{}: {} at once", whole.kind.name(), said.part_tokens);
  WeightGradients later;  // gets nothing: gradients that it would have to recompute are added at once
  {
    const DeferWeightGradients deferred(later);
    const at::Tensor sum = cross_entropy_sum(said, whole.targets, whole.weights, whole.kind.smoothing, ranks);
    CHECK_RANK(std::isnan(sum.item<double>()), what + ": computed in the backward");
    torch::autograd::backward({sum}, {at::full_like(sum, 0.25)});
    CHECK_RANK(is_close(sum.detach(), whole.sum.detach(), bound), what + ": loss");
  }
  CHECK_RANK(later.bytes() == 0, what);
  CHECK_RANK(is_close(said.x.grad(), of_x, bound), what + ": x");
  CHECK_RANK(is_close(said.weight.gradient - 1, own_rows(whole.of_weight), bound), what + ": weight");
  if (whole.kind.has_bias)
    CHECK_RANK(is_close(said.bias.gradient - 1, own_rows(whole.of_bias), bound), what + ": bias");
  const at::NoGradGuard no_grad;
  const at::Tensor sum = cross_entropy_sum(said, whole.targets, whole.weights, whole.kind.smoothing, ranks);
  CHECK_RANK(is_close(sum, whole.sum.detach(), bound), what + ": loss without a graph");
  const TokenPredictions found = predictions_of(said, whole.targets, ranks);
  CHECK_RANK(at::equal(found.tokens, whole.logits.argmax(1)), what + ": predictions");
}

double bound_of(at::ScalarType type) { return type == at::kDouble ? 1e-12 : type == at::kFloat ? 2e-6 : 0.02; }

/// With parts of one token, of three, and of all tokens.
constexpr std::int64_t kAtOnce[] = {1, 3, 1000};

RANK_TEST(Logits, LossesAndGradientsByPartsAreLibTorchsOfWholeLogits, 1) {
  const at::Device device = test_device(self.local_rank)->torch_device();
  for (const HeadKind& kind : head_kinds({at::kDouble, at::kFloat, at::kBFloat16})) {
    const WholeHead whole(kind, device);
    for (const std::int64_t at_once : kAtOnce) {
      Logits said(whole.x.clone().requires_grad_(true), trained_parameter(whole.weight),
                  kind.has_bias ? trained_parameter(whole.bias) : Parameter{}, kind.soft_cap, {});
      said.part_tokens = at_once;
      CHECK_RANK(is_close(said.all().detach(), whole.logits.detach(), bound_of(kind.type)), kind.name());
      expect_of_whole(
          whole, said, {}, [](const at::Tensor& all) { return all; }, whole.of_x, bound_of(kind.type));
    }
  }
}

/// Ranks have 6 and 5 rows, or 4, 4 and 3.
void expect_shared(const RankEnvironment& self, bool sequence_parallel) {
  const Sharing sharing(self, sequence_parallel);
  for (const HeadKind& kind : head_kinds({at::kDouble, at::kFloat})) {
    const WholeHead whole(kind, sharing.device->torch_device());
    const RankRows rows = rows_of_tokens(kHeadTokens, sharing.ranks);
    const auto own = [&](const at::Tensor& all) { return sharing.own(all, 0); };
    for (const std::int64_t at_once : kAtOnce) {
      Logits said(rows.own(whole.x).clone().requires_grad_(true), trained_parameter(own(whole.weight)),
                  kind.has_bias ? trained_parameter(own(whole.bias)) : Parameter{}, kind.soft_cap, rows);
      said.part_tokens = at_once;
      expect_of_whole(whole, said, sharing.ranks, own, rows.own(whole.of_x), bound_of(kind.type));
    }
  }
}

RANK_TEST(Logits, SharedLossesAndGradientsByPartsAreLibTorchsOfWholeLogits, 2, 3) { expect_shared(self, false); }
RANK_TEST(Logits, OfSplitTokensLossesAndGradientsByPartsAreLibTorchsOfWholeLogits, 2, 3) { expect_shared(self, true); }

/// 1024 tokens of a vocabulary of 65,536 rows: whole logits take 256 MiB, those of a part 64 MiB. In addition to a
/// part's logits there are its log probabilities, which become its gradient.
TEST(Logits, NoMoreThanAPartOfALargeVocabularysIsHeld) {
  MemoryMeter::install();
  const std::int64_t tokens = 1024, vocabulary = 65'536, hidden = 4;
  Logits said(at::rand({tokens, hidden}).requires_grad_(true), trained_parameter(at::rand({vocabulary, hidden})), {}, 0,
              {});
  const Targets targets{at::randint(vocabulary, {tokens}, at::kLong), vocabulary, kIgnored};
  const at::Tensor weights = at::ones({tokens}, at::kDouble);
  const Bytes before = MemoryMeter::live_bytes(), part = said.part_tokens * vocabulary * 4, small = 8 << 20;
  const auto above = [&](Bytes bytes) { return bytes - before; };
  MemoryMeter::reset_peak();
  const at::Tensor sum = cross_entropy_sum(said, targets, weights, 0, {});
  EXPECT_LE(above(MemoryMeter::peak_bytes()), small) << "forward";
  torch::autograd::backward({sum}, {at::ones_like(sum)});
  EXPECT_LE(above(MemoryMeter::peak_bytes()), 2 * part + small) << "backward";
  EXPECT_LE(above(MemoryMeter::live_bytes()), small) << "after it";
  MemoryMeter::reset_peak();
  predictions_of(said, targets, {});
  EXPECT_LE(above(MemoryMeter::peak_bytes()), 2 * part + small) << "predictions";
}

}  // namespace
}  // namespace frostpipe::test
