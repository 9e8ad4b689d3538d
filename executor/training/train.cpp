#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "executor/communication/registration.h"
#include "executor/communication/store_rendezvous.h"
#include "executor/runtime/iteration_graphs.h"
#include "executor/training/freeze_controller.h"
#include "executor/training/policy/largest_file.h"
#include "executor/training/policy/resume_point.h"
#include "executor/training/policy/run_clock.h"
#include "executor/training/trainer.h"
#include "executor/training/training_batches.h"

namespace frostpipe {

namespace {

/// Returns a note if samples are longer or shorter by more than 20 % than those that the plan was made for; else "".
std::string note_on_lengths(const TrainOptions& options, const Dataset& dataset) {
  constexpr double kClearly = 0.2;
  if (!options.plan.workload) return "";
  const double planned = options.plan.workload->tokens, found = mean_tokens(*dataset.samples, dataset.split.train);
  if (std::abs(found - planned) <= kClearly * planned) return "";
  return fmt::format(
      "{}: samples have {:.0f} tokens on average, and those of the plan ({}) {:.0f}: it may not be the best plan, and "
      "its times and memory are not those of this run",
      options.data.string(), found, options.plan.workload->name, planned);
}

}  // namespace

InputsFound check_inputs(const TrainOptions& options) {
  const Nanoseconds begin = steady_now_ns();
  std::shared_ptr<const TrainingTask> training_task = make_training_task(options);
  require_same_model(options.plan, training_task->model(), options.plan_source);
  validate(options.plan, training_task->model(), options.plan_source);
  FreezeController(options.freeze, num_blocks(training_task->model()), 1);
  const std::vector<int>& train = training_task->dataset().split.train;
  const bool goes_on = may_go_on(options);
  InputsFound found{.training_task = training_task,
                    .reading_ns = steady_now_ns() - begin,
                    .num_training_samples = static_cast<int>(train.size()),
                    .longest_tokens = longest_tokens(*training_task->dataset().samples, train),
                    .starts_at_random = goes_on ? std::vector<std::string>{} : training_task->starts_at_random(),
                    .notes = training_task->dataset().notes};
  if (const std::string note = note_on_lengths(options, training_task->dataset()); !note.empty())
    found.notes.push_back(note);
  for (const std::string& note : notes_on_bfloat16(options.device, options.plan.dtype, options.plan.frozen_dtype))
    found.notes.push_back(note);
  if (options.cuda_graphs) {
    for (std::size_t i = 0; i < options.plan.phases.size(); ++i)
      if (const auto why = why_not_captured(options.plan.phases[i], options.dropout))
        found.notes.push_back(fmt::format("--cuda-graphs: phase {} runs without them: {}", i, *why));
  }
  if (!options.emulation) {  // a rehearsal saves no model
    LargestFile largest = largest_file(options, training_task->model());
    found.largest_file = std::move(largest.path);
    found.largest_file_bytes = largest.bytes;
    for (const Layer& layer : training_task->model().layers)
      found.weights_bytes += Bytes{sizeof(float)} * layer.parameter_count;
  }
  return found;
}

std::vector<std::int64_t> largest_micro_batches(const TrainOptions& options, const InputsFound& inputs) {
  const TrainingPlan& plan = options.plan;
  TrainingBatches batches(options, inputs.training_task->dataset(), std::max(1, options.num_nodes));
  std::vector<std::int64_t> largest(plan.phases.size(), 0);
  for (int step = 0; step < plan.num_steps; ++step) {
    const MiniBatch batch = batches.at(step);
    const int index = phase_at(plan, step);
    const Phase& phase = plan.phases[index];
    for (const auto& [begin, end] : cut(batch, phase.layout.data_parallel_size, phase.num_micro_batches)) {
      const std::int64_t tokens =
          std::accumulate(batch.lengths.begin() + begin, batch.lengths.begin() + end, std::int64_t{0});
      largest[index] = std::max(largest[index], tokens);
    }
  }
  return largest;
}

bool executor_is_linked() { return true; }

void fail_on_all_ranks(const Membership& membership, const std::string& reason) {
  const std::optional<RankEnvironment>& self = membership.started_by_others();
  if (!self) throw InvalidInput(reason);
  register_failure(*self, reason);
}

void train(Membership& membership, const TrainOptions& options, const InputsFound& inputs,
           const TrainCallbacks& callbacks) {
  FROSTPIPE_CHECK(inputs.training_task, "a rank has checked its inputs");
  std::optional<StoreRendezvous> store_rendezvous;
  if (membership.started_by_others()) store_rendezvous.emplace(*membership.next_round(), membership.max_restarts());
  // A spare makes its device only now, since it may take over the lost rank's GPU.
  std::optional<RendezvousInfo> first = store_rendezvous ? store_rendezvous->next_round() : membership.next_round();
  if (!first) return;
  std::optional<Trainer> trainer;
  try {
    trainer.emplace(membership, store_rendezvous ? &*store_rendezvous : nullptr, *first, options, inputs, callbacks);
  } catch (const InvalidInput& error) {
    fail_on_all_ranks(membership, error.what());
  } catch (const RuntimeFailure& error) {  // this host lacks the device
    fail_on_all_ranks(membership, error.what());
  }
  trainer->train(std::move(*first));
  if (store_rendezvous) store_rendezvous->finish();
}

}  // namespace frostpipe
