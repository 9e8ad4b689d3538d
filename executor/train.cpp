#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "executor/data_shards.h"
#include "executor/dataset.h"
#include "executor/execute.h"
#include "executor/freeze_controller.h"
#include "executor/node_cache.h"
#include "executor/rank_session.h"
#include "executor/run_recorder.h"
#include "executor/subject.h"
#include "plan/memory.h"
#include "profiles/error.h"
#include "profiles/files.h"

namespace frostpipe {
namespace {

Nanoseconds now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

/// Linear warm-up over the first steps, then linear decay to 0 at the end; a function of the step alone, so that no change of
/// layout restarts it.
double learning_rate_at(const TrainOptions& options, int step, int num_steps) {
  const int warm_up = std::max(1, static_cast<int>(std::ceil(options.learning_rate_warm_up * num_steps)));
  if (step < warm_up) return options.learning_rate * (step + 1) / warm_up;
  return options.learning_rate * (num_steps - step) / std::max(1, num_steps - warm_up);
}

/// What a run reads, checked against its plan.
std::unique_ptr<Subject> load_subject(const TrainOptions& options, int rank) {
  std::unique_ptr<Subject> subject = make_subject(options, rank);
  require_same_model(options.plan, subject->model(), options.plan_source);
  for (const Phase& phase : options.plan.phases)
    if (phase.layout.tensor_parallel_size > 1)
      throw InvalidInput(options.plan_source + ": layout.tensor_parallel_size", "must be 1 to train: this version has no tensor parallelism but in the simulator",
                         std::to_string(phase.layout.tensor_parallel_size));
  validate(options.plan, subject->model(), options.plan_source);
  return subject;
}

/// Phases travel as a plan that starts with them: there is one format.
std::string to_text(const TrainingPlan& plan, std::vector<Phase> phases, int from_step) {
  for (Phase& phase : phases) phase.from_step -= from_step;
  TrainingPlan carrier = plan;
  carrier.phases = std::move(phases);
  return to_json(carrier);
}

std::vector<Phase> phases_from_text(const std::string& text, int from_step) {
  std::vector<Phase> phases = plan_from_json(text, "decision of rank 0").phases;
  for (Phase& phase : phases) phase.from_step += from_step;
  return phases;
}

/// The same layout with more layers frozen; the cache holds what it held.
Phase with_more_frozen(Phase phase, int first_trainable_layer, int from_step) {
  phase.first_trainable_layer = first_trainable_layer;
  phase.from_step = from_step;
  return phase;
}

class Run {
 public:
  Run(const RankEnvironment& self, const TrainOptions& options, const Replan& replan, const Progress& progress)
      : options_(options), replan_(replan), progress_(progress), started_ns_(now_ns()), subject_(load_subject(options, self.rank)) {
    if (self.world_size != options.plan.world_size) {
      throw InvalidInput(options.plan_source + ": world_size", fmt::format("must equal the number of ranks started ({})", self.world_size), std::to_string(options.plan.world_size));
    }
    steps_per_epoch_ = (static_cast<int>(dataset_.split.train.size()) + options.plan.global_batch_size - 1) / options.plan.global_batch_size;
    num_steps_ = steps_per_epoch_ * options.epochs;
    device_ = options.emulation ? make_emulated_device(options.emulation->shrink) : make_device(options.device, self.local_rank);
    communicator_ = Communicator::connect(self, *device_);
    if (options.emulation && options.emulation->links) communicator_->pace(*options.cluster, options.emulation->shrink);
    nodes_ = nodes_of_ranks(*communicator_, options.num_nodes);
    shards_ = data_shards(dataset_.split.train, *std::max_element(nodes_.begin(), nodes_.end()) + 1);
    if (options.plan.memory_limited && options.cluster && self.rank < static_cast<int>(options.cluster->devices.size())) {
      device_->set_memory_limit(options.cluster->devices[self.rank].memory_limit_bytes, fmt::format("rank {}", self.rank));
    }
  }

