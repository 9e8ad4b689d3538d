#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/steady_clock.h"
#include "base/time_left.h"
#include "executor/communication/communicator.h"
#include "executor/device/memory_meter.h"
#include "executor/training/policy/learning_rate.h"
#include "executor/training/policy/resume_point.h"
#include "operators/plan/net_run.h"
#include "operators/training/net_checkpoints.h"
#include "operators/training/net_inputs.h"
#include "operators/training/net_scores.h"
#include "operators/training/net_session.h"
#include "operators/training/net_snapshot.h"
#include "operators/training/operator_trace.h"
#include "operators/training/picture_loader.h"

namespace frostpipe {
namespace {

constexpr int kScoredAtOnce = 64;  // samples

class NetTrainer {
 public:
  NetTrainer(const RankEnvironment& self, Membership& membership, const NetTrainOptions& options, NetTask task,
             const TrainCallbacks& callbacks);
  void train();

 private:
  bool leads() const { return communicator_->rank() == 0; }
  int num_steps() const { return options_.num_epochs * num_batches_; }
  const OperatorPlan& plan_of(int epoch) const;
  RunSettings settings() const;
  /// Goes on from a checkpoint or begins.
  void begin();
  void load_pictures_for(int epoch, int first_batch);
  /// False if the run was asked to end before the epoch's end.
  bool train_epoch(int epoch);
  double train_step(const MicroBatch& pictures);
  /// `loss`: this rank's sum over the epoch's mini-batches so far. Whether it was written, on rank 0.
  bool write_checkpoint(double loss);
  void end_early(double loss);
  void note_memory();
  /// Rank 0 scores the model and writes it.
  void finish(NetEpoch& epoch);
  void show(int epoch, int step);
  void write_results();
  double wall_seconds() const { return earlier_seconds_ + 1e-9 * static_cast<double>(steady_now_ns() - begin_ns_); }

