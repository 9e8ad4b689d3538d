#include "operators/training/net_session.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/steady_clock.h"
#include "executor/communication/communicator.h"
#include "executor/device/device.h"
#include "executor/device/memory_meter.h"
#include "operators/plan/net_phase.h"
#include "operators/training/net_results.h"
#include "operators/training/net_scores.h"
#include "operators/training/net_snapshot.h"

namespace frostpipe {
namespace {

constexpr double kMomentum = 0.9;
constexpr int kLossTag = 1 << 23;
constexpr int kScoredAtOnce = 64;  // samples per batch

CpuClass cpu_of(const OperatorPlan& plan, const NetTask& task, int device) {
  return cpu_classes_of(plan, task.plan_source()).at(device);
}

}  // namespace

NetSession::Running::Running(OperatorPlan whole_plan, const NetTask& task, Group& group, int device)
    : plan(std::move(whole_plan)),
      tasks(tasks_of(plan.graph, plan.machine, plan.placement)),
      holders(holders_by_layer(plan)),
      actions(actions_of(plan, tasks, task.first_plan())),
      exchange(group, plan, tasks),
      runner(task.folder().net, plan, tasks, device, exchange),
      slow_cpu(cpu_of(plan, task, device).slowdown),
      loader(*task.dataset().samples, at::kFloat, at::kCPU, /*with_input=*/true) {}

NetSession::NetSession(const NetTask& task, const SessionPlace& place)
    : task_(task), place_(place), mover_(task.folder().net, place.communicator.control_group(), at::kFloat) {}

void NetSession::run_plan_of(const Phase& phase) {
  const int device = place_.communicator.rank();
  OperatorPlan plan = operator_plan_of(phase, task_.plan_source());
  place_.device.set_num_threads(cpu_of(plan, task_, device).threads);
  running_.emplace(std::move(plan), task_, place_.communicator.weight_transfer_group(), device);
  phase_ = phase;
}

void NetSession::start(const Phase& phase, int, const LayerOrigin& origin) {
  const at::NoGradGuard no_grad;
  run_plan_of(phase);
  if (!origin.checkpoint) return begin_anew();
  std::vector<WholeLayer> layers(num_layers());
  if (leads()) {
    const UncountedMemory host;
    for (int layer = 0; layer < num_layers(); ++layer) {
      const std::string place = (origin.checkpoint->folder / layer_file_name(layer)).string();
      layers[layer] = stored_layer(open_layer(*origin.checkpoint, layer), place, task_.folder().net.layers[layer]);
    }
  }
  state_.resize(num_layers());
  momentum_.resize(num_layers());
  give(std::move(layers));
}

/// Starts from the folder's weights, which every rank reads itself.
void NetSession::begin_anew() {
  const int self = place_.communicator.rank();
  const auto [whole, none] = [&] {
    const UncountedMemory host;
    NetState state = load_state(task_.folder(), WeightFiles(task_.folder().path), task_.seed());
    std::vector<NetMomentum> momentum = no_momentum(state);
    return std::pair(std::move(state), std::move(momentum));
  }();
  state_ = copy_of(held_by(self, running_->holders, whole));
  momentum_ = held_by(self, running_->holders, none);
  for (NetMomentum& layer : momentum_)  // copies, so that only this device's parts stay in memory
    for (at::Tensor* const held : {&layer.weights, &layer.norm})
      if (held->defined()) *held = held->clone();
}

void NetSession::enter(const Phase& phase) {
  const at::NoGradGuard no_grad;
  std::vector<WholeLayer> layers(num_layers());
  {
    const UncountedMemory host;
    for (int layer = 0; layer < num_layers(); ++layer) layers[layer] = collect(layer, /*with_momentum=*/true);
  }
  run_plan_of(phase);
  give(std::move(layers));
}

void NetSession::give(std::vector<WholeLayer> layers) {
  for (int layer = 0; layer < num_layers(); ++layer)
    mover_.give(layer, running_->holders[layer], std::exchange(layers[layer], {}), state_, momentum_);
}

WholeLayer NetSession::collect(int layer, bool with_momentum) {
  return mover_.collect(layer, running_->holders[layer], state_, momentum_, with_momentum);
}

NetState NetSession::collect_all() {
  NetState whole(num_layers());
  for (int layer = 0; layer < num_layers(); ++layer) whole[layer] = collect(layer, /*with_momentum=*/false).state;
  return whole;
}

IterationResult NetSession::run_iteration(const MiniBatch& batch, const MiniBatch* next, int step,
                                          const IterationUpdate& update, Trace& trace, bool) {
  const at::NoGradGuard no_grad;
  UpdateRule rule = update.rule;
  rule.momentum = kMomentum;
  DeviceRunner& runner = running_->runner;
  const SampleRange needed = runner.samples_needed();
  running_->loader.begin_iteration(batch, needed, next, needed);
  const MicroBatch pictures = running_->loader.take(needed);
  runner.begin_iteration(state_, pictures.input, pictures.labels);
  for (int place = 0; place < static_cast<int>(runner.tasks().size()); ++place) {
    runner.wait_for(place);
    const Nanoseconds begin_ns = steady_now_ns();
    running_->slow_cpu.begin_work();
    runner.run_task(place, momentum_, rule);
    running_->slow_cpu.end_work();
    runner.send_outputs();
    trace.spans.push_back(
        {place_.communicator.rank(), step, running_->actions[runner.tasks()[place]], begin_ns, steady_now_ns()});
  }
  const double loss = sum_on_first(runner.end_iteration(state_));
  if (!std::isfinite(loss))
    throw RuntimeFailure(
        fmt::format("rank {}: step {}: the loss is not finite: training has diverged. Try a lower --learning-rate.",
                    place_.communicator.rank(), step));
  return {.loss = loss, .block_square_sums = {}};
}

double NetSession::sum_on_first(double own) {
  Group& group = place_.communicator.control_group();
  constexpr const char* kWhat = "loss";
  if (!leads()) {
    if (sent_loss_) sent_loss_->wait();
    sent_loss_ = group.send(at::full({1}, own, at::kDouble), 0, kLossTag, kWhat);
    return own;
  }
  double sum = own;
  for (const int rank : group.ranks()) {
    if (rank == 0) continue;
    const at::Tensor part = at::empty({1}, at::kDouble);
    group.receive(part, rank, kLossTag, kWhat).wait();
    sum += part.item<double>();
  }
  return sum;
}

LayersToWrite NetSession::layers_to_write(const std::vector<int>&, const CheckpointWriter&) {
  const at::NoGradGuard no_grad;
  const UncountedMemory host;
  const std::vector<NetLayer>& shapes = task_.folder().net.layers;
  LayersToWrite layers{.own = {}, .writers = std::vector<std::vector<int>>(shapes.size(), {0})};
  for (int layer = 0; layer < num_layers(); ++layer) {
    WholeLayer whole = collect(layer, /*with_momentum=*/true);
    if (leads()) layers.own.push_back(image_of(layer, shapes[layer], std::move(whole)));
  }
  return layers;
}

std::vector<double> NetSession::answers(const std::vector<int>& samples) {
  const UncountedMemory host;
  const NetState whole = collect_all();
  if (leads()) return answers_of_net(task_.folder().net, whole, task_.dataset(), samples, kScoredAtOnce, {});
  return std::vector<double>(answer_begins(*task_.dataset().samples, samples, task_.dataset().answer_shape).back(),
                             0.0);
}

void NetSession::save(bool, const std::filesystem::path& folder) {
  const at::NoGradGuard no_grad;
  const UncountedMemory host;
  const NetState whole = collect_all();
  if (leads()) write_net_folder(task_.folder(), whole, folder);
}

}  // namespace frostpipe
