#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>

#include "planner/operators/make_operator_plan.h"
#include "profiles/operators/estimated_operators.h"
#include "simulator/operators/run_operators.h"
#include "tests/executor/operators/reference_net.h"

// Every plan trains as one process with full-batch batch norm does: loss, every gradient, running statistics.

namespace frostpipe {
namespace {

/// Of all devices, in one process.
class Mailbox {
 public:
  std::map<int, at::Tensor> letters;
};

class MailExchange final : public TensorExchange {
 public:
  explicit MailExchange(Mailbox& mailbox) : mailbox_(mailbox) {}
  void send(int transfer, const at::Tensor& tensor) override { mailbox_.letters.emplace(transfer, tensor.clone()); }
  void expect(int transfer, const at::Tensor& into) override { expected_.emplace(transfer, into); }
  void take(int transfer) override {
    auto letter = mailbox_.letters.extract(transfer);
    if (letter.empty()) throw std::runtime_error("taken before it was sent");
    auto into = expected_.extract(transfer).mapped();
    if (into.sizes() != letter.mapped().sizes()) throw std::runtime_error("another shape was expected");
    into.copy_(letter.mapped());
  }
  void end_iteration() override {}

 private:
  Mailbox& mailbox_;
  std::map<int, at::Tensor> expected_;
};

struct Update {
  bool is_norm = false;
  int layer = 0;
  std::int64_t part = 0, num_parts = 1;
};

/// All devices of a plan in this process, each with weights of its own, in the order of the simulated run.
class AllDevices {
 public:
  AllDevices(const NetShape& net, OperatorPlan plan, const NetState& start)
      : net_(net), plan_(std::move(plan)), tasks_(tasks_of(plan_.graph, plan_.machine, plan_.placement)) {
    for (int device = 0; device < static_cast<int>(plan_.machine.devices.size()); ++device) {
      states_.push_back(copy_of(start));
      momenta_.push_back(no_momentum(start));
      exchanges_.push_back(std::make_unique<MailExchange>(mailbox_));
      devices_.push_back(std::make_unique<DeviceRunner>(net_, plan_, tasks_, device, *exchanges_.back()));
    }
  }

  double step(const at::Tensor& pictures, const at::Tensor& labels, const SgdOptions& options) {
    for (std::size_t device = 0; device < devices_.size(); ++device)
      devices_[device]->begin_iteration(states_[device], pictures, labels);
    for (const auto& [device, place] : order()) devices_[device]->run_task(place, momenta_[device], options);
    double loss = 0;
    for (std::size_t device = 0; device < devices_.size(); ++device)
      loss += devices_[device]->end_iteration(states_[device]);
    EXPECT_TRUE(mailbox_.letters.empty());
    return loss;
  }

  /// Every part of an update: on which device, of how many parts which.
  template <class Visit>
  void visit_updates(Visit visit) const {
    const auto holders = holders_of(plan_.graph, plan_.placement);
    for (std::size_t op = 0; op < holders.size(); ++op)
      for (std::size_t part = 0; part < holders[op].size(); ++part) {
        const int device = holders[op][part];
        visit(Update{.is_norm = plan_.graph.operators[op].kind == OperatorKind::norm_update,
                     .layer = plan_.graph.operators[op].layer,
                     .part = static_cast<std::int64_t>(part),
                     .num_parts = static_cast<std::int64_t>(holders[op].size())},
              states_[device], momenta_[device]);
      }
  }

 private:
  std::vector<std::pair<int, int>> order() const {
    const auto run = simulate_operators(plan_, tasks_, "plan");
    std::vector<std::tuple<Nanoseconds, Nanoseconds, int, int>> begins;
    for (int device = 0; device < static_cast<int>(devices_.size()); ++device)
      for (int place = 0; place < static_cast<int>(devices_[device]->tasks().size()); ++place) {
        const int task = devices_[device]->tasks()[place];
        begins.emplace_back(run.task_begin_ns[task], run.task_end_ns[task], device, place);
      }
    std::ranges::sort(begins);
    std::vector<std::pair<int, int>> order;
    for (const auto& [begin, end, device, place] : begins) order.emplace_back(device, place);
    return order;
  }

