#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "operators/graph/net_shape.h"
#include "operators/planner/operator_problem.h"

// Nets of a few layers, their plans and data.

namespace frostpipe::test {

inline constexpr int kBatch = 12, kClasses = 5;

/// With pictures of 4 pixels all but the first layers have one pixel, as a published ResNet's last ones of 32 have.
NetShape small_resnet(bool bottleneck, int picture_size = 20);
/// Biases beside batch norm, 7 x 7 means of 2 x 2 pixels, linear layers with ReLU.
NetShape small_vgg();
/// Depthwise convolutions padded to the right and below, limited ReLUs, another epsilon.
NetShape small_mobilenet();
/// The same with sums that no ReLU follows.
NetShape small_mobilenet_v2();
std::vector<NetShape> small_nets();

OperatorProblem problem_of(const NetShape& net, int num_devices, int frozen_layers);

/// Ranges and orders that no planner would choose, on every operator of its own.
OperatorPlan random_plan(const OperatorProblem& problem, std::uint64_t seed, int frozen_layers);

at::Tensor random_pictures(const NetShape& net, std::uint64_t seed, at::ScalarType type);
at::Tensor random_labels(std::uint64_t seed);

/// |a - b| / |b|, in the Euclidean norm; of nothing but zeros, |a|.
double distance(const at::Tensor& a, const at::Tensor& b);

}  // namespace frostpipe::test
