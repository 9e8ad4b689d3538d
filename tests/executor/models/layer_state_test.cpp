#include "executor/models/layer_state.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "executor/device/memory_meter.h"

namespace frostpipe {
namespace {

/// A table of 5 rows of 2, and 3 other parameters. Their gradients are 1, 2, .. 13, except that rows 0, 2 and 4 have
/// none.
LayerState table_layer() {
  LayerState state = make_layer_state({{.names = {}, .shape = {5, 2}, .matrix = true}, {.names = {}, .shape = {3}}},
                                      {at::kFloat, at::kFloat}, at::kCPU, /*trains=*/true, /*num_moments=*/0);
  state.gradients.copy_(at::arange(1, 14, at::kFloat));
  for (const int row : {0, 2, 4}) state.parameters.front().gradient[row].zero_();
  return state;
}

/// Oracle: the same update with all rows.
TEST(TouchedGradients, OfSomeRowsAreAsThoseOfEverythingWhereTheOthersAreZero) {
  const LayerState state = table_layer(), expected = table_layer();
  const TouchedGradients all(expected, at::Tensor()), touched(state, at::tensor({1, 3}, at::kLong));
  ASSERT_EQ(all.tensors().size(), 1u);
  EXPECT_EQ(all.square_sum().item<double>(), 3 * 3 + 4 * 4 + 7 * 7 + 8 * 8 + 11 * 11 + 12 * 12 + 13 * 13);
  EXPECT_EQ(touched.square_sum().item<double>(), all.square_sum().item<double>());
  std::int64_t count = 0;
  for (const at::Tensor& tensor : touched.tensors()) {
    EXPECT_TRUE(tensor.is_contiguous());
    count += tensor.numel();
    tensor.mul_(10);
  }
  EXPECT_EQ(count, 2 * 2 + 3);
  all.tensors().front().mul_(10);
  touched.write_back();
  EXPECT_TRUE(at::equal(state.gradients, expected.gradients));
  touched.clear();
  EXPECT_EQ(state.gradients.abs().max().item<float>(), 0);
}

/// One projection of 2 x 2 and 3 other parameters, computed in bfloat16. Its gradients are 1.
LayerState rounded_layer() {
  LayerState state =
      make_layer_state({{.names = {}, .shape = {2, 2}, .matrix = true, .projects = true}, {.names = {}, .shape = {3}}},
                       layer_types_of(DType::kBFloat16), at::kCPU, /*trains=*/true, /*num_moments=*/0);
  state.weights.copy_(at::arange(7, at::kFloat) + 0.01);
  state.gradients.fill_(1);
  round_weights(state);
  return state;
}

/// Oracle: W - 1, W - 2, ... by hand. The older version is the previous one, and each has its rounded matrix.
TEST(LayerState, TheOlderVersionFollowsTheUpdatesByOne) {
  LayerState state = rounded_layer();
  const at::Tensor first = state.weights.clone();
  keep_older_weights(state);
  EXPECT_TRUE(at::equal(state.older.weights, first));
  for (int step = 0; step < 3; ++step) {
    update({&state}, {.optimizer = Optimizer::kSgd, .learning_rate = 1});
    EXPECT_TRUE(at::allclose(state.weights, first - (step + 1), 0, 1e-6)) << step;
    EXPECT_TRUE(at::allclose(state.older.weights, first - step, 0, 1e-6)) << step;
    for (const auto& [weights, parameters] :
         {std::pair(state.weights, state.parameters), {state.older.weights, state.older.parameters}}) {
      const at::Tensor projection = parameters[0].value, other = parameters[1].value;
      EXPECT_EQ(projection.scalar_type(), at::kBFloat16);
      EXPECT_TRUE(at::equal(projection.view(-1), weights.narrow(0, 0, 4).to(at::kBFloat16))) << step;
      EXPECT_TRUE(at::equal(other, weights.narrow(0, 4, 3))) << step;
      EXPECT_TRUE(projection.requires_grad() && other.grad().is_alias_of(state.gradients)) << step;
      EXPECT_EQ(parameters[0].gradient.data_ptr(), state.gradients.data_ptr()) << step;
      EXPECT_EQ(parameters[1].gradient.data_ptr(), state.gradients.narrow(0, 4, 3).data_ptr()) << step;
    }
  }
}

/// Two steps by hand, as torch.optim.SGD does them: m = 1 + 0.5 x 4 = 3, w = 4 - 3 = 1; m = 0.5 x 3 + 1 + 0.5 x 1 = 3,
/// w = -2. Without weight decay: m = 1, w = 3; m = 1.5, w = 1.5.
TEST(LayerState, SgdWithMomentumDecaysMatricesAlone) {
  LayerState state = make_layer_state({{.names = {}, .shape = {1, 2}, .matrix = true}, {.names = {}, .shape = {1}}},
                                      {at::kFloat, at::kFloat}, at::kCPU, /*trains=*/true, /*num_moments=*/1);
  state.weights.detach().fill_(4);
  state.gradients.fill_(1);
  EXPECT_FALSE(state.moments.second.defined());
  for (int step = 0; step < 2; ++step)
    update({&state}, {.optimizer = Optimizer::kSgd, .learning_rate = 1, .momentum = 0.5, .weight_decay = 0.5});
  EXPECT_TRUE(at::equal(state.weights, at::tensor({-2.f, -2.f, 1.5f})));
  EXPECT_TRUE(at::equal(state.moments.first, at::tensor({3.f, 3.f, 1.5f})));
}

TEST(LayerState, FreezingLeavesTheNewestVersion) {
  LayerState state = rounded_layer();
  keep_older_weights(state);
  update({&state}, {.optimizer = Optimizer::kSgd, .learning_rate = 1});
  freeze(state);
  EXPECT_FALSE(state.older.weights.defined());
  EXPECT_NEAR(state.weights[2].item<float>(), 1.01, 1e-6);
}

/// A layer of 100 values in float32: its gradients are freed, and two moments leave the device.
TEST(LayerState, FreezingOnACpuCopiesNothingAndLeavesTheWeightsOnTheDevice) {
  MemoryMeter::install();
  const Bytes before = MemoryMeter::live_bytes();
  LayerState state = make_layer_state({{.names = {}, .shape = {10, 10}, .matrix = true}}, {at::kFloat, at::kFloat},
                                      at::kCPU, /*trains=*/true, /*num_moments=*/2);
  const void* const first_moment = state.moments.first.data_ptr();
  EXPECT_EQ(MemoryMeter::live_bytes() - before, 4 * 400);
  MemoryMeter::reset_peak();
  const OffloadedMoments offloaded = freeze(state);
  EXPECT_EQ(MemoryMeter::live_bytes() - before, 400);
  EXPECT_EQ(MemoryMeter::peak_bytes() - before, 4 * 400);
  EXPECT_EQ(offloaded.moments.first.data_ptr(), first_moment);
  EXPECT_EQ(offloaded.weights.data_ptr(), state.weights.data_ptr());
}

}  // namespace
}  // namespace frostpipe
