#include "executor/training/run_results.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "executor/checkpoint/checkpoint.h"
#include "executor/checkpoint/checkpoint_files.h"
#include "executor/training/policy/executed_run.h"
#include "executor/training/policy/resume_point.h"
#include "plan/plan_paths.h"

namespace frostpipe {
namespace {

/// Fills in the fields of the summary that the recorder does not know.
void describe(const RunContext& run, int world_size, double wall_seconds, TrainingState& state) {
  const TrainOptions& options = run.options;
  RunSummary& summary = state.summary;
  summary.name = options.name.empty() ? run_name(options.plan.method) : options.name;
  summary.method = to_string(options.plan.method);
  summary.freeze = to_string(options.freeze.rule);
  summary.seed = options.seed;
  summary.is_emulated = options.emulation.has_value();
  summary.world_size = world_size;
  summary.threads_per_rank = run.threads_per_rank;
  summary.epochs = static_cast<double>(run.num_steps) / run.steps_per_epoch;
  summary.num_steps = run.num_steps;
  summary.global_batch_size = options.plan.global_batch_size;
  summary.num_train_samples = static_cast<int>(run.dataset.split.train.size());
  summary.num_test_samples = static_cast<int>(run.dataset.split.test.size());
  summary.wall_seconds = wall_seconds;
  summary.samples_per_second =
      samples_trained(run.num_steps, run.steps_per_epoch, summary.num_train_samples, summary.global_batch_size) /
      wall_seconds;
  summary.evaluation_seconds = state.clock.evaluation_seconds();
  summary.label_names = run.dataset.label_names;
}

/// Returns a text on what is kept of a run whose results cannot be written.
std::string kept_of(const TrainOptions& options, bool model_is_saved) {
  if (model_is_saved)
    return fmt::format("the trained model is saved in {}, but not all figures of the run",
                       (options.output / "model").string());
  const std::vector<std::filesystem::path> checkpoints = checkpoints_in(checkpoints_folder(options));
  if (checkpoints.empty()) return "the trained model is lost: the run has written no checkpoint (--checkpoint-every)";
  return fmt::format(
      "the trained model is not saved, but {} is kept: make room, and the same command{} goes on from there",
      checkpoints.front().string(), options.resume == "auto" ? "" : " with --resume auto");
}

}  // namespace

void write_results(const RunContext& run, RendezvousRound& round, TrainingState& state, double wall_seconds) {
  TrainingPlan executed = run.options.plan;
  executed.num_steps = run.num_steps;
  Trace whole_run;
  state.recorder.finish(round.cache_counts(), state.summary, executed, whole_run);
  fit_world(executed);
  describe(run, executed.world_size, wall_seconds, state);
  const std::filesystem::path& folder = run.options.output;
  const std::filesystem::path executed_path = folder / "executed_plan.json";
  executed.provenance = provenance_for(executed.provenance, run.options.plan_source, executed_path.string());
  if (round.is_first()) {  // unfinished files are left if an earlier rank 0 was lost at this point
    for (const std::filesystem::path& part : {folder, folder / "model"}) remove_unfinished_files(part);
  }
  bool model_is_saved = false;
  try {
    round.session().save(state.embeddings_are_tied, folder / "model");
    if (!round.is_first()) return;
    model_is_saved = std::filesystem::exists(folder / "model");  // a rehearsal saves none
    run.training_task->complete(executed, state.summary, whole_run);
    write_file_atomically(executed_path, to_json(executed));
    write_file_atomically(folder / "trace.json", to_chrome_trace(whole_run));
    if (model_is_saved) synchronize_folder(folder / "model");
    synchronize_folder(folder);
    write_file_atomically(folder / "summary.json", to_json(state.summary));
  } catch (const PeerLost&) {
    throw;  // Trainer::finish() is then repeated without that rank
  } catch (const RuntimeFailure& error) {
    throw RuntimeFailure(fmt::format("{}; {}", error.what(), kept_of(run.options, model_is_saved)));
  }
}

}  // namespace frostpipe