  RunSummary train() {
    controller_.emplace(options_.freeze, num_blocks(model_), num_steps_);
    const at::TensorOptions compute = at::TensorOptions().dtype(scalar_type_of(options_.plan.dtype)).device(device_->torch_device());
    open_cache(compute);
    factory_ = subject_->make_factory(compute, cache_ ? &cache_->view() : nullptr);
    session_.emplace(model_, *factory_, *communicator_, *device_, options_.plan.optimizer, options_.plan.dtype);
    recorder_.emplace(*communicator_, *device_, model_, options_.plan);
    session_->start(options_.plan.phases.front(), [&](int layer, LayerState& state) { subject_->fill(layer, state); });
    recorder_->begin_phase(session_->phase(), 0, {});
    communicator_->everyone().barrier();
    summary_.start_seconds = static_cast<double>(now_ns() - started_ns_) * 1e-9;

    const Nanoseconds begin = now_ns();
    for (int step = 0; step < num_steps_; ++step) {
      change_phase_before(step);
      run_step(step);
      if ((step + 1) % steps_per_epoch_ == 0) evaluate_after(step + 1);
    }
    communicator_->everyone().barrier();
    const Nanoseconds wall = now_ns() - begin - evaluation_ns_;
    finish(wall);
    return std::move(summary_);
  }

 private:
  bool is_first() const { return communicator_->rank() == 0; }

  void open_cache(const at::TensorOptions& compute) {
    CacheLimits limits = options_.plan.cache;
    if (options_.emulation) {
      limits.memory_bytes /= options_.emulation->shrink;
      limits.disk_bytes /= options_.emulation->shrink;
    }
    const bool decides_later = options_.freeze.rule != FreezePolicy::Rule::plan;
    const auto caches = [](const Phase& phase) { return phase.cache.on; };
    const bool planned = std::any_of(options_.plan.phases.begin(), options_.plan.phases.end(), caches);
    if (limits.memory_bytes + limits.disk_bytes == 0 || !(planned || decides_later)) return;
    cache_ = std::make_unique<NodeCache>(NodeCacheOptions{.limits = limits,
                                                          .disk_folder = options_.cache_folder,
                                                          .node = nodes_[communicator_->rank()],
                                                          .samples = shards_[nodes_[communicator_->rank()]],
                                                          .hidden_size = subject_->hidden_size(),
                                                          .compute = compute},
                                         dataset_.encoded, *communicator_);
    if (is_first() && !cache_->note().empty()) progress_(0, "cache: " + cache_->note());
    summary_.cache_note = cache_->note();
  }

  CacheCounts cached() const { return cache_ ? cache_->view().counts() : CacheCounts{}; }

  /// Samples of the step's epoch in order; this epoch's and the next one's are kept.
  std::span<const int> order_of(int epoch) {
    while (!orders_.empty() && orders_.begin()->first < epoch - 1) orders_.erase(orders_.begin());
    const auto [found, is_new] = orders_.try_emplace(epoch);
    if (is_new) {
      found->second = sharded_epoch_order(shards_, options_.plan.global_batch_size, options_.seed, epoch);
    }
    return found->second;
  }

  MiniBatch batch_of(int step) {
    return mini_batch(dataset_.encoded, order_of(step / steps_per_epoch_), options_.plan.global_batch_size, step % steps_per_epoch_);
  }

  /// What follows the current phase when the rule has frozen more; the same on all ranks.
  std::vector<Phase> phases_after_decision(int first_trainable, int step) {
    std::string text;
    const Nanoseconds measured_ns = recorder_->median_iteration_ns();
    if (is_first()) {
      const Phase& current = session_->phase();
      std::vector<Phase> phases;
      if (replan_) {
        ReplanAnswer answer =
            replan_({.current = current, .first_trainable_layer = first_trainable, .from_step = step, .measured_iteration_ns = measured_ns});
        phases = std::move(answer.phases);
        summary_.decisions.push_back({step, frozen_blocks(model_, first_trainable), std::move(answer.explanation)});
      }
      if (phases.empty()) phases = {with_more_frozen(current, first_trainable, step)};
      text = to_text(options_.plan, std::move(phases), step);
    }
    return phases_from_text(communicator_->broadcast(text, 0), step);
  }

  /// The phase to run from `step` on, if another one begins there; the same on all ranks.
  std::optional<Phase> next_phase(int step) {
    if (options_.freeze.rule == FreezePolicy::Rule::plan) {
      const Phase& phase = options_.plan.phases[phase_at(options_.plan, step)];
      return step > 0 && phase.from_step == step ? std::optional(phase) : std::nullopt;
    }
    const int frozen = frozen_blocks(model_, session_->phase().first_trainable_layer);
    if (controller_->decides_before(step, frozen)) {
      const Nanoseconds begin = now_ns();
      const int decided = controller_->decide(step, frozen, *communicator_);
      if (decided != frozen) recorder_->record_event("freeze decision", begin, now_ns());
      if (decided != frozen) upcoming_ = phases_after_decision(first_trainable_layer(model_, decided), step);
    }
    if (upcoming_.empty() || upcoming_.front().from_step > step) return std::nullopt;
    Phase phase = std::move(upcoming_.front());
    upcoming_.erase(upcoming_.begin());
    return phase;
  }

