#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "operators/graph/net_shape.h"
#include "operators/planner/operator_problem.h"

// Nets of a few layers, their plans and data.

namespace frostpipe::test {

inline constexpr int kBatch = 12, kClasses = 5;

/// With pictures of 4 pixels all except the first layers have one pixel, like the last layers of a published ResNet
/// with pictures of 32.
NetShape small_resnet(bool bottleneck, int picture_size = 20);
/// Biases beside batch norm, 7 x 7 means of 2 x 2 pixels, linear layers with ReLU.
NetShape small_vgg();
/// Depthwise convolutions padded to the right and below, limited ReLUs, another epsilon.
NetShape small_mobilenet();
/// The same with sums that are not followed by a ReLU.
NetShape small_mobilenet_v2();
std::vector<NetShape> small_nets();

OperatorProblem problem_of(const NetShape& net, int num_devices, int frozen_layers);

/// Random ranges and orders that no planner would choose, different for every operator.
OperatorPlan random_plan(const OperatorProblem& problem, std::uint64_t seed, int frozen_layers);

at::Tensor random_pictures(const NetShape& net, std::uint64_t seed, at::ScalarType type);
at::Tensor random_labels(std::uint64_t seed);

/// |a - b| / |b|, in the Euclidean norm; |a| if b is zero.
double distance(const at::Tensor& a, const at::Tensor& b);

}  // namespace frostpipe::test
