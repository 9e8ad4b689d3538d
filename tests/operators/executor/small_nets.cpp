#include "tests/operators/executor/small_nets.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "operators/graph/estimated_operators.h"
#include "operators/graph/known_nets.h"
#include "operators/planner/make_operator_plan.h"
#include "operators/simulator/run_operators.h"

namespace frostpipe::test {

namespace {

/// The first layers and the classifier. The limit of limited ReLUs is in the range of a batch norm's values.
NetShape cut(NetShape net, int num_layers) {
  NetLayer mean = net.layers.end()[-2], classifier = net.layers.back();
  net.layers.resize(num_layers);
  const NetLayer& last = net.layers.back();
  mean.input = num_layers - 1;
  mean.in_channels = mean.out_channels = classifier.in_channels = last.out_channels;
  mean.in_size = last.out_size;
  classifier.input = num_layers;
  for (NetLayer& layer : net.layers) layer.relu_limit = std::min(layer.relu_limit, 1.0);
  net.layers.push_back(mean);
  net.layers.push_back(classifier);
  return net;
}

constexpr MobileNetShape kSmallMobileNet = {
    .picture_size = 20, .num_classes = kClasses, .depth_multiplier = 0.125, .min_depth = 4};

}  // namespace

NetShape small_resnet(bool bottleneck, int picture_size) {
  return resnet("small", {.picture_size = picture_size,
                          .num_classes = kClasses,
                          .embedding_size = 8,
                          .hidden_sizes = {16, 24},
                          .depths = {2, 1},
                          .bottleneck = bottleneck});
}

NetShape small_vgg() {
  return vgg(
      "vgg",
      {.picture_size = 8, .num_classes = kClasses, .hidden_sizes = {6, 8}, .depths = {1, 2}, .classifier_size = 10});
}

NetShape small_mobilenet() { return cut(mobilenet("mobilenet", kSmallMobileNet), 5); }

NetShape small_mobilenet_v2() {
  const MobileNetV2Shape shape{.common = kSmallMobileNet, .depth_divisible_by = 4, .expand_ratio = 2};
  return cut(mobilenet_v2("mobilenet-v2", shape), 9);
}

OperatorProblem problem_of(const NetShape& net, int num_devices, int frozen_layers) {
  const std::vector<Hardware> classes = {find_hardware("V100"), find_hardware("A100")};
  OperatorProblem problem{.graph = frozen(estimated_operators(net, kBatch, classes), frozen_layers)};
  problem.machine.between_nodes = {.latency_ns = 10, .bandwidth_bytes_per_second = 200'000'000'000};
  for (int device = 0; device < num_devices; ++device)
    problem.machine.devices.push_back({.device_class = classes[device % 2].name, .node = device});
  for (auto& one : problem.graph.operators)  // small nets have only overhead, so no plan would split them
    for (auto& time : one.times) time.work_ns = 100 * time.work_ns + 1000, time.overhead_ns = 1;
  return problem;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  const double of_b = b.norm().item<double>();
  return (a - b).norm().item<double>() / (of_b > 0 ? of_b : 1);
}

at::Tensor random_pictures(const NetShape& net, std::uint64_t seed, at::ScalarType type) {
  const auto generator = at::detail::createCPUGenerator(seed);
  return at::randn({kBatch, net.channels, net.picture_size, net.picture_size}, generator, at::kDouble).to(type);
}

at::Tensor random_labels(std::uint64_t seed) {
  return at::randint(kClasses, {kBatch}, at::detail::createCPUGenerator(seed), at::kLong);
}

OperatorPlan random_plan(const OperatorProblem& problem, std::uint64_t seed, int frozen_layers) {
  std::mt19937_64 random(seed);
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<std::uint64_t>(end)); };
  auto plan = make_operator_plan(problem, OperatorMethod::single);
  plan.frozen_layers = frozen_layers;
  const int num_devices = static_cast<int>(problem.machine.devices.size());
  for (auto& ranges : plan.placement) {
    if (ranges.empty()) continue;
    std::vector<int> devices(num_devices);
    std::iota(devices.begin(), devices.end(), 0);
    std::ranges::shuffle(devices, random);
    ranges.clear();
    for (int begin = 0; begin < kBatch && !devices.empty(); devices.pop_back()) {
      const int end = devices.size() == 1 ? kBatch : begin + 1 + below(kBatch - begin);
      ranges.push_back({.device = devices.back(), .begin = begin, .end = end});
      begin = end;
    }
  }
  std::vector<int> places(problem.graph.operators.size());
  std::iota(places.begin(), places.end(), 0);
  std::ranges::shuffle(places, random);
  const auto tasks = tasks_of(plan.graph, plan.machine, plan.placement);
  const auto run = run_by_priority(tasks, plan.machine, places);
  for (int device = 0; device < num_devices; ++device) {
    plan.order[device].clear();
    for (const int task : run.order[device]) plan.order[device].push_back(tasks.tasks[task].op);
  }
  return plan;
}

std::vector<NetShape> small_nets() {
  return {small_resnet(false), small_resnet(true), small_resnet(false, 4),
          small_vgg(),         small_mobilenet(),  small_mobilenet_v2()};
}

}  // namespace frostpipe::test