  void change_phase_before(int step) {
    const Nanoseconds begin = now_ns();
    const std::optional<Phase> phase = next_phase(step);
    if (!phase) return;
    session_->enter(*phase);
    if (phase->cache.on) cache_->set_boundary(phase->first_trainable_layer, session_->layers(), session_->holders());
    communicator_->everyone().barrier();
    const Nanoseconds end = now_ns();
    recorder_->record_event("transformation", begin, end);
    recorder_->begin_phase(*phase, end - begin, cached());
    if (is_first()) {
      progress_(static_cast<double>(step) / num_steps_,
                fmt::format("step {}: {} layers frozen, {} stage{} x {} replica{}, m = {}{} (changed in {})", step,
                            frozen_blocks(model_, phase->first_trainable_layer), phase->layout.pipeline_parallel_size,
                            phase->layout.pipeline_parallel_size == 1 ? "" : "s", phase->layout.data_parallel_size,
                            phase->layout.data_parallel_size == 1 ? "" : "s", phase->num_micro_batches,
                            phase->cache.on ? fmt::format(", cache: {:.0f} % hits expected", 100 * fraction_at(phase->cache.found, phase->first_trainable_layer)) : "",
                            format_duration(end - begin)));
    }
    last_step_end_ns_ = now_ns();
  }

  void run_step(int step) {
    if (last_step_end_ns_ == 0) last_step_end_ns_ = now_ns();
    const MiniBatch batch = batch_of(step);
    const std::optional<MiniBatch> next = step + 1 < num_steps_ ? std::optional(batch_of(step + 1)) : std::nullopt;
    const UpdateRule rule{.optimizer = options_.plan.optimizer,
                          .learning_rate = learning_rate_at(options_, step, num_steps_),
                          .weight_decay = options_.weight_decay,
                          .step = step + 1};
    IterationResult result;
    if (StageRunner* const runner = session_->runner()) {
      result = runner->run_iteration(batch, next ? &*next : nullptr, step, rule, options_.gradient_clip, recorder_->trace());
    }
    controller_->record(result.block_square_sums, session_->speaks());
    const Nanoseconds end = now_ns();
    recorder_->record_step({.step = step, .loss = 0, .learning_rate = rule.learning_rate, .samples = static_cast<int>(batch.samples.size()),
                            .tokens = batch.tokens, .iteration_ns = end - last_step_end_ns_},
                           result.loss, session_->speaks());
    last_step_end_ns_ = end;
    recent_loss_ += result.loss;
    ++recent_steps_;
    if ((step + 1) % std::max(1, num_steps_ / 40) == 0) report(step);
  }

  /// The loss is known where the last stage is: shown is that of one replica's samples, as it was posted last. Nobody waits for it, so that ranks of
  /// frozen stages go on running ahead.
  void report(int step) {
    const double replicas = session_->phase().layout.data_parallel_size;
    if (session_->speaks() && !options_.emulation) communicator_->post(fmt::format(", loss {:.3f}", recent_loss_ * replicas / recent_steps_));
    recent_loss_ = 0;
    recent_steps_ = 0;
    if (is_first()) progress_(static_cast<double>(step + 1) / num_steps_, fmt::format("step {}/{}{}", step + 1, num_steps_, communicator_->posted()));
  }