  Membership& membership_;
  const NetTrainOptions& options_;
  const TrainCallbacks& callbacks_;
  NetTask task_;
  CpuClass cpu_;
  std::unique_ptr<ComputeDevice> device_;
  std::unique_ptr<Communicator> communicator_;
  NetSession session_;
  NetCheckpoints checkpoints_;
  std::optional<PictureLoader> loader_;
  int num_batches_;  // of an epoch
  int step_ = 0, first_step_ = 0;
  double epoch_loss_ = 0;  // this rank's, of the epoch that the run goes on within
  bool is_first_in_phase_ = true;
  Nanoseconds begin_ns_ = steady_now_ns();
  double earlier_seconds_ = 0;  // until the checkpoint that the run goes on from
  NetRun run_;
};

NetTrainer::NetTrainer(const RankEnvironment& self, Membership& membership, const NetTrainOptions& options,
                       NetTask task, const TrainCallbacks& callbacks)
    : membership_(membership),
      options_(options),
      callbacks_(callbacks),
      task_(std::move(task)),
      cpu_(cpu_classes_of(options.phases.front().plan, options.common.plan_source).at(self.rank)),
      device_(make_device("cpu", self.local_rank, cpu_.threads)),
      communicator_(Communicator::connect(self, *device_)),
      session_(task_.folder, cpu_, *communicator_),
      checkpoints_(options.common, task_.folder.net, *communicator_, callbacks.note),
      num_batches_(static_cast<int>(task_.dataset.split.train.size()) / options.phases.front().plan.graph.batch) {
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
  begin();
  for (int epoch = step_ / num_batches_; epoch < options_.num_epochs; ++epoch) {
    if (&session_.plan() != &plan_of(epoch)) {
      session_.change_to(plan_of(epoch));
      load_pictures_for(epoch, 0);
    }
    if (!train_epoch(epoch)) return;
  }
  write_results();
}

const OperatorPlan& NetTrainer::plan_of(int epoch) const {
  const auto later = std::ranges::upper_bound(options_.phases, epoch, {}, &NetPhase::first_epoch);
  return std::prev(later)->plan;
}

RunSettings NetTrainer::settings() const {
  const TrainOptions& common = options_.common;
  return {.model_fingerprint = fingerprint(task_.folder.net),
          .data_fingerprint = fingerprint(task_.dataset),
          .seed = common.seed,
          .global_batch_size = run_.batch,
          .num_steps = num_steps(),
          .optimizer = Optimizer::kSgd,
          .learning_rate = common.learning_rate,
          .learning_rate_warm_up = common.learning_rate_warm_up,
          .weight_decay = common.weight_decay,
          .decay = common.decay};
}

void NetTrainer::begin() {
  std::optional<NetCheckpoint> found;
  if (leads()) found = net_checkpoint_to_resume(options_.common, settings(), callbacks_.note);
  step_ = first_step_ = std::stoi(communicator_->broadcast(std::to_string(found ? found->step : 0), 0));
  const OperatorPlan& plan = plan_of(step_ / num_batches_);
  if (step_ == 0) {
    session_.begin(plan, options_.common.seed);
  } else {
    std::optional<SafetensorsFile> state;
    if (found) state.emplace(open_state(*found));
    session_.restore(plan, [&](int layer) { return stored_layer(*state, task_.folder.net, layer); });
  }
  load_pictures_for(step_ / num_batches_, step_ % num_batches_);
  if (!found) return;
  callbacks_.note(fmt::format("going on from {}, step {} of {}", found->folder.string(), step_, num_steps()));
  epoch_loss_ = found->epoch_loss;
  earlier_seconds_ = found->run.wall_seconds;
  run_.epochs = found->run.epochs;
  run_.num_iterations = found->run.num_iterations;
  if (found->run.devices.size() != run_.devices.size()) return;
  for (std::size_t d = 0; d < run_.devices.size(); ++d)
    run_.devices[d].peak_memory_bytes = found->run.devices[d].peak_memory_bytes;
}

void NetTrainer::load_pictures_for(int epoch, int first_batch) {
  loader_.emplace(task_.dataset, run_.batch, session_.samples_needed(), options_.common.seed);
  loader_->begin_epoch(epoch, first_batch);
  is_first_in_phase_ = true;
}

bool NetTrainer::train_epoch(int epoch) {
  const int first = step_ - epoch * num_batches_;
  if (!is_first_in_phase_) loader_->begin_epoch(epoch, first);
  double loss = std::exchange(epoch_loss_, 0);
  Nanoseconds begin_ns = 0;
  int num_timed = 0;
  Group& all = communicator_->control_group();
  for (int step = first; step < num_batches_; ++step) {
    if (membership_.is_to_end()) {
      end_early(loss);
      return false;
    }
    if (checkpoints_.is_due(step_)) write_checkpoint(loss);
    const MicroBatch pictures = loader_->next();
    if (step == first || (step == first + 1 && is_first_in_phase_)) {  // the first iteration also makes ready
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
  NetEpoch one{.frozen_layers = session_.plan().frozen_layers,
               .predicted_iteration_ns = session_.plan().predicted_ns,
               .iteration_ns = iteration_ns,
               .loss = communicator_->sum({loss}).front() / num_batches_};
  if (!std::isfinite(*one.loss))
    throw RuntimeFailure(
        fmt::format("rank {}: epoch {}: the loss is not finite: training has diverged. Try a lower --learning-rate.",
                    communicator_->rank(), epoch + 1));
  finish(one);
  run_.epochs.push_back(one);
  run_.num_iterations += num_batches_;
  return true;
}

double NetTrainer::train_step(const MicroBatch& pictures) {
  const TrainOptions& common = options_.common;
  const double loss = session_.train_step(pictures, {.learning_rate = learning_rate_at(common, step_, num_steps()),
                                                     .momentum = options_.momentum,
                                                     .weight_decay = common.weight_decay});
  ++step_;
  return loss;
}

bool NetTrainer::write_checkpoint(double loss) {
  const UncountedMemory host;
  NetCheckpoint snapshot{.step = step_,
                         .settings = settings(),
                         .frozen_layers = session_.plan().frozen_layers,
                         .epoch_loss = communicator_->sum({loss}).front(),
                         .files = {},
                         .run = run_,
                         .folder = {}};
  snapshot.run.wall_seconds = wall_seconds();
  return checkpoints_.write(snapshot, [&](int layer) { return session_.collect(layer, /*with_momentum=*/true); });
}

/// As whoever started the run wants it: with a checkpoint, for the next start to go on from.
void NetTrainer::end_early(double loss) {
  const bool is_written = write_checkpoint(loss);
  if (leads()) callbacks_.note(stopped_early(options_.common, step_, num_steps(), is_written));
  communicator_->control_group().barrier();  // whoever is lost before it is lost to all
  membership_.interrupted();
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
    whole[layer] = session_.collect(layer, /*with_momentum=*/false).state;
  if (!leads()) return;
  const std::vector<int>& test = task_.dataset.split.test;
  if (!test.empty())
    epoch.test_accuracy = score_net(task_.folder.net, whole, task_.dataset, test, kScoredAtOnce, {}).value;
  write_net_folder(task_.folder, whole, options_.common.output / "model");
}

void NetTrainer::show(int epoch, int step) {
  if (!leads()) return;
  const int frozen_layers = session_.plan().frozen_layers;
  const std::string frozen = frozen_layers > 0 ? fmt::format(", {} layers frozen", frozen_layers) : "";
  const std::string accuracy = !run_.epochs.empty() && run_.epochs.back().test_accuracy
                                   ? fmt::format(", accuracy {:.1f} %", 100 * *run_.epochs.back().test_accuracy)
                                   : "";
  const std::string last = run_.epochs.empty() ? "" : fmt::format(", loss {:.4f}", *run_.epochs.back().loss);
  const double here = static_cast<double>(step_ - first_step_) / (num_steps() - first_step_);
  callbacks_.progress(static_cast<double>(step_) / num_steps(),
                      fmt::format("epoch {} of {}, step {} of {}{}{}{}{}", epoch + 1, options_.num_epochs, step + 1,
                                  num_batches_, frozen, last, accuracy, time_left(steady_now_ns() - begin_ns_, here)));
}

void NetTrainer::write_results() {
  const std::filesystem::path& folder = options_.common.output;
  const DeviceTimes& times = session_.times();
  const std::vector<std::string> texts =
      communicator_->gather(nlohmann::json{{"begin_ns", times.begin_ns}, {"end_ns", times.end_ns}}.dump());
  if (leads()) {
    std::vector<DeviceTimes> measured;
    for (const std::string& text : texts) {
      const auto json = nlohmann::json::parse(text);
      measured.push_back({json["begin_ns"], json["end_ns"]});
    }
    const OperatorRun predicted = simulate_operators(session_.plan(), session_.tasks(), options_.common.plan_source);
    write_file_atomically(folder / "trace.json", chrome_trace(session_.plan(), session_.tasks(), predicted, measured));
    run_.wall_seconds = wall_seconds();
    write_file_atomically(folder / "summary.json", to_json(run_));
  }
  communicator_->control_group().barrier();  // whoever is lost before it is lost to all
}

}  // namespace

void train_net(Membership& membership, const NetTrainOptions& options, const TrainCallbacks& callbacks) {
  const auto round = membership.next_round();
  FROSTPIPE_CHECK(round, "a plan of operators has no spares");
  require_ranks(options.phases.front().plan, round->self);
  NetTrainer(round->self, membership, options, open_net_task(options), callbacks).train();
}

}  // namespace frostpipe