  const NetShape& net_;
  OperatorPlan plan_;
  OperatorTasks tasks_;
  Mailbox mailbox_;
  std::vector<NetState> states_;
  std::vector<std::vector<NetMomentum>> momenta_;
  std::vector<std::unique_ptr<MailExchange>> exchanges_;
  std::vector<std::unique_ptr<DeviceRunner>> devices_;
};

constexpr int kBatch = 12, kClasses = 5;

NetShape small_resnet(bool bottleneck) {
  return resnet("small", {.picture_size = 20,
                          .num_classes = kClasses,
                          .embedding_size = 8,
                          .hidden_sizes = {16, 24},
                          .depths = {2, 1},
                          .bottleneck = bottleneck});
}

/// A depthwise convolution, biases beside batch norm, and linear layers with ReLU: what MobileNet and VGG have.
NetShape small_vgg() {
  NetShape net{.name = "vgg", .picture_size = 8};
  net.layers = {{.name = "conv",
                 .in_channels = 3,
                 .out_channels = 6,
                 .kernel = 3,
                 .padding = 1,
                 .in_size = 8,
                 .out_size = 8,
                 .batch_norm = true,
                 .bias = true,
                 .relu = true},
                {.name = "depthwise",
                 .input = 0,
                 .in_channels = 6,
                 .out_channels = 6,
                 .kernel = 3,
                 .stride = 2,
                 .padding = 1,
                 .groups = 6,
                 .in_size = 8,
                 .out_size = 4,
                 .batch_norm = true,
                 .relu = true},
                {.name = "pool",
                 .kind = NetLayer::Kind::max_pooling,
                 .input = 1,
                 .in_channels = 6,
                 .out_channels = 6,
                 .kernel = 2,
                 .stride = 2,
                 .in_size = 4,
                 .out_size = 2},
                {.name = "fc1", .input = 2, .in_channels = 24, .out_channels = 10, .bias = true, .relu = true},
                {.name = "fc2", .input = 3, .in_channels = 10, .out_channels = kClasses, .bias = true}};
  return net;
}

OperatorProblem problem_of(const NetShape& net, int num_devices, int frozen_layers) {
  const std::vector<Hardware> classes = {find_hardware("V100"), find_hardware("A100")};
  OperatorProblem problem{.graph = frozen(estimated_operators(net, kBatch, classes), frozen_layers)};
  problem.machine.between_nodes = {.latency_ns = 10, .bandwidth_bytes_per_second = 200'000'000'000};
  for (int device = 0; device < num_devices; ++device)
    problem.machine.devices.push_back({.device_class = classes[device % 2].name, .node = device});
  for (auto& one : problem.graph.operators)  // small nets are all overhead, which no plan would split
    for (auto& time : one.times) time.work_ns = 100 * time.work_ns + 1000, time.overhead_ns = 1;
  return problem;
}

/// |a - b| / |b|, in the Euclidean norm; of nothing but zeros, |a|.
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

/// The largest relative distance in three steps of SGD with momentum, on every device that has it: of the loss,
/// weights and momentum, which after the first step is the gradient, and running statistics.
double largest_distance(const NetShape& net, const OperatorPlan& plan, at::ScalarType type, int num_micro_batches = 1) {
  const auto start = random_state(net, 7, type);
  AllDevices devices(net, plan, start);
  test::ReferenceNet reference(net, start, plan.frozen_layers);
  double largest = 0;
  const auto compare = [&](const at::Tensor& a, const at::Tensor& b) { largest = std::max(largest, distance(a, b)); };
  for (int step = 0; step < 3; ++step) {
    const auto pictures = random_pictures(net, 10 + step, type), labels = random_labels(20 + step);
    const SgdOptions options{.learning_rate = 0.02, .momentum = 0.9, .weight_decay = 1e-3};
    const double loss = reference.step(pictures, labels, options, num_micro_batches);
    largest = std::max(largest, std::abs(devices.step(pictures, labels, options) / loss - 1));
    devices.visit_updates([&](const Update& update, const NetState& state, const std::vector<NetMomentum>& momentum) {
      const auto &held = state[update.layer], &wanted = reference.state()[update.layer];
      const auto &held_momentum = momentum[update.layer], &wanted_momentum = reference.momentum()[update.layer];
      if (update.is_norm) {
        compare(held.norm, wanted.norm);
        compare(held_momentum.norm, wanted_momentum.norm);
        compare(held.running_mean, wanted.running_mean);
        compare(held.running_variance, wanted.running_variance);
      } else {
        compare(held.weights, wanted.weights);
        const std::int64_t count = num_weights(net.layers[update.layer]);
        const std::int64_t begin = count * update.part / update.num_parts;
        const std::int64_t size = count * (update.part + 1) / update.num_parts - begin;
        compare(held_momentum.weights.narrow(0, begin, size), wanted_momentum.weights.narrow(0, begin, size));
      }
    });
  }
  return largest;
}

std::vector<OperatorPlan> plans_for(const NetShape& net, int num_devices, int frozen_layers) {
  const auto problem = problem_of(net, num_devices, frozen_layers);
  std::vector<OperatorPlan> plans;
  for (const auto method : {OperatorMethod::mtrain, OperatorMethod::single, OperatorMethod::data_parallel,
                            OperatorMethod::layer_wise, OperatorMethod::pipeline})
    plans.push_back(make_operator_plan(problem, method, {.num_trials = 300}));
  for (auto& plan : plans) {
    plan.frozen_layers = frozen_layers;
    validate(plan, std::string(to_string(plan.method)));
  }
  return plans;
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

std::vector<NetShape> nets() { return {small_resnet(false), small_resnet(true), small_vgg()}; }

constexpr double kFloatTolerance = 1e-5, kDoubleTolerance = 1e-11;

TEST(OperatorExecution, EveryMethodEqualsOneProcessInDoublePrecision) {
  for (const auto& net : nets())
    for (const int num_devices : {1, 2, 4})
      for (const auto& plan : plans_for(net, num_devices, 0))
        EXPECT_LE(largest_distance(net, plan, at::kDouble), kDoubleTolerance)
            << net.name << " " << to_string(plan.method) << " on " << num_devices;
}

TEST(OperatorExecution, EveryMethodEqualsOneProcessInSinglePrecision) {
  for (const auto& net : nets())
    for (const auto& plan : plans_for(net, 3, 0))
      EXPECT_LE(largest_distance(net, plan, at::kFloat), kFloatTolerance) << net.name << " " << to_string(plan.method);
}

TEST(OperatorExecution, FrozenLayersNormaliseWithTheirRunningStatistics) {
  for (const auto& net : nets())
    for (const int frozen_layers : {1, 2, 3})
      for (const auto& plan : plans_for(net, 3, frozen_layers))
        EXPECT_LE(largest_distance(net, plan, at::kDouble), kDoubleTolerance)
            << net.name << " " << to_string(plan.method) << ", " << frozen_layers << " frozen";
}

// Ranges and orders that no planner would choose, on every operator of its own.
TEST(OperatorExecution, RandomPlacementsEqualOneProcess) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed)
    for (const auto& net : nets()) {
      const auto plan = random_plan(problem_of(net, 3, static_cast<int>(seed % 3)), seed, static_cast<int>(seed % 3));
      EXPECT_LE(largest_distance(net, plan, at::kDouble), kDoubleTolerance) << net.name << " seed " << seed;
    }
}

TEST(OperatorExecution, StatisticsOfMicroBatchesDoNotPass) {
  const auto net = small_resnet(false);
  const auto plan = plans_for(net, 2, 0).front();
  EXPECT_GT(largest_distance(net, plan, at::kDouble, 2), 1e-2);
}

}  // namespace
}  // namespace frostpipe
