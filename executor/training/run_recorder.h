#pragma once
#include <deque>
#include <filesystem>
#include <optional>
#include <vector>

#include "executor/cache/activation_cache.h"
#include "executor/communication/communicator.h"
#include "executor/device/device.h"
#include "executor/run_folder/step_log.h"
#include "plan/summary.h"

namespace frostpipe {

/// Records a run in progress, and makes its summary. All ranks must call each function at the same point, except
/// record_*, trace(), history() and time_since(). Phases and peaks name logical ranks (logical_ranks.h).
///
/// Figures of steps are written to a file (step_log.h), so that memory and snapshots do not grow with the number of
/// steps. While a phase runs, its figures are those of its last kRememberedSteps steps; finish() computes the figures
/// of all phases from the file.
class RunRecorder {
 public:
  static constexpr int kRememberedSteps = 1024;
  /// The default of `traced_steps`, the number of first steps of a phase whose spans are kept. Runs with many spans per
  /// step pass a smaller number.
  static constexpr int kTracedSteps = 256;

  /// `num_logical_ranks` is the number of ranks in the plan; `folder` is the run's.
  RunRecorder(ComputeDevice& device, const Model& model, int num_logical_ranks, const std::filesystem::path& folder,
              int traced_steps = kTracedSteps);

  /// Sets the ranks to communicate with, after a rendezvous.
  void join(Communicator& communicator, std::vector<int> logical_ranks);

  /// Call it before the first step of a phase. `transformation_ns` is the duration of the change, 0 for the first
  /// phase. `cached` has this rank's counts so far.
  void begin_phase(const Phase& phase, Nanoseconds transformation_ns, const CacheCounts& cached);
  /// Call it after the last step of a phase and before its layers move, so that memory for moving does not count for
  /// the phase.
  void end_steps();
  /// Returns the median iteration time of the current phase on the rank that reports figures; 0 before its first step.
  Nanoseconds median_iteration_ns() const;
  /// Records a step. `reports_figures` says that this rank's figures count and are written to the file. That rank is
  /// one of the last stage, because ranks of completely frozen stages run ahead. All ranks that train know the loss.
  /// Returns false if the figures cannot be written.
  bool record_step(const StepRecord& step, bool reports_figures);
  /// Returns the spans of the running phase, to which the caller adds those of each step. record_step() drops those of
  /// steps after the first `traced_steps`.
  Trace& trace() { return trace_; }
  /// Records an event on this rank, such as "evaluation".
  void record_event(const char* name, Nanoseconds begin_ns, Nanoseconds end_ns);

  /// Sets the phases and the last step of `run`, and the phases of `executed`, as they are so far, the same on all
  /// ranks.
  void so_far(const CacheCounts& cached, RunSummary& run, TrainingPlan& executed);
  /// Does the same for the first `num_steps` steps from this rank's knowledge, without communication. Only ranks that
  /// train know losses.
  void history(int num_steps, const CacheCounts& cached, RunSummary& run, TrainingPlan& executed) const;
  /// Returns this rank's peak in the current phase, by logical rank, if the phase began at that step; all other values
  /// are 0.
  std::vector<double> own_peak_since(int from_step) const;
  /// Restores the state that so_far() or history() has returned, before step `step`. It replaces what this rank has
  /// recorded, except events and spans of earlier steps.
  void restore(const RunSummary& run, const TrainingPlan& executed, int step);
  int num_steps() const { return num_steps_; }
  /// Returns the time that the steps from `step` on took, as far as this rank knows; steps that it no longer remembers
  /// count with the mean of the others.
  Nanoseconds time_since(int step) const;
  StepLog& log() { return log_; }

  /// Call it after the last step. Does what so_far() does, and collects the timelines of all ranks. The result is
  /// complete on rank 0.
  void finish(const CacheCounts& cached, RunSummary& run, TrainingPlan& executed, Trace& whole_run);

 private:
  struct PhaseRecord {
    Phase phase;
    Nanoseconds transformation_ns = 0;
    int first_step = 0;
    std::vector<double> found_by_layer;  // this rank's CacheCounts::found before the phase
    bool reported_figures = false;       // this rank's figures of its steps count
    std::optional<Bytes> peak;           // of its steps, once they have ended
  };
  /// A phase that has ended.
  struct Past {
    Phase phase;
    PhaseSummary summary;
  };
  std::vector<StepRecord> remembered_of(const PhaseRecord& record, int end_step) const;
  Past close(const PhaseRecord& record, int end_step, const std::vector<double>& found_by_layer,
             const std::vector<double>& peaks) const;
  std::vector<Past> past_and_running(int end_step, const std::vector<double>& found_by_layer,
                                     const std::vector<double>& peaks) const;
  std::vector<Past> agreed_past_and_running(const CacheCounts& cached);
  std::vector<double> found_in_running_phase(const CacheCounts& cached) const;
  std::vector<double> own_peak() const;
  void write(const std::vector<Past>& pasts, int end_step, RunSummary& run, TrainingPlan& executed) const;
  void end_phase(const CacheCounts& cached);
  void keep_spans();
  std::vector<StepRecord> steps_on_first_rank() const;

  ComputeDevice& device_;
  const Model& model_;
  int num_logical_ranks_, traced_steps_;
  Communicator* communicator_ = nullptr;
  std::vector<int> logical_ranks_;
  std::vector<Past> past_;
  std::optional<PhaseRecord> running_;
  int num_steps_ = 0;            // completed steps
  std::deque<StepRecord> last_;  // the last kRememberedSteps of these on this rank; after restore() only the last one,
                                 // which all ranks have
  StepLog log_;
  Trace trace_;  // spans of the current phase
  Trace whole_;  // spans of earlier phases, and events
};

}  // namespace frostpipe
