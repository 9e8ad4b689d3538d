#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/trace.h"

namespace frostpipe {

/// Figures of one iteration; names as in the glossary.
struct IterationSummary {
  Nanoseconds makespan_ns = 0;           // last end minus first start of one iteration alone
  Nanoseconds iteration_ns = 0;          // period of the body
  Nanoseconds longest_rank_span_ns = 0;  // largest (last end - first start) of one rank's compute
  double bubble_overhead = 0;            // idle / ideal, ideal = busy compute: (p - 1) / m for GPipe and 1F1B
  double bubble_fraction = 0;            // idle / (ranks x makespan): (p - 1) / (m + p - 1) there
  std::vector<Nanoseconds> busy_ns;      // compute (F B I W RECOMPUTE) per rank
  std::vector<double> peak_in_flight;    // per pipeline rank
  bool operator==(const IterationSummary&) const = default;
};

/// Of step `step` of a trace; `iteration_ns` is set to the makespan where the trace holds only one step, else to the
/// mean distance between the last and the first recorded step's ends.
IterationSummary summarize(const Trace& trace, int step, const Schedule& schedule);

/// One phase of a run as it was.
struct PhaseSummary {
  int from_step = 0;
  int num_steps = 0;
  int frozen_blocks = 0;  // whole blocks
  int first_trainable_layer = 0;
  int stages = 1;
  int replicas = 1;
  int tensor_ranks = 1;
  /// Of an operator plan: the devices that share its operators, which have no stages and replicas. 0: of a pipeline.
  int devices = 0;
  int num_micro_batches = 1;
  std::string schedule;
  std::string partition;                       // "[0,5) [5,14)"
  int tokens = 0;                              // median over the phase's mini-batches of their samples' mean length
  Nanoseconds predicted_iteration_ns = 0;      // 0 until `compare` has filled it
  Nanoseconds measured_iteration_ns = 0;       // median over the phase's steps
  Nanoseconds measured_iteration_low_ns = 0;   // 10th percentile
  Nanoseconds measured_iteration_high_ns = 0;  // 90th percentile
  Nanoseconds transformation_ns = 0;           // of the change into the phase, 0 for the first
  Nanoseconds predicted_transformation_ns = 0;
  double samples_per_second = 0;                   // over the phase's steps, transformation excluded
  std::vector<Bytes> predicted_peak_memory_bytes;  // per rank
  std::vector<Bytes> measured_peak_memory_bytes;   // per rank
  bool cache = false;                              // activations at the frozen boundary were cached
  double cache_hit_fraction = 0;                   // of the samples, found at the boundary
  double cache_base_fraction = 0;                  // of the samples, found at an earlier boundary
  Trace predicted_timeline;                        // one iteration
  Trace measured_timeline;                         // the step whose time is the median
  bool operator==(const PhaseSummary&) const = default;
};

/// Stages of all pipeline ranks together; `stages` are the ranks.
int num_stages(const PhaseSummary& phase);

struct StepRecord {
  int step = 0;
  double loss = 0;  // mean over the samples of the mini-batch
  double learning_rate = 0;
  int samples = 0;
  int tokens = 0;
  Nanoseconds iteration_ns = 0;
  bool operator==(const StepRecord&) const = default;
};

/// `phase`'s figures of its steps: tokens, iteration times and samples per second. `steps`: those that are known, at
/// least one.
void measure(PhaseSummary& phase, std::span<const StepRecord> steps);

/// A step as one line of JSON, keys as in RunSummary's steps; and back: nothing if the text is anything else.
std::string to_json_line(const StepRecord& step);
std::optional<StepRecord> step_from_json_line(std::string_view line);

struct NamedValue {
  std::string name;
  double value = 0;
  bool operator==(const NamedValue&) const = default;
};

struct EvaluationRecord {
  int step = 0;         // after this many steps
  double accuracy = 0;  // the run's test metric
  bool operator==(const EvaluationRecord&) const = default;
};

/// What was weighed when more layers froze.
struct Decision {
  int step = 0;
  int frozen_blocks = 0;
  std::string explanation;  // a table, for people
  bool operator==(const Decision&) const = default;
};

/// A return to an earlier step of the run: after a loss, of a run that was interrupted, or after a freeze that cost too
/// much accuracy.
struct Recovery {
  int step = 0;                   // training went on with this step
  int lost_steps = 0;             // done after it before, and done again
  int world_size = 1;             // from then on
  std::string cause;              // "rank 1 (process 7) was killed by signal 9 (Killed)"
  std::string source;             // "the survivors' memory", "checkpoint step-00000040", "the beginning"
  Nanoseconds detection_ns = 0;   // from the last sign of life to knowing
  Nanoseconds rendezvous_ns = 0;  // from then until all ranks were connected again
  Nanoseconds restoring_ns = 0;   // layers, figures and layout
  Nanoseconds lost_work_ns = 0;   // that the lost steps had taken; 0 where nobody knows
  std::string choice;             // what was weighed between rerouting and a new layout; empty where nothing was
  bool operator==(const Recovery&) const = default;
};

/// The part of a summary that only runs of nets by operator plans have. The blocks that freeze are layers there.
struct NetSummary {
  std::string net;
  std::vector<std::string> device_classes;  // by rank
  bool operator==(const NetSummary&) const = default;
};

/// One training run as it was: what `train` writes.
struct RunSummary {
  std::string name;  // data_parallel, static_pipeline, elastic, or the user's
  std::string method;
  std::string freeze;  // the rule that decided
  std::uint64_t seed = 0;
  int world_size = 1;
  int threads_per_rank = 1;  // of the plan, or of train --threads-per-rank
  double epochs = 0;         // num_steps as passes over the training samples; the last may be a part of one
  int num_steps = 0;
  int global_batch_size = 1;
  int num_train_samples = 0;
  int num_test_samples = 0;
  double samples_per_second =
      0;                    // training samples / wall time of the training loop, transformations and decisions included
  double wall_seconds = 0;  // of the training loop, evaluation left out
  double start_seconds = 0;  // loading, process groups
  double evaluation_seconds = 0;
  std::string cache_note;                // what the cache could not do, empty if all went well
  std::string test_metric = "accuracy";  // what test_accuracy is: accuracy, F1, next-token accuracy
  double test_accuracy = 0;
  double test_accuracy_standard_error = 0;  // sqrt(a (1 - a) / n); of F1 over the questions
  std::vector<NamedValue> test_others;      // further figures of the same test: exact match, loss, perplexity
  std::vector<PhaseSummary> phases;
  std::vector<Decision> decisions;  // of re-planning
  std::vector<Recovery> recoveries;
  std::vector<StepRecord> steps;
  std::vector<EvaluationRecord> evaluations;
  std::vector<std::string> label_names;
  std::vector<int> test_items;  // of classification: sample indices in the data file
  std::vector<int> test_labels;
  std::vector<int> test_predictions;  // paired with test_labels
  std::optional<NetSummary> net;
  bool operator==(const RunSummary&) const = default;
};

/// Whether anything was frozen, in any of its phases.
bool freezes(const RunSummary& run);

/// Envelope "frostpipe.run". Reading refuses "frostpipe.net_run", which runs of nets were written as before they had
/// this summary.
std::string to_json(const RunSummary& run);
RunSummary run_from_json(std::string_view json, std::string_view source);

}  // namespace frostpipe
