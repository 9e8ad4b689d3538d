#pragma once
#include <optional>
#include <vector>

#include "executor/activation_cache.h"
#include "executor/communicator.h"
#include "executor/device.h"
#include "plan/summary.h"

namespace frostpipe {

/// Keeps what a run did while it runs, and makes the summary of it. All ranks call each function at the same point, but for record_*, trace() and history().
/// Phases and peaks name seats (seats.h).
class RunRecorder {
 public:
  /// `num_seats`: ranks of the plan.
  RunRecorder(ComputeDevice& device, const Model& model, const TrainingPlan& plan, int num_seats);

  /// After the job has formed: who there is to talk to from now on.
  void join(Communicator& communicator, std::vector<int> seats);

  /// Before the first step of a phase. `transformation_ns` is what the change took, 0 for the first phase. `cached`: this rank's counts so far.
  void begin_phase(const Phase& phase, Nanoseconds transformation_ns, const CacheCounts& cached);
  /// Median iteration time of the running phase as the rank that `speaks` has it; 0 before its first step.
  Nanoseconds median_iteration_ns(bool speaks) const;
  /// `speaks`: this rank's figures count. Ranks of wholly frozen stages run ahead, so it is one of the last stage's. The loss is known to all that train.
  void record_step(const StepRecord& step, bool speaks);
  /// Spans of the running phase; kept for its first 256 steps.
  Trace& trace() { return trace_; }
  void record_event(const char* name, Nanoseconds begin_ns, Nanoseconds end_ns);

  /// What was done so far, steps and phases, into `run` and `executed`; on all ranks alike.
  void so_far(const CacheCounts& cached, RunSummary& run, TrainingPlan& executed);
  /// The same from what this rank knows, without asking the others: losses and steps as a rank that trains has them. `num_steps`: up to there.
  void history(int num_steps, const CacheCounts& cached, RunSummary& run, TrainingPlan& executed);
  /// Goes on from so_far() or history(); what was recorded before is forgotten.
  void restore(const RunSummary& run, const TrainingPlan& executed);
  int num_steps() const { return static_cast<int>(steps_.size()); }
  /// Time that the steps from `step` on took, as far as this rank knows.
  Nanoseconds time_since(int step) const;

  /// After the last step: so_far(), and the timelines of all ranks. The result counts on rank 0.
  void finish(const CacheCounts& cached, RunSummary& run, TrainingPlan& executed, Trace& whole_run);

 private:
  struct PhaseRecord {
    Phase phase;
    Nanoseconds transformation_ns = 0;
    std::size_t first_record = 0;        // in steps_
    std::vector<double> found_by_layer;  // CacheCounts::found before the phase, this rank's
  };
  /// A phase that is over.
  struct Past {
    Phase phase;
    PhaseSummary summary;
  };
  Past close(const PhaseRecord& record, std::size_t end, const std::vector<double>& found_by_layer, const std::vector<double>& peaks) const;
  std::vector<Past> past_and_running(const std::vector<double>& found_by_layer, const std::vector<double>& peaks) const;
  std::vector<double> found_in_running_phase(const CacheCounts& cached) const;
  std::vector<double> own_peak() const;
  void agree_on_steps();
  void end_phase(const CacheCounts& cached);
  void keep_spans();

  ComputeDevice& device_;
  const Model& model_;
  const TrainingPlan& plan_;
  int num_seats_;
  Communicator* communicator_ = nullptr;
  std::vector<int> seats_;
  std::vector<Past> past_;
  std::optional<PhaseRecord> running_;
  std::vector<StepRecord> steps_;
  std::size_t num_agreed_ = 0;      // steps whose figures are the speaker's on every rank
  std::vector<bool> spoke_;         // by step that is not agreed on: this rank's figures count
  Trace trace_;     // of the running phase
  Trace whole_;     // of all phases
};

}  // namespace frostpipe
