#include "operators/training/net_session.h"

#include <utility>

#include "base/steady_clock.h"
#include "executor/device/memory_meter.h"

namespace frostpipe {

NetSession::NetSession(const NetFolder& folder, const CpuClass& cpu, Communicator& communicator)
    : folder_(folder),
      communicator_(communicator),
      mover_(folder.net, communicator.control_group(), at::kFloat),
      slow_cpu_(cpu.slowdown) {}

void NetSession::start_phase(const OperatorPlan& plan) {
  phase_.emplace(plan, folder_.net, communicator_.weight_transfer_group(), communicator_.rank());
}

void NetSession::begin(const OperatorPlan& plan, std::uint64_t seed) {
  start_phase(plan);
  const auto [whole, none] = [&] {
    const UncountedMemory host;
    NetState state = load_state(folder_, WeightFiles(folder_.path), seed);
    std::vector<NetMomentum> momentum = no_momentum(state);
    return std::pair(std::move(state), std::move(momentum));
  }();
  state_ = copy_of(held_by(communicator_.rank(), phase_->holders, whole));
  momentum_ = held_by(communicator_.rank(), phase_->holders, none);
  for (NetMomentum& layer : momentum_)  // of this device's parts alone
    for (at::Tensor* const held : {&layer.weights, &layer.norm})
      if (held->defined()) *held = held->clone();
}

void NetSession::restore(const OperatorPlan& plan, const std::function<WholeLayer(int layer)>& stored) {
  start_phase(plan);
  std::vector<WholeLayer> layers(num_layers());
  if (communicator_.rank() == 0) {
    const UncountedMemory host;
    for (int layer = 0; layer < num_layers(); ++layer) layers[layer] = stored(layer);
  }
  state_.resize(num_layers());
  momentum_.resize(num_layers());
  give(std::move(layers));
}

void NetSession::change_to(const OperatorPlan& plan) {
  std::vector<WholeLayer> layers(num_layers());
  {
    const UncountedMemory host;
    for (int layer = 0; layer < num_layers(); ++layer) layers[layer] = collect(layer, /*with_momentum=*/true);
  }
  start_phase(plan);
  give(std::move(layers));
}

void NetSession::give(std::vector<WholeLayer> layers) {
  for (int layer = 0; layer < num_layers(); ++layer)
    mover_.give(layer, phase_->holders[layer], std::exchange(layers[layer], {}), state_, momentum_);
}

WholeLayer NetSession::collect(int layer, bool with_momentum) {
  return mover_.collect(layer, phase_->holders[layer], state_, momentum_, with_momentum);
}

double NetSession::train_step(const MicroBatch& pictures, const SgdOptions& sgd) {
  DeviceRunner& runner = phase_->runner;
  times_ = {};
  runner.begin_iteration(state_, pictures.input, pictures.labels);
  for (int place = 0; place < static_cast<int>(runner.tasks().size()); ++place) {
    runner.wait_for(place);
    times_.begin_ns.push_back(steady_now_ns());
    slow_cpu_.begin_work();
    runner.run_task(place, momentum_, sgd);
    slow_cpu_.end_work();
    runner.send_outputs();
    times_.end_ns.push_back(steady_now_ns());
  }
  return runner.end_iteration(state_);
}

}  // namespace frostpipe
