#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "executor/communication/communicator.h"
#include "executor/device/memory_meter.h"
#include "executor/operators/device_runner.h"
#include "executor/operators/training/group_exchange.h"
#include "executor/operators/training/layer_mover.h"
#include "executor/operators/training/net_inputs.h"
#include "executor/operators/training/net_scores.h"
#include "executor/operators/training/operator_trace.h"
#include "executor/operators/training/picture_loader.h"
#include "executor/training/policy/learning_rate.h"
#include "plan/operators/net_run.h"
#include "profiles/error.h"
#include "profiles/files.h"
#include "profiles/steady_clock.h"
#include "profiles/time_left.h"

namespace frostpipe {
namespace {

constexpr int kScoredAtOnce = 64;  // samples

/// A phase's plan on this rank.
struct PhaseRunner {
  PhaseRunner(const NetPhase& phase, const NetShape& net, Group& group, int device)
      : plan(phase.plan),
        tasks(tasks_of(plan.graph, plan.machine, plan.placement)),
        holders(holders_by_layer(plan)),
        exchange(group, plan, tasks),
        runner(net, plan, tasks, device, exchange) {}

  const OperatorPlan& plan;
  OperatorTasks tasks;
  std::vector<LayerHolders> holders;
  GroupExchange exchange;
  DeviceRunner runner;
};

class NetTrainer {
 public:
  NetTrainer(const RankEnvironment& self, const NetTrainOptions& options, NetTask task, const Progress& progress);
  void train();

 private:
  bool leads() const { return communicator_->rank() == 0; }
  void enter(const NetPhase& phase);
  void train_epoch(int epoch);
  double train_step(const MicroBatch& pictures);
  void note_memory();
  /// Rank 0 scores the model and writes it.
  void finish(NetEpoch& epoch);
  void show(int epoch, int step);
  void write_results();

