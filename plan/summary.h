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

/// Figures of one iteration, named as in the glossary.
struct IterationSummary {
  Nanoseconds makespan_ns = 0;           // last end minus first start of one iteration alone
  Nanoseconds iteration_ns = 0;          // period of the body
  Nanoseconds longest_rank_span_ns = 0;  // largest (last end - first start) of one rank's compute
  double bubble_overhead = 0;            // idle / busy: (p - 1) / m for GPipe and 1F1B
  double bubble_fraction = 0;            // idle / (ranks x makespan): (p - 1) / (m + p - 1) for GPipe and 1F1B
  std::vector<Nanoseconds> busy_ns;      // compute (F B I W RECOMPUTE) per rank
  std::vector<double> peak_in_flight;    // per pipeline rank
  bool operator==(const IterationSummary&) const = default;
};

/// Summarizes step `step` of a trace. `iteration_ns` is the makespan if the trace holds only one step, else the mean
/// distance between the ends of successive steps. Throws InvalidInput if the trace has no spans of the step.
IterationSummary summarize(const Trace& trace, int step, const Schedule& schedule);

/// One phase of a finished run.
struct PhaseSummary {
  int from_step = 0;
  int num_steps = 0;
  int frozen_blocks = 0;  // whole blocks
  int first_trainable_layer = 0;
  int stages = 1;
  int replicas = 1;
  int tensor_ranks = 1;
  /// Number of devices that share the operators of an operator plan, which has no stages and replicas. 0 for a
  /// pipeline.
  int devices = 0;
  int num_micro_batches = 1;
  std::string schedule;
  std::string partition;                       // "[0,5) [5,14)"
  int tokens = 0;                              // median over the mini-batches of the mean length of their samples
  Nanoseconds predicted_iteration_ns = 0;      // 0 until filled in by `compare`
  Nanoseconds measured_iteration_ns = 0;       // median over the phase's steps
  Nanoseconds measured_iteration_low_ns = 0;   // 10th percentile
  Nanoseconds measured_iteration_high_ns = 0;  // 90th percentile
  Nanoseconds transformation_ns = 0;           // time of the reconfiguration into the phase, 0 for the first
  Nanoseconds predicted_transformation_ns = 0;
  double samples_per_second = 0;                   // over the phase's steps, transformation excluded
  std::vector<Bytes> predicted_peak_memory_bytes;  // per rank
  std::vector<Bytes> measured_peak_memory_bytes;   // per rank
  bool cache = false;                              // activations at the frozen boundary were cached
  double cache_hit_fraction = 0;                   // fraction of the samples found at the boundary
  double cache_base_fraction = 0;                  // fraction of the samples found at an earlier boundary
  Trace predicted_timeline;                        // one iteration
  Trace measured_timeline;                         // the step whose time is the median
  bool operator==(const PhaseSummary&) const = default;
};

/// Returns the number of stages of all pipeline ranks together (`PhaseSummary::stages` is the number of pipeline
/// ranks).
int num_stages(const PhaseSummary& phase);

struct StepRecord {
  int step = 0;
  double loss = 0;  // mean over the samples of the mini-batch
  double learning_rate = 0;
  int samples = 0;
  int tokens = 0;  // mean per sample
  Nanoseconds iteration_ns = 0;
  bool operator==(const StepRecord&) const = default;
};

/// Fills in `phase`'s tokens, iteration times and samples per second from the recorded steps of the phase, of which
/// there must be at least one.
void measure(PhaseSummary& phase, std::span<const StepRecord> steps);

/// Writes a step as one line of JSON, with the keys of RunSummary's steps. The inverse returns none for any other text.
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

/// A decision to freeze more layers, with the alternatives that were compared.
struct Decision {
  int step = 0;
  int frozen_blocks = 0;
  std::string explanation;  // a table for the user, as text
  bool operator==(const Decision&) const = default;
};

/// A return to an earlier step of the run: after a lost rank, on resuming an interrupted run, or after a freeze that
/// cost too much accuracy.
struct Recovery {
  int step = 0;                   // the step at which training continued
  int lost_steps = 0;             // steps that were done before and had to be repeated
  int world_size = 1;             // world size from then on
  std::string cause;              // "rank 1 (process 7) was killed by signal 9 (Killed)"
  std::string source;             // "the survivors' memory", "checkpoint step-00000040", "the beginning"
  Nanoseconds detection_ns = 0;   // from the last sign of life to the detection
  Nanoseconds rendezvous_ns = 0;  // from the detection until all ranks were connected again
  Nanoseconds restoring_ns = 0;   // to restore layers, figures and layout
  Nanoseconds lost_work_ns = 0;   // time that the lost steps had taken; 0 = unknown
  std::string choice;             // comparison of rerouting with a new layout; empty if there was none
  bool operator==(const Recovery&) const = default;
};

/// The part of a summary that only runs of nets by operator plans have. In such runs frozen_blocks counts layers.
struct NetSummary {
  std::string net;
  std::vector<std::string> device_classes;  // by rank
  bool operator==(const NetSummary&) const = default;
};

/// The record of one training run, written by `train`.
struct RunSummary {
  std::string name;  // data_parallel, static_pipeline, elastic, or the user's
  std::string method;
  std::string freeze;  // the freeze rule
  std::string model;   // name of the model, "" until filled in by `compare`; a net's name is in `net`
  std::uint64_t seed = 0;
  int world_size = 1;
  int threads_per_rank = 1;  // of the plan
  bool is_emulated = false;  // a rehearsal: devices waited in place of computing, so there is no loss and no test
  double epochs = 0;         // num_steps as passes over the training samples, possibly fractional
  int num_steps = 0;
  int global_batch_size = 1;
  int num_train_samples = 0;
  int num_test_samples = 0;
  double samples_per_second = 0;  // of the training loop, including transformations and decisions
  double wall_seconds = 0;        // of the training loop, without evaluation
  double start_seconds = 0;       // loading, process groups
  double evaluation_seconds = 0;
  std::string cache_note;                // problems of the cache; empty if there were none
  std::string test_metric = "accuracy";  // name of test_accuracy: accuracy, F1, next-token accuracy
  double test_accuracy = 0;
  double test_accuracy_standard_error = 0;  // sqrt(a (1 - a) / n) for an accuracy a of n items, else the metric's own
  std::vector<NamedValue> test_others;      // further figures of the same test: exact match, loss, perplexity
  std::vector<PhaseSummary> phases;
  std::vector<Decision> decisions;  // made by re-planning
  std::vector<Recovery> recoveries;
  std::vector<StepRecord> steps;
  std::vector<EvaluationRecord> evaluations;
  std::vector<std::string> label_names;
  std::vector<int> test_items;  // for classification: sample indices in the data file
  std::vector<int> test_labels;
  std::vector<int> test_predictions;  // paired with test_labels
  std::optional<NetSummary> net;
  bool operator==(const RunSummary&) const = default;
};

/// Returns whether anything was frozen in any phase.
bool freezes(const RunSummary& run);

/// Writes the envelope "frostpipe.run"; the inverse reads it. It refuses "frostpipe.net_run", the former format of
/// nets' runs, and says so.
std::string to_json(const RunSummary& run);
RunSummary run_from_json(std::string_view json, std::string_view source);

}  // namespace frostpipe