  void evaluate_after(int steps) {
    const Nanoseconds begin = now_ns();
    const std::vector<int>& items = dataset_.test_by_length;
    if (items.empty()) return;
    std::vector<double> found(items.size(), 0.0);  // 1 + prediction, from the one rank that knows it
    if (StageRunner* const runner = session_->runner(); runner) {
      const std::vector<int> predictions = runner->predict(dataset_.encoded, items, 64);
      for (std::size_t i = 0; i < items.size(); ++i) found[i] = predictions[i] + 1;
    }
    found = communicator_->sum(std::move(found));
    summary_.test_items = items;
    summary_.test_labels.clear();
    summary_.test_predictions.clear();
    int correct = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      summary_.test_labels.push_back(dataset_.encoded.labels[items[i]]);
      summary_.test_predictions.push_back(static_cast<int>(found[i]) - 1);
      if (summary_.test_labels.back() == summary_.test_predictions.back()) ++correct;
    }
    const auto count = static_cast<double>(std::max<std::size_t>(1, items.size()));
    summary_.test_accuracy = correct / count;
    summary_.test_accuracy_standard_error = std::sqrt(summary_.test_accuracy * (1 - summary_.test_accuracy) / count);
    summary_.evaluations.push_back({steps, summary_.test_accuracy});
    communicator_->everyone().barrier();
    const Nanoseconds end = now_ns();
    recorder_->record_event("evaluation", begin, end);
    evaluation_ns_ += end - begin;
    last_step_end_ns_ = end;
    if (is_first()) progress_(static_cast<double>(steps) / num_steps_, fmt::format("after epoch {}: test accuracy {:.1f} %", steps / steps_per_epoch_, 100 * summary_.test_accuracy));
  }

  void finish(Nanoseconds wall) {
    TrainingPlan executed = options_.plan;
    executed.num_steps = num_steps_;
    Trace whole_run;
    recorder_->finish(cached(), summary_, executed, whole_run);
    summary_.name = options_.name.empty() ? run_name(options_.plan.method) : options_.name;
    summary_.method = options_.plan.method;
    static constexpr const char* kRules[] = {"plan", "paper", "cap", "fixed", "adaptive"};
    summary_.freeze = kRules[static_cast<int>(options_.freeze.rule)];
    summary_.seed = options_.seed;
    summary_.world_size = communicator_->world_size();
    summary_.epochs = options_.epochs;
    summary_.num_steps = num_steps_;
    summary_.global_batch_size = options_.plan.global_batch_size;
    summary_.num_train_samples = static_cast<int>(dataset_.split.train.size());
    summary_.num_test_samples = static_cast<int>(dataset_.split.test.size());
    summary_.wall_seconds = static_cast<double>(wall) * 1e-9;
    summary_.samples_per_second = summary_.num_train_samples * static_cast<double>(options_.epochs) / summary_.wall_seconds;
    summary_.evaluation_seconds = static_cast<double>(evaluation_ns_) * 1e-9;
    summary_.label_names = dataset_.text.label_names;
    subject_->save(session_->layers(), session_->holders(), *communicator_, options_.output / "model");
    if (!is_first()) return;
    write_file_atomically(options_.output / "executed_plan.json", to_json(executed));
    write_file_atomically(options_.output / "trace.json", to_chrome_trace(whole_run));
    write_file_atomically(options_.output / "summary.json", to_json(summary_));
  }

  const TrainOptions& options_;
  const Replan& replan_;
  const Progress& progress_;
  Nanoseconds started_ns_;
  std::unique_ptr<Subject> subject_;
  const Dataset& dataset_ = subject_->dataset();
  const Model& model_ = subject_->model();
  int steps_per_epoch_ = 0, num_steps_ = 0;
  std::unique_ptr<ComputeDevice> device_;
  std::unique_ptr<Communicator> communicator_;
  std::optional<FreezeController> controller_;
  std::optional<RunRecorder> recorder_;
  std::unique_ptr<NodeCache> cache_;
  std::unique_ptr<StageFactory> factory_;
  std::optional<RankSession> session_;
  std::vector<Phase> upcoming_;               // decided, not begun
  std::vector<int> nodes_;                    // by rank
  std::vector<std::vector<int>> shards_;      // of the training data, by node
  std::map<int, std::vector<int>> orders_;    // by epoch
  RunSummary summary_;
  Nanoseconds evaluation_ns_ = 0;
  Nanoseconds last_step_end_ns_ = 0;
  double recent_loss_ = 0;
  int recent_steps_ = 0;
};

}  // namespace

RunSummary train(const RankEnvironment& self, const TrainOptions& options, const Replan& replan, const Progress& progress) {
  Run run(self, options, replan, progress);
  return run.train();
}

void check_inputs(const TrainOptions& options) {
  const std::unique_ptr<Subject> subject = load_subject(options, 0);
  FreezeController(options.freeze, num_blocks(subject->model()), 1);
}

int num_training_samples(const DataSource& source) {
  TextData text;
  Split split;
  read_and_split(source, text, split);
  return static_cast<int>(split.train.size());
}

}  // namespace frostpipe
