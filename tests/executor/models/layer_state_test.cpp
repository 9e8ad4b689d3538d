#include "executor/models/layer_state.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace frostpipe {
namespace {

/// A table of 5 rows of 2, and 3 other parameters. Their gradients: 1, 2, .. 13, but rows 0, 2 and 4 have none.
LayerState table_layer() {
  LayerState state = make_layer_state({{.names = {}, .shape = {5, 2}, .matrix = true}, {.names = {}, .shape = {3}}},
                                      {at::kFloat, at::kFloat}, at::kCPU, /*trains=*/true, /*num_moments=*/0);
  state.gradients.copy_(at::arange(1, 14, at::kFloat));
  for (const int row : {0, 2, 4}) state.parameters.front().gradient[row].zero_();
  return state;
}

/// Oracle: the same of everything.
TEST(TouchedGradients, OfSomeRowsAreAsThoseOfEverythingWhereTheOthersAreZero) {
  const LayerState state = table_layer(), expected = table_layer();
  const TouchedGradients all(expected, at::Tensor()), touched(state, at::tensor({1, 3}, at::kLong));
  ASSERT_EQ(all.tensors().size(), 1u);
  EXPECT_EQ(all.square_sum(), 3 * 3 + 4 * 4 + 7 * 7 + 8 * 8 + 11 * 11 + 12 * 12 + 13 * 13);
  EXPECT_EQ(touched.square_sum(), all.square_sum());
  std::int64_t count = 0;
  for (const at::Tensor& tensor : touched.tensors()) {
    EXPECT_TRUE(tensor.is_contiguous());
    count += tensor.numel();
    tensor.mul_(10);
  }
  EXPECT_EQ(count, 2 * 2 + 3);
  all.tensors().front().mul_(10);
  touched.put_back();
  EXPECT_TRUE(at::equal(state.gradients, expected.gradients));
  touched.clear();
  EXPECT_EQ(state.gradients.abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace frostpipe
