#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>

#include "operators/planner/make_operator_plan.h"
#include "operators/simulator/run_operators.h"
#include "tests/operators/executor/reference_net.h"
#include "tests/operators/executor/small_nets.h"

// Every plan trains as one process with full-batch batch norm does: loss, every gradient, running statistics.

namespace frostpipe::test {
namespace {

/// The exchange between all devices, in one process.
class Mailbox {
 public:
  std::map<int, at::Tensor> letters;
};

class MailExchange final : public TensorExchange {
 public:
  explicit MailExchange(Mailbox& mailbox) : mailbox_(mailbox) {}
  void send(int transfer, const at::Tensor& tensor) override {
    mailbox_.letters.emplace(transfer, tensor.clone());
    sent_.emplace_back(tensor, tensor.clone());
  }
  void expect(int transfer, const at::Tensor& into) override { expected_.emplace(transfer, into); }
  void take(int transfer) override {
    auto letter = mailbox_.letters.extract(transfer);
    if (letter.empty()) throw std::runtime_error("taken before it was sent");
    auto into = expected_.extract(transfer).mapped();
    if (into.sizes() != letter.mapped().sizes()) throw std::runtime_error("another shape was expected");
    into.copy_(letter.mapped());
  }
  /// Until then a tensor may not have arrived.
  void end_iteration() override {
    for (const auto& [tensor, as_sent] : sent_)
      if (!tensor.equal(as_sent)) throw std::runtime_error("changed while it was sent");
    sent_.clear();
  }

 private:
  Mailbox& mailbox_;
  std::vector<std::pair<at::Tensor, at::Tensor>> sent_;
  std::map<int, at::Tensor> expected_;
};

struct Update {
  bool is_norm = false;
  int layer = 0;
  std::int64_t part = 0, num_parts = 1;
};

/// All devices of a plan in this process, each with its own weights, in the order of the simulated run.
class AllDevices {
 public:
  AllDevices(const NetShape& net, OperatorPlan plan, const NetState& start)
      : net_(net), plan_(std::move(plan)), tasks_(tasks_of(plan_.graph, plan_.machine, plan_.placement)) {
    const auto holders = holders_by_layer(plan_);
    for (int device = 0; device < static_cast<int>(plan_.machine.devices.size()); ++device) {
      exchanges_.push_back(std::make_unique<MailExchange>(mailbox_));
      devices_.push_back(std::make_unique<DeviceRunner>(net_, plan_, tasks_, device, *exchanges_.back()));
      states_.push_back(held_by(device, holders, copy_of(start)));
      momenta_.push_back(held_by(device, holders, no_momentum(start)));
    }
  }

  double step(const at::Tensor& pictures, const at::Tensor& labels, const UpdateRule& options) {
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      const auto [begin, end] = devices_[device]->samples_needed();
      devices_[device]->begin_iteration(states_[device], pictures.narrow(0, begin, end - begin),
                                        labels.narrow(0, begin, end - begin));
    }
    for (const auto& [device, place] : order()) {
      devices_[device]->wait_for(place);
      devices_[device]->run_task(place, momenta_[device], options);
      devices_[device]->send_outputs();
    }
    double loss = 0;
    for (std::size_t device = 0; device < devices_.size(); ++device)
      loss += devices_[device]->end_iteration(states_[device]);
    EXPECT_TRUE(mailbox_.letters.empty());
    return loss;
  }

  /// Every part of an update: its device, its number and the number of parts.
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

/// Scales and shifts different from 1 and 0: after a batch norm without shift and ReLU all means would be rounding
/// errors, which a relative distance cannot compare.
NetState random_start(const NetShape& net, at::ScalarType type) {
  NetState state = random_state(net, 7, type);
  const auto generator = at::detail::createCPUGenerator(8);
  for (NetLayerState& layer : state)
    if (layer.norm.defined()) layer.norm += 0.2 * at::randn(layer.norm.sizes(), generator, at::kDouble).to(type);
  return state;
}

/// The largest relative distance in three steps of SGD with momentum, on every device that has it: of the loss,
/// weights and momentum, which after the first step is the gradient, and running statistics.
double largest_distance(const NetShape& net, const OperatorPlan& plan, at::ScalarType type, int num_micro_batches = 1) {
  const auto start = random_start(net, type);
  AllDevices devices(net, plan, start);
  ReferenceNet reference(net, start, plan.frozen_layers);
  double largest = 0;
  const auto note = [&](double found) {
    if (!(found <= largest)) largest = found;  // also NaN
  };
  const auto compare = [&](const at::Tensor& a, const at::Tensor& b) { note(distance(a, b)); };
  for (int step = 0; step < 3; ++step) {
    const auto pictures = random_pictures(net, 10 + step, type), labels = random_labels(20 + step);
    const UpdateRule options{
        .optimizer = Optimizer::kSgd, .learning_rate = 0.02, .momentum = 0.9, .weight_decay = 1e-3};
    const double loss = reference.step(pictures, labels, options, num_micro_batches);
    note(std::abs(devices.step(pictures, labels, options) / loss - 1));
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
        compare(held_momentum.weights, wanted_momentum.weights.narrow(0, begin, size));
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

constexpr double kFloatTolerance = 1e-5, kDoubleTolerance = 1e-11;

TEST(OperatorExecution, EveryMethodEqualsOneProcessInDoublePrecision) {
  for (const auto& net : small_nets())
    for (const int num_devices : {1, 2, 4})
      for (const auto& plan : plans_for(net, num_devices, 0))
        EXPECT_LE(largest_distance(net, plan, at::kDouble), kDoubleTolerance)
            << net.name << " " << to_string(plan.method) << " on " << num_devices;
}

TEST(OperatorExecution, EveryMethodEqualsOneProcessInSinglePrecision) {
  for (const auto& net : small_nets())
    for (const auto& plan : plans_for(net, 3, 0))
      EXPECT_LE(largest_distance(net, plan, at::kFloat), kFloatTolerance) << net.name << " " << to_string(plan.method);
}

TEST(OperatorExecution, FrozenLayersNormaliseWithTheirRunningStatistics) {
  for (const auto& net : small_nets())
    for (const int frozen_layers : {1, 2, 3})
      for (const auto& plan : plans_for(net, 3, frozen_layers))
        EXPECT_LE(largest_distance(net, plan, at::kDouble), kDoubleTolerance)
            << net.name << " " << to_string(plan.method) << ", " << frozen_layers << " frozen";
}

TEST(OperatorExecution, RandomPlacementsEqualOneProcess) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed)
    for (const auto& net : small_nets()) {
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
}  // namespace frostpipe::test
