// Oracle: LibTorch's functions on whole logits.
#include "executor/models/vocabulary/vocabulary.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "tests/executor/models/vocabulary/sharing.h"
#include "tests/executor/ranks.h"
#include "tests/executor/test_device.h"

namespace frostpipe::test {
namespace {

/// By hand: rows 3 to 5 of the vocabulary.
TEST(Vocabulary, TokensOfOtherRanksAreElsewhere) {
  const OwnTokens own = own_tokens(at::tensor({3, 5, 2, 6, 4, -100}, at::kLong), 3, 3);
  EXPECT_TRUE(at::equal(own.rows, at::tensor({0, 2, 0, 0, 1, 0}, at::kLong)));
  EXPECT_TRUE(at::equal(own.elsewhere.to(at::kLong), at::tensor({0, 0, 1, 1, 0, 1}, at::kLong)));
}

/// Nine tokens of a vocabulary of 11: each rank's first and last rows are targets, two are ignored. Logits of the
/// second half of the vocabulary are `apart` higher in odd rows and lower in even ones.
struct Case {
  Case(const at::Device& device, at::ScalarType type, double apart)
      : logits((at::arange(9 * 11, at::kDouble).mul(0.7).sin() * 3).view({9, 11})),
        targets{at::tensor({0, 10, 5, -100, 4, 3, 7, 6, -100}, at::kLong), 11, kIgnored},
        weights(at::arange(1, 10, at::kDouble) / 4) {
    logits.slice(1, 6).add_((at::arange(9, at::kDouble).remainder(2) * 2 - 1).mul(apart).unsqueeze(1));
    logits = logits.to(device, type);
    weights = weights.to(device);
    targets.tokens = targets.tokens.to(device);
  }
  at::Tensor logits;
  Targets targets;
  at::Tensor weights;  // of the tokens' losses
};

/// LibTorch's losses of the whole logits, in at least float32, and their gradient.
struct Expected {
  Expected(const Case& whole, double smoothing) {
    const at::Tensor leaf = whole.logits.clone().requires_grad_(true);
    losses = at::cross_entropy_loss(leaf.scalar_type() == at::kDouble ? leaf : leaf.to(at::kFloat),
                                    whole.targets.tokens, {}, at::Reduction::None, kIgnored, smoothing);
    torch::autograd::backward({(losses * whole.weights).sum()}, {});
    gradient = leaf.grad();
  }
  at::Tensor losses, gradient;
};

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().to(at::kDouble).item<double>();
}

/// Also if exponentials would overflow without each rank's maximum, or vanish beside another rank's.
RANK_TEST(Vocabulary, LossesAndTheirGradientsAreThoseOfTheWholeLogits, 2, 3) {
  const Sharing sharing(self);
  for (const auto& [type, bound] : {std::pair(at::kDouble, 1e-12), {at::kFloat, 1e-4}})
    for (const double apart : {0.0, 30.0, 2000.0})
      for (const double smoothing : {0.0, 0.1}) {
        const Case whole(sharing.device->torch_device(), type, apart);
        const Expected expected(whole, smoothing);
        const CrossEntropies found = cross_entropies(sharing.own(whole.logits), whole.targets, smoothing,
                                                     whole.weights.to(expected.losses.scalar_type()), sharing.ranks);
        const std::string what = fmt::format("{}: apart {} smoothing {}", at::toString(type), apart, smoothing);
        CHECK_RANK(largest_difference(found.losses, expected.losses) <= bound * (1 + apart / 10), what);
        CHECK_RANK(largest_difference(found.gradient, sharing.own(expected.gradient)) <= bound, what + ": gradient");
      }
}

/// In bfloat16 gradients are rounded once, like LibTorch's: by at most a 512th of their size, which is below 2.25.
RANK_TEST(Vocabulary, AloneLossesAndGradientsAreLibTorchs, 1) {
  const auto device = test_device(self.local_rank);
  for (const auto& [type, bound, rounding] :
       {std::tuple(at::kDouble, 1e-13, 0.0), {at::kFloat, 2e-6, 0.0}, {at::kBFloat16, 2e-6, 2.25 / 256}})
    for (const double apart : {0.0, 30.0, 2000.0})
      for (const double smoothing : {0.0, 0.1}) {
        const Case whole(device->torch_device(), type, apart);
        const Expected expected(whole, smoothing);
        const at::Tensor logits = whole.logits.clone();
        const CrossEntropies found =
            cross_entropies(logits, whole.targets, smoothing, whole.weights.to(expected.losses.scalar_type()), {});
        const std::string what = fmt::format("{}: apart {} smoothing {}", at::toString(type), apart, smoothing);
        CHECK_RANK(found.losses.scalar_type() == expected.losses.scalar_type(), what);
        CHECK_RANK(largest_difference(found.losses, expected.losses) <= bound * (1 + apart / 10), what);
        CHECK_RANK(largest_difference(found.gradient, expected.gradient) <= bound + rounding, what + ": gradient");
        CHECK_RANK(at::equal(logits, whole.logits), what + ": the gradient is not made in the logits' place");
      }
}

RANK_TEST(Vocabulary, PredictionsAreThoseOfTheWholeLogits, 2, 3) {
  const Sharing sharing(self);
  Case whole(sharing.device->torch_device(), at::kFloat, 30);
  // Equally likely tokens: in rows of one rank, of both halves, and everywhere.
  whole.logits.select(0, 0).slice(0, 1, 3).fill_(100);
  whole.logits.select(0, 1).slice(0, 2, 11, 6).fill_(100);
  whole.logits.select(0, 2).fill_(1);
  const at::Tensor losses =
      at::cross_entropy_loss(whole.logits.to(at::kDouble), whole.targets.tokens, {}, at::Reduction::None, kIgnored);
  for (const TensorRanks& ranks : {sharing.ranks, TensorRanks()}) {
    const std::string what = ranks ? "shared" : "alone";
    const at::Tensor own = own_predictions(ranks ? sharing.own(whole.logits) : whole.logits, whole.targets, ranks);
    const TokenPredictions found = all_predictions(own, whole.targets, ranks);
    CHECK_RANK(at::equal(found.tokens.slice(0, 0, 3).to(at::kCPU), at::tensor({1, 2, 0}, at::kLong)), what);
    CHECK_RANK(at::equal(found.tokens, whole.logits.argmax(1)), what);
    CHECK_RANK(largest_difference(found.losses, losses) <= 1e-4, what);
  }
}

}  // namespace
}  // namespace frostpipe::test