  const NetTrainOptions& options_;
  const Progress& progress_;
  NetTask task_;
  CpuClass cpu_;
  std::unique_ptr<ComputeDevice> device_;
  std::unique_ptr<Communicator> communicator_;
  LayerMover mover_;
  SlowCpu slow_cpu_;
  std::optional<PhaseRunner> phase_;
  std::optional<PictureLoader> loader_;
  NetState state_;
  std::vector<NetMomentum> momentum_;
  DeviceTimes times_;  // of the last iteration
  int step_ = 0;
  bool is_first_in_phase_ = true;
  Nanoseconds begin_ns_ = steady_now_ns();
  NetRun run_;
};

NetTrainer::NetTrainer(const RankEnvironment& self, const NetTrainOptions& options, NetTask task,
                       const Progress& progress)
    : options_(options),
      progress_(progress),
      task_(std::move(task)),
      cpu_(cpu_classes_of(options.phases.front().plan, options.common.plan_source).at(self.rank)),
      device_(make_device("cpu", self.local_rank, cpu_.threads)),
      communicator_(Communicator::connect(self, *device_)),
      mover_(task_.folder.net, communicator_->control_group(), at::kFloat),
      slow_cpu_(cpu_.slowdown) {
  const OperatorPlan& plan = options.phases.front().plan;
  run_ = {.name = options.common.name,
          .net = task_.folder.name,
          .method = plan.method,
          .batch = plan.graph.batch,
          .num_iterations = 0,
          .devices = {},
          .epochs = {}};
  for (std::size_t d = 0; d < plan.machine.devices.size(); ++d)
    run_.devices.push_back({.device_class = plan.machine.devices[d].device_class,
                            .predicted_memory_bytes = plan.predicted_memory_bytes[d]});
}

void NetTrainer::train() {
  const at::NoGradGuard no_grad;
  auto phase = options_.phases.begin();
  for (int epoch = 0; epoch < options_.num_epochs; ++epoch) {
    if (phase != options_.phases.end() && phase->first_epoch == epoch) enter(*phase++);
    train_epoch(epoch);
  }
  write_results();
}

void NetTrainer::enter(const NetPhase& phase) {
  const NetShape& net = task_.folder.net;
  const bool is_start = !phase_;
  std::vector<WholeLayer> moved(net.layers.size());
  if (!is_start) {
    const UncountedMemory host;
    for (int layer = 0; layer < static_cast<int>(moved.size()); ++layer)
      moved[layer] = mover_.collect(layer, phase_->holders[layer], state_, momentum_, /*with_momentum=*/true);
  }
  phase_.emplace(phase, net, communicator_->weight_transfer_group(), communicator_->rank());
  loader_.emplace(task_.dataset, phase.plan.graph.batch, phase_->runner.samples_needed(), options_.common.seed);
  is_first_in_phase_ = true;
  if (is_start) {
    const auto [whole, none] = [&] {
      const UncountedMemory host;
      NetState state = load_state(task_.folder, WeightFiles(task_.folder.path), options_.common.seed);
      std::vector<NetMomentum> momentum = no_momentum(state);
      return std::pair(std::move(state), std::move(momentum));
    }();
    state_ = copy_of(held_by(communicator_->rank(), phase_->holders, whole));
    momentum_ = held_by(communicator_->rank(), phase_->holders, none);
    for (NetMomentum& layer : momentum_)  // of this device's parts alone
      for (at::Tensor* const held : {&layer.weights, &layer.norm})
        if (held->defined()) *held = held->clone();
    return;
  }
  for (int layer = 0; layer < static_cast<int>(moved.size()); ++layer)
    mover_.give(layer, phase_->holders[layer], std::exchange(moved[layer], {}), state_, momentum_);
}

void NetTrainer::train_epoch(int epoch) {
  loader_->begin_epoch(epoch);
  const int num_batches = loader_->num_batches();
  double loss = 0;
  Nanoseconds begin_ns = 0;
  int num_timed = 0;
  Group& all = communicator_->control_group();
  for (int step = 0; step < num_batches; ++step) {
    const MicroBatch pictures = loader_->next();
    if (step == 0 || (step == 1 && is_first_in_phase_)) {  // the first iteration also makes ready
      all.barrier();
      begin_ns = steady_now_ns();
      num_timed = 0;
    }
    loss += train_step(pictures);
    ++num_timed;
    show(epoch, step);
  }
  all.barrier();
  const Nanoseconds iteration_ns = (steady_now_ns() - begin_ns) / num_timed;
  is_first_in_phase_ = false;
  if (epoch < (options_.phases.size() > 1 ? options_.phases[1].first_epoch : options_.num_epochs)) note_memory();
  NetEpoch one{.frozen_layers = phase_->plan.frozen_layers,
               .predicted_iteration_ns = phase_->plan.predicted_ns,
               .iteration_ns = iteration_ns,
               .loss = communicator_->sum({loss}).front() / num_batches};
  if (!std::isfinite(*one.loss))
    throw RuntimeFailure(
        fmt::format("rank {}: epoch {}: the loss is not finite: training has diverged. Try a lower --learning-rate.",
                    communicator_->rank(), epoch + 1));
  finish(one);
  run_.epochs.push_back(one);
  run_.num_iterations += num_batches;
}

double NetTrainer::train_step(const MicroBatch& pictures) {
  DeviceRunner& runner = phase_->runner;
  const TrainOptions& common = options_.common;
  const SgdOptions sgd{.learning_rate = learning_rate_at(common, step_, options_.num_epochs * loader_->num_batches()),
                       .momentum = options_.momentum,
                       .weight_decay = common.weight_decay};
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
  ++step_;
  return runner.end_iteration(state_);
}

void NetTrainer::note_memory() {
  const auto peaks = communicator_->gather(std::to_string(device_->peak_bytes()));
  for (std::size_t d = 0; d < peaks.size(); ++d)
    run_.devices[d].peak_memory_bytes = std::max(run_.devices[d].peak_memory_bytes, Bytes{std::stoll(peaks[d])});
}

void NetTrainer::finish(NetEpoch& epoch) {
  const UncountedMemory host;
  NetState whole(task_.folder.net.layers.size());
  for (int layer = 0; layer < static_cast<int>(whole.size()); ++layer)
    whole[layer] = mover_.collect(layer, phase_->holders[layer], state_, momentum_, /*with_momentum=*/false).state;
  if (!leads()) return;
  const std::vector<int>& test = task_.dataset.split.test;
  if (!test.empty())
    epoch.test_accuracy = score_net(task_.folder.net, whole, task_.dataset, test, kScoredAtOnce, {}).value;
  write_net_folder(task_.folder, whole, options_.common.output / "model");
}

void NetTrainer::show(int epoch, int step) {
  if (!leads()) return;
  const int num_batches = loader_->num_batches();
  const double fraction = static_cast<double>(step_) / (static_cast<double>(num_batches) * options_.num_epochs);
  const std::string frozen =
      phase_->plan.frozen_layers > 0 ? fmt::format(", {} layers frozen", phase_->plan.frozen_layers) : "";
  const std::string accuracy = !run_.epochs.empty() && run_.epochs.back().test_accuracy
                                   ? fmt::format(", accuracy {:.1f} %", 100 * *run_.epochs.back().test_accuracy)
                                   : "";
  const std::string last = run_.epochs.empty() ? "" : fmt::format(", loss {:.4f}", *run_.epochs.back().loss);
  progress_(fraction,
            fmt::format("epoch {} of {}, step {} of {}{}{}{}{}", epoch + 1, options_.num_epochs, step + 1, num_batches,
                        frozen, last, accuracy, time_left(steady_now_ns() - begin_ns_, fraction)));
}

void NetTrainer::write_results() {
  const std::filesystem::path& folder = options_.common.output;
  const std::vector<std::string> texts =
      communicator_->gather(nlohmann::json{{"begin_ns", times_.begin_ns}, {"end_ns", times_.end_ns}}.dump());
  if (leads()) {
    std::vector<DeviceTimes> measured;
    for (const std::string& text : texts) {
      const auto json = nlohmann::json::parse(text);
      measured.push_back({json["begin_ns"], json["end_ns"]});
    }
    const OperatorRun predicted = simulate_operators(phase_->plan, phase_->tasks, options_.common.plan_source);
    write_file_atomically(folder / "trace.json", chrome_trace(phase_->plan, phase_->tasks, predicted, measured));
    run_.wall_seconds = 1e-9 * static_cast<double>(steady_now_ns() - begin_ns_);
    write_file_atomically(folder / "summary.json", to_json(run_));
  }
  communicator_->control_group().barrier();  // whoever is lost before it is lost to all
}

}  // namespace

void train_net(Membership& membership, const NetTrainOptions& options, const Progress& progress) {
  const auto round = membership.next_round();
  FROSTPIPE_CHECK(round, "a plan of operators has no spares");
  require_ranks(options.phases.front().plan, round->self);
  NetTrainer(round->self, options, open_net_task(options), progress).train();
}

}  // namespace frostpipe
