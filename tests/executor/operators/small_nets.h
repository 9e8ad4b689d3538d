#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "planner/operators/operator_problem.h"
#include "profiles/operators/net_shape.h"

// Nets of a few layers, their plans and data.

namespace frostpipe::test {

inline constexpr int kBatch = 12, kClasses = 5;

NetShape small_resnet(bool bottleneck);
/// A depthwise convolution, biases beside batch norm, and linear layers with ReLU: what MobileNet and VGG have.
NetShape small_vgg();
std::vector<NetShape> small_nets();

OperatorProblem problem_of(const NetShape& net, int num_devices, int frozen_layers);

/// Ranges and orders that no planner would choose, on every operator of its own.
OperatorPlan random_plan(const OperatorProblem& problem, std::uint64_t seed, int frozen_layers);

at::Tensor random_pictures(const NetShape& net, std::uint64_t seed, at::ScalarType type);
at::Tensor random_labels(std::uint64_t seed);

/// |a - b| / |b|, in the Euclidean norm; of nothing but zeros, |a|.
double distance(const at::Tensor& a, const at::Tensor& b);

}  // namespace frostpipe::test
