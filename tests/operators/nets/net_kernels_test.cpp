// Oracles: LibTorch's convolution and whole batch norm in double precision; in single precision, errors are compared
// with LibTorch's own errors.
#include "operators/nets/net_kernels.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

namespace frostpipe::test {
namespace {

constexpr int kChannels = 3;

double distance_of(const at::Tensor& a, const at::Tensor& b) {
  return ((a.to(at::kDouble) - b.to(at::kDouble)).norm() / b.to(at::kDouble).norm()).item<double>();
}

struct Gradients {
  at::Tensor input, shift, scale;
};

/// Values around `mean` with a deviation of 1, of 8 samples in parts of 3 and 5.
struct BatchNorm {
  explicit BatchNorm(double mean) {
    const auto generator = at::detail::createCPUGenerator(1);
    x = mean + at::randn({8, kChannels, 5, 5}, generator, at::kDouble);
    x = x.to(at::kFloat).to(at::kDouble);  // the same in both precisions
    gradient = at::randn(x.sizes(), generator, at::kDouble).to(at::kFloat).to(at::kDouble);
    layer.out_channels = kChannels;
    layer.batch_norm = true;
    norm = at::stack({at::full({kChannels}, 1.5, at::kDouble), at::full({kChannels}, 0.25, at::kDouble)});
  }

  Gradients by_libtorch(at::ScalarType type) const {
    const auto scale = norm[0].to(type), shift = norm[1].to(type);
    const auto [y, saved_mean, inverse] = at::native_batch_norm(x.to(type), scale, shift, {}, {}, true, 0, 1e-5);
    const auto [input, of_scale, of_shift] = at::native_batch_norm_backward(
        gradient.to(type), x.to(type), scale, {}, {}, saved_mean, inverse, true, 1e-5, {true, true, true});
    return {input, of_shift, of_scale};
  }

  Gradients by_parts(at::ScalarType type) const {
    const NetLayerState state{.weights = {}, .norm = norm.to(type), .running_mean = {}, .running_variance = {}};
    const auto part = [&](const at::Tensor& values, int begin, int end) {
      return values.to(type).narrow(0, begin, end - begin).contiguous();
    };
    const auto statistics =
        merged({partial_statistics(part(x, 0, 3)), partial_statistics(part(x, 3, 8))}, {3 * 25, 5 * 25});
    const auto sums = partial_norm_gradient(layer, statistics, part(x, 0, 3), part(gradient, 0, 3)) +
                      partial_norm_gradient(layer, statistics, part(x, 3, 8), part(gradient, 3, 8));
    const auto input =
        at::cat({normalise_gradient(layer, state, statistics, part(x, 0, 3), part(gradient, 0, 3), sums),
                 normalise_gradient(layer, state, statistics, part(x, 3, 8), part(gradient, 3, 8), sums)});
    return {input, sums[0], sums[1]};
  }

  at::Tensor x, gradient, norm;
  NetLayer layer;
};

// Kernels that cover all of the input, a part of it, or padding on some or all sides.
TEST(NetKernels, OfOnePixelAreTheConvolution) {
  struct Shape {
    int kernel, stride, padding, in_size;
  };
  for (const Shape& shape :
       {Shape{3, 1, 1, 1}, Shape{3, 2, 1, 2}, Shape{3, 2, 1, 1}, Shape{3, 1, 0, 3}, Shape{1, 2, 0, 2},
        Shape{7, 2, 3, 2}, Shape{2, 2, 0, 3}, Shape{1, 1, 0, 1}, Shape{5, 4, 2, 4}})
    for (const bool bias : {false, true}) {
      SCOPED_TRACE(::testing::Message() << shape.kernel << " " << shape.stride << " " << shape.padding << " "
                                        << shape.in_size << " " << bias);
      NetLayer layer;
      layer.in_channels = 4;
      layer.out_channels = kChannels;
      layer.kernel = shape.kernel;
      layer.stride = shape.stride;
      layer.padding = shape.padding;
      layer.in_size = shape.in_size;
      layer.bias = bias;
      const auto generator = at::detail::createCPUGenerator(1);
      const auto x = at::randn({5, 4, shape.in_size, shape.in_size}, generator, at::kDouble);
      const NetLayerState state{.weights = at::randn({num_weights(layer)}, generator, at::kDouble)};
      const auto kernel = kernel_of(layer, state);
      const std::vector<std::int64_t> stride(2, shape.stride), padding(2, shape.padding), ones(2, 1), zeros(2, 0);
      const auto whole = at::convolution(x, kernel, bias ? std::optional(bias_of(layer, state)) : std::nullopt, stride,
                                         padding, ones, false, zeros, 1);
      ASSERT_EQ(whole.size(2), 1);
      EXPECT_LE(distance_of(product(layer, state, x), whole), 1e-13);
      const auto gradient = at::randn(whole.sizes(), generator, at::kDouble);
      const auto [of_input, of_kernel, of_bias] =
          at::convolution_backward(gradient, x, kernel, std::vector<std::int64_t>{kChannels}, stride, padding, ones,
                                   false, zeros, 1, {true, true, bias});
      EXPECT_LE(distance_of(input_gradient(layer, state, gradient).reshape(x.sizes()), of_input), 1e-13);
      const auto of_weights = bias ? at::cat({of_kernel.reshape(-1), of_bias}) : of_kernel.reshape(-1);
      EXPECT_LE(distance_of(weight_gradient(layer, x, gradient), of_weights), 1e-13);
    }
}

TEST(NormKernels, InPartsAreTheWholeBatchNorm) {
  const BatchNorm batch_norm(0.5);
  const Gradients ours = batch_norm.by_parts(at::kDouble), theirs = batch_norm.by_libtorch(at::kDouble);
  EXPECT_LE(distance_of(ours.input, theirs.input), 1e-13);
  EXPECT_LE(distance_of(ours.shift, theirs.shift), 1e-13);
  EXPECT_LE(distance_of(ours.scale, theirs.scale), 1e-13);
}

TEST(NormKernels, InSinglePrecisionAreAsNearAsLibTorchsAlsoFarFromZero) {
  for (const double mean : {0.0, 30.0, 1000.0}) {
    const BatchNorm batch_norm(mean);
    const Gradients ours = batch_norm.by_parts(at::kFloat), theirs = batch_norm.by_libtorch(at::kFloat),
                    exact = batch_norm.by_libtorch(at::kDouble);
    EXPECT_LE(distance_of(ours.input, exact.input), 2 * distance_of(theirs.input, exact.input) + 1e-6) << mean;
    EXPECT_LE(distance_of(ours.scale, exact.scale), 2 * distance_of(theirs.scale, exact.scale) + 1e-6) << mean;
  }
}

}  // namespace
}  // namespace frostpipe::test
