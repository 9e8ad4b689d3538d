#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/launch.h"
#include "plan/plan.h"
#include "plan/replan.h"
#include "plan/summary.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"

// What the executor offers, without LibTorch's headers. Every function here that takes a RankEnvironment is called by
// all ranks of the job, at the same time and with equal arguments.

namespace frostpipe {

/// Receives one line of progress; `fraction` of the whole in [0, 1].
using Progress = std::function<void(double fraction, const std::string& line)>;

/// When layers freeze.
struct FreezePolicy {
  enum class Rule { plan, paper, cap, fixed, adaptive };
  Rule rule = Rule::plan;
  FreezeOptions options;               // paper, cap, fixed: when to ask; adaptive: from when on, and how converged
  std::vector<int> fixed_layers;       // fixed: frozen layers after the 1st, 2nd, ... decision
};

/// "plan", "paper", "cap", "adaptive", "fixed:3,5,6". Throws InvalidInput that lists the rules.
FreezePolicy parse_freeze_policy(const std::string& text, const FreezeOptions& options);

/// What re-planning says.
struct ReplanAnswer {
  std::vector<Phase> phases;  // from the request's step on, until the next decision changes them; none: the layout is kept, and the freeze still happens
  std::string explanation;    // what was weighed, for people
};

/// Re-planning at a freeze decision; called on rank 0 only, its result is broadcast.
using Replan = std::function<ReplanAnswer(const ReplanRequest&)>;

/// Labelled texts, and which of them to test on.
struct DataSource {
  std::filesystem::path data;       // TSV: text<TAB>label
  std::filesystem::path test_data;  // to test on this file, with the labels of `data`; empty: on a part of the data
  double held_out = 0.2;            // that part
  std::uint64_t seed = 1;
};

/// A rehearsal: everything is real but the arithmetic, which takes a profile's times asleep.
struct Emulation {
  Profile profile;     // with a workload: the number of samples, and their length
  int shrink = 1;      // tensors and link bandwidths are divided by it; reports give the bytes of whole tensors
  bool links = false;  // messages take the times of the cluster's links
};

struct TrainOptions {
  TrainingPlan plan;
  std::string plan_source = "plan";  // the plan's file, for messages
  /// Memory limits per rank are taken from here if plan.memory_limited.
  std::optional<Cluster> cluster;
  std::filesystem::path model;   // Hugging Face folder of a BERT-type encoder
  std::filesystem::path data;    // TSV: text<TAB>label
  std::filesystem::path test_data;  // as in DataSource
  std::filesystem::path cache_folder;  // for what the plan's cache keeps on disk
  std::filesystem::path output;  // run folder: summary.json, executed_plan.json, trace.json, model/
  std::string name;              // of the run; default run_name(plan.method)
  int epochs = 3;
  std::uint64_t seed = 1;
  double learning_rate = 1e-4;
  double learning_rate_warm_up = 0.06;  // fraction of the steps; then linear decay to 0
  double weight_decay = 0.01;           // AdamW, matrices only
  double gradient_clip = 1.0;           // L2 norm over all trainable parameters; 0 = off
  double held_out = 0.2;                // fraction of the data used for testing
  int max_tokens = 128;                 // longer texts are cut
  FreezePolicy freeze;
  std::string device = "cpu";           // or "cuda"
  std::optional<Emulation> emulation;   // instead of a device, model and data; needs `cluster`
  /// The ranks form so many virtual nodes: each has a cache and a part of the data of its own. 0: one per host.
  int num_nodes = 0;
};

/// Everything that can be wrong with model folder, data and plan, without starting anything: so that it is said once and not by every
/// rank. Throws InvalidInput.
void check_inputs(const TrainOptions& options);

/// Trains; the full summary on rank 0, which also writes the run folder. Throws InvalidInput for bad data, RuntimeFailure
/// that names rank and action when a device, link or rank fails or a memory limit is exceeded.
RunSummary train(const RankEnvironment& self, const TrainOptions& options, const Replan& replan, const Progress& progress);

struct MeasureOptions {
  std::filesystem::path model;
  std::optional<std::filesystem::path> data;  // fills Profile::workload and chooses the lengths
  std::filesystem::path test_data;            // as training will have it
  int global_batch_size = 64;
  std::uint64_t seed = 1;
  double held_out = 0.2;  // as `train` will set it apart: those samples are not trained on
  int max_tokens = 128;
  std::vector<int> micro_batch_sizes;  // empty: 1, 2, 4, ... up to the global batch
  std::vector<int> tokens;             // empty: chosen around the data's, else {16, 32}
  std::string dtype = "float32";
  std::string device = "cpu";
  std::optional<Bytes> memory_limit_bytes;  // written into the cluster, not enforced while measuring
};

struct MeasuredProfile {
  Profile profile;
  Cluster cluster;
};

/// As for training.
void check_inputs(const MeasureOptions& options);

/// Measures every layer on all ranks at once (ranks of one machine share its memory and clock), and the links between
/// them. The result on rank 0.
MeasuredProfile measure_profile(const RankEnvironment& self, const MeasureOptions& options, const Progress& progress);

struct EvaluateOptions {
  std::filesystem::path model;  // a folder that `train` wrote
  std::filesystem::path data;
  int batch_size = 64;
  int max_tokens = 128;
  std::string device = "cpu";
};

struct Evaluation {
  int num_samples = 0;
  double accuracy = 0;
  double standard_error = 0;
  double samples_per_second = 0;
  std::vector<std::string> label_names;
  std::vector<int> labels;
  std::vector<int> predictions;
};

/// Scores a saved model in this process.
Evaluation evaluate(const EvaluateOptions& options, const Progress& progress);

/// Samples that a run trains on: lets a plan know its number of steps.
int num_training_samples(const DataSource& source);

}  // namespace frostpipe
