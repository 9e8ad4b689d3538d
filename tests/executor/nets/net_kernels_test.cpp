// Oracle: LibTorch's batch norm, whole, in double precision; in single precision errors are compared with its own
// there.
#include "executor/nets/net_kernels.h"

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
