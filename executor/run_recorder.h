#pragma once
#include <vector>

#include "executor/activation_cache.h"
#include "executor/communicator.h"
#include "executor/device.h"
#include "plan/summary.h"

namespace frostpipe {

/// Keeps what a run did while it runs, and makes the summary of it on rank 0. All ranks call each function at the same point.
class RunRecorder {
 public:
  RunRecorder(Communicator& communicator, ComputeDevice& device, const Model& model, const TrainingPlan& plan);

  /// Before the first step of a phase. `transformation_ns` is what the change took, 0 for the first phase. `cached`: this rank's counts so far.
  void begin_phase(const Phase& phase, Nanoseconds transformation_ns, const CacheCounts& cached);
  /// Median iteration time of the running phase, on the rank that speaks; 0 before its first step. Called by all ranks.
  Nanoseconds median_iteration_ns() const;
  /// `speaks`: this rank's clock counts. Ranks of wholly frozen stages run ahead, so it is one of the last stage's.
  void record_step(const StepRecord& step, double loss_share, bool speaks);
  /// Spans of the running phase; kept for its first 256 steps.
  Trace& trace() { return trace_; }
  void record_event(const char* name, Nanoseconds begin_ns, Nanoseconds end_ns);
  /// After the last step: gathers losses, peaks and timelines; the phases as executed and the summary's measured part.
  /// The result counts on rank 0.
  void finish(const CacheCounts& cached, RunSummary& run, TrainingPlan& executed, Trace& whole_run);

 private:
  struct PhaseRecord {
    Phase phase;
    Nanoseconds transformation_ns = 0;
    std::size_t first_record = 0;  // in steps_
    std::vector<double> found_by_layer;  // CacheCounts::found before the phase, this rank's; from end_phase() on what the phase added
    std::vector<double> peak_bytes;  // per rank, this rank's only until gathered
  };
  void end_phase(const CacheCounts& cached);

  Communicator& communicator_;
  ComputeDevice& device_;
  const Model& model_;
  const TrainingPlan& plan_;
  std::vector<PhaseRecord> phases_;
  std::vector<StepRecord> steps_;
  std::vector<double> loss_shares_;
  std::vector<double> spoken_ns_;  // iteration times where this rank speaks, else 0
  Trace trace_;     // of the running phase
  Trace whole_;     // of all phases
};

}  // namespace frostpipe
