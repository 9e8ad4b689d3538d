// Oracle: one process without operator plans (reference_net.h), through a change of plan with more frozen layers.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "executor/communication/communicator.h"
#include "operators/executor/device_runner.h"
#include "operators/training/group_exchange.h"
#include "operators/training/layer_mover.h"
#include "tests/executor/ranks.h"
#include "tests/operators/executor/reference_net.h"
#include "tests/operators/executor/small_nets.h"

namespace frostpipe::test {
namespace {

constexpr double kTolerance = 1e-11;
const UpdateRule kSgd{.optimizer = Optimizer::kSgd, .learning_rate = 0.02, .momentum = 0.9, .weight_decay = 1e-3};

/// A rank's part of the net.
struct Held {
  NetState state;
  std::vector<NetMomentum> momentum;
};

void train_step(const NetShape& net, const OperatorPlan& plan, Group& group, int step, Held& held) {
  const auto tasks = tasks_of(plan.graph, plan.machine, plan.placement);
  GroupExchange exchange(group, plan, tasks);
  DeviceRunner runner(net, plan, tasks, group.self(), exchange);
  const auto [begin, end] = runner.samples_needed();
  runner.begin_iteration(held.state, random_pictures(net, 10 + step, at::kDouble).narrow(0, begin, end - begin),
                         random_labels(20 + step).narrow(0, begin, end - begin));
  for (int place = 0; place < static_cast<int>(runner.tasks().size()); ++place) {
    runner.wait_for(place);
    runner.run_task(place, held.momentum, kSgd);
    runner.send_outputs();
  }
  runner.end_iteration(held.state);
}

void check_equal(const at::Tensor& ours, const at::Tensor& theirs, const std::string& what) {
  CHECK_RANK(distance(ours, theirs) <= kTolerance, what);
}

RANK_TEST(RanksOfNets, TrainAsOneProcessThroughAFreeze, 2, 3) {
  const at::NoGradGuard no_grad;
  const auto device = make_device("cpu", self.local_rank);
  const auto communicator = Communicator::connect(self, *device);
  Group& group = communicator->control_group();
  for (const NetShape& net : small_nets()) {
    constexpr int kFrozen = 3, kSteps = 2;
    const auto start = random_state(net, 7, at::kDouble);
    ReferenceNet reference(net, start, 0);
    LayerMover mover(net, group, at::kDouble);
    const OperatorPlan first = random_plan(problem_of(net, self.world_size, 0), 3, 0),
                       second = random_plan(problem_of(net, self.world_size, kFrozen), 4, kFrozen);
    Held held{held_by(self.rank, holders_by_layer(first), copy_of(start)),
              held_by(self.rank, holders_by_layer(first), no_momentum(start))};
    for (int step = 0; step < 2 * kSteps; ++step) {
      if (step == kSteps) {
        reference.freeze(kFrozen);
        for (int layer = 0; layer < static_cast<int>(net.layers.size()); ++layer) {
          const WholeLayer whole =
              mover.collect(layer, holders_by_layer(first)[layer], held.state, held.momentum, true);
          mover.give(layer, holders_by_layer(second)[layer], whole, held.state, held.momentum);
        }
      }
      train_step(net, step < kSteps ? first : second, group, step, held);
      reference.step(random_pictures(net, 10 + step, at::kDouble), random_labels(20 + step), kSgd);
    }
    for (int layer = 0; layer < static_cast<int>(net.layers.size()); ++layer) {
      const WholeLayer whole = mover.collect(layer, holders_by_layer(second)[layer], held.state, held.momentum, true);
      if (self.rank != 0 || !whole.state.weights.defined()) continue;
      const std::string what = net.name + ": " + net.layers[layer].name;
      check_equal(whole.state.weights, reference.state()[layer].weights, what);
      if (layer >= kFrozen) check_equal(whole.momentum.weights, reference.momentum()[layer].weights, what);
      if (!whole.state.norm.defined()) continue;
      check_equal(whole.state.norm, reference.state()[layer].norm, what);
      check_equal(whole.state.running_mean, reference.state()[layer].running_mean, what);
      check_equal(whole.state.running_variance, reference.state()[layer].running_variance, what);
      if (layer >= kFrozen) check_equal(whole.momentum.norm, reference.momentum()[layer].norm, what);
    }
  }
}

}  // namespace
}  // namespace frostpipe::test
