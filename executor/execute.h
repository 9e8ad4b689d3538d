#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/elastic/membership.h"
#include "plan/plan.h"
#include "plan/replan.h"
#include "plan/summary.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"

// What the executor offers, without LibTorch's headers. Every function here that takes a RankEnvironment is called by
// all ranks of the job, at the same time and with equal arguments.

namespace frostpipe {

/// False in a program whose executor only says that it is not there.
bool executor_is_linked();

/// Receives one line of progress; `fraction` of the whole in [0, 1].
using Progress = std::function<void(double fraction, const std::string& line)>;

/// When layers freeze.
struct FreezePolicy {
  enum class Rule { plan, paper, cap, fixed, adaptive };
  Rule rule = Rule::plan;
  FreezeOptions options;          // paper, cap, fixed: when to ask; adaptive: from when on, and how converged
  std::vector<int> fixed_layers;  // fixed: frozen blocks after the 1st, 2nd, ... decision
};

/// "plan", "paper", "cap", "fixed", "adaptive".
const char* to_string(FreezePolicy::Rule rule);

/// "plan", "paper", "cap", "adaptive", "fixed:3,5,6". Throws InvalidInput that lists the rules.
FreezePolicy parse_freeze_policy(const std::string& text, const FreezeOptions& options);

/// What re-planning says.
struct ReplanAnswer {
  std::vector<Phase> phases;  // from the request's step on, until the next decision changes them; none: the layout is
                              // kept, and the freeze still happens
  std::string explanation;    // what was weighed, for people; after a loss empty where there was no choice
};

/// Re-planning at a freeze decision, or after a loss; called on rank 0 only, its result is broadcast.
using Replan = std::function<ReplanAnswer(const ReplanRequest&)>;

/// What a training run asks of whoever started it.
struct TrainCallbacks {
  Replan replan;   // at freeze decisions; may be empty
  Replan recover;  // a layout for fewer ranks
  Progress progress;
  std::function<void(const std::string&)> note;  // a sentence for people, from any rank
};

/// What to learn from, and which of it to test on. A folder with a sub-folder of pictures per label, or a file: CIFAR
/// (.bin), plain text (.txt), SQuAD 1.1 (.json), or samples in JSON Lines (.jsonl, .ndjson, .json) or an array of JSON
/// (.json); anything else is a table, TSV or CSV. Samples are texts with labels, chats, prompts with completions, ...,
/// by the names of their fields (kind_of_records).
struct DataSource {
  std::filesystem::path data;
  std::filesystem::path test_data;  // to test on this file, with the labels of `data`; empty: on a part of the data
  double held_out = 0.2;            // that part
  std::uint64_t seed = 1;
};

/// How samples are made of the data.
struct SampleOptions {
  int max_tokens =
      128;  // longer texts are cut; contexts of questions come in windows, plain text in blocks of that many
  int window_overlap = 32;                // tokens of a context that neighbouring windows share
  std::string text_column, label_column;  // names of columns or fields that differ from the usual ones
  bool loss_on_all = false;               // causal: also on prompts, and on what others than the assistant say
  int crop_padding = 0;                   // pictures to train on are shifted at random by up to this many pixels
  bool flip = false;                      // and every other one is mirrored
};

/// A rehearsal: everything is real but the arithmetic, which takes a profile's times asleep.
struct Emulation {
  Profile profile;     // with a workload: the number of samples, and their length
  int shrink = 1;      // tensors and link bandwidths are divided by it; reports give the bytes of whole tensors
  bool links = false;  // messages take the times of the cluster's links
};

/// When checkpoints are written, and how many stay.
struct CheckpointPolicy {
  int every_steps = 0;       // 0 = not by steps
  double every_minutes = 0;  // 0 = not by time
  int keep = 2;              // the newest
};

struct TrainOptions {
  TrainingPlan plan;
  std::string plan_source = "plan";  // the plan's file, for messages
  /// Memory limits per rank are taken from here if plan.memory_limited.
  std::optional<Cluster> cluster;
  std::filesystem::path model;         // Hugging Face folder
  std::filesystem::path data;          // as in DataSource
  std::filesystem::path test_data;     // as in DataSource
  std::filesystem::path cache_folder;  // for what the plan's cache keeps on disk
  std::filesystem::path output;        // run folder: summary.json, executed_plan.json, trace.json, model/
  std::string name;                    // of the run; default run_name(plan.method)
  std::uint64_t seed = 1;
  double learning_rate = 1e-4;
  double learning_rate_warm_up = 0.06;  // fraction of the steps; then linear decay to 0
  double weight_decay = 0.01;           // AdamW, matrices only
  double gradient_clip = 1.0;           // L2 norm over all trainable parameters; 0 = off
  double held_out = 0.2;                // fraction of the data used for testing
  SampleOptions samples;
  std::string decay = "linear";  // of the learning rate after the warm-up, to 0: linear or cosine
  double dropout = 0;
  double label_smoothing = 0;
  int group_by_length = 0;  // mini-batches of an epoch within which samples are grouped by length; 0 = they are not
  FreezePolicy freeze;
  std::string device = "cpu";          // or "cuda"
  int threads_per_rank = 0;            // on the CPU; 0 = the plan's
  bool cuda_graphs = false;            // on CUDA: iterations that repeat each other are captured, and replayed
  std::optional<Emulation> emulation;  // instead of a device, model and data; needs `cluster`
  CheckpointPolicy checkpoints;        // in output/checkpoints
  std::string save_dtype = "float32";  // of the weights in output/model: or bfloat16, float16
  /// "auto": goes on from the newest whole checkpoint in output/checkpoints, unless the run there has ended; "no":
  /// starts over; else a checkpoint, or a folder of them.
  std::string resume = "no";
  /// A freeze after which the test accuracy falls by more than this is taken back. None: it stays.
  std::optional<double> accuracy_tolerance;
  /// The ranks form this many virtual nodes: each has a cache and a part of the data of its own. 0: one per host.
  int num_nodes = 0;
};

class TrainingTask;

/// What a look at a run's inputs tells.
struct InputsFound {
  std::shared_ptr<const TrainingTask> training_task;  // model and data as read, for train()
  Nanoseconds reading_ns = 0;
  int num_training_samples = 0;
  int longest_tokens = 0;                     // of those
  std::vector<std::string> starts_at_random;  // tensors that neither the model folder nor a checkpoint to go on from
                                              // has, or "the whole model"
  std::vector<std::string> notes;             // what may be a slip in the data, or slow here: sentences for people
  /// Of what training writes, as far as it is known before: the saved model, or a layer in a checkpoint.
  std::filesystem::path largest_file;
  Bytes largest_file_bytes = 0;
};

/// Everything that can be wrong with model folder, data and plan, without starting anything: so that it is said once
/// and not by every rank. Throws InvalidInput.
InputsFound check_inputs(const TrainOptions& options);

/// Tokens of the largest micro-batch of each of the plan's phases, in the order in which a run with these options
/// trains on `inputs`' data, on one host or options.num_nodes. A layout that re-planning chooses on the way is not
/// known.
std::vector<std::int64_t> largest_micro_batches(const TrainOptions& options, const InputsFound& inputs);

/// For a rank that something is wrong with before train(), such as a file that its host lacks: where another launcher
/// than ours has started the ranks, the others are told, so that they do not wait for it. Throws InvalidInput with
/// `trouble`; there it names the host, and is on all ranks that of the lowest rank that has any.
[[noreturn]] void fail_on_all_ranks(const Membership& membership, const std::string& trouble);

/// Trains; rank 0 also writes the run folder. After a loss the ranks that are left meet in a new rendezvous round and
/// go on, if the membership allows it: from what they hold in memory where that is whole, else from the newest
/// checkpoint, else from the beginning. A spare returns when the job has ended without it. Throws InvalidInput for bad
/// data or a checkpoint that does not belong to this run, RuntimeFailure that names rank and action when a device, link
/// or rank fails or a memory limit is exceeded.
///
/// `inputs`: what check_inputs found with these options.
void train(Membership& membership, const TrainOptions& options, const InputsFound& inputs,
           const TrainCallbacks& callbacks);

struct MeasureOptions {
  std::filesystem::path model;
  std::optional<std::filesystem::path> data;  // fills Profile::workload and chooses the lengths
  std::filesystem::path test_data;            // as training will have it
  int global_batch_size = 64;
  std::uint64_t seed = 1;
  double held_out = 0.2;  // as `train` will set it apart: those samples are not trained on
  SampleOptions samples;
  bool quick = false;  // one round of fewer sizes: for a first look
  /// Each rank computes with this many on the CPU. 0: one, and then fewer ranks with several each, so that a plan may
  /// choose.
  int threads_per_rank = 0;
  std::vector<int> micro_batch_sizes;  // empty: 1, 2, 4, ... up to the global batch; quick: 1, 8, 64, ...
  std::vector<int> tokens;             // empty: chosen around the data's, else {16, 32}
  /// Numbers of ranks that share the layers, with their collectives; each divides the ranks, and there are as many
  /// attention heads.
  std::vector<int> tensor_parallel_sizes = {1};
  bool sequence_parallel = false;  // such ranks also with sequence parallelism
  DType dtype = DType::kFloat32;
  std::optional<DType> frozen_dtype;  // as TrainingPlan's
  std::string device = "cpu";
  std::optional<Bytes> memory_limit_bytes;  // written into the cluster, not enforced while measuring
};

struct MeasuredProfile {
  Profile profile;
  Cluster cluster;
};

/// As for training, with `num_ranks` that will measure. Returns sentences for people.
std::vector<std::string> check_inputs(const MeasureOptions& options, int num_ranks);

/// Measures every layer on all ranks at once (ranks of one machine share its memory and clock), and the links between
/// them. The result on rank 0.
MeasuredProfile measure_profile(const RankEnvironment& self, const MeasureOptions& options, const Progress& progress);

struct EvaluateOptions {
  std::filesystem::path model;  // a folder that `train` wrote
  std::filesystem::path
      data;               // as in DataSource; labels may be missing, and .txt is lines of text to a classifier of texts
  bool predicts = false;  // fills predictions_file
  int max_new_tokens = 128;  // of a completion
  int batch_size = 64;
  SampleOptions samples;
  std::string device = "cpu";
};

/// Of one label: samples that have it, that are said to have it, and both. Of entities their kind, of words their
/// label.
struct LabelCounts {
  std::string label;
  int count = 0, predicted = 0, hits = 0;
};

struct Evaluation {
  int num_samples = 0;    // of questions: windows
  int num_questions = 0;  // in them
  std::string metric;     // accuracy, micro F1, Pearson correlation, ...; empty where the data have no labels
  double value = 0;       // of it, at most 1
  double standard_error = 0;
  std::vector<NamedValue> others;
  double samples_per_second = 0;
  std::vector<LabelCounts> labels;  // of classification: all of them; count and hits 0 where the data have no labels
  std::string predictions_file;     // of questions {"id": "answer"}, as the official script reads it; of labels CSV; of
                                    // prompts JSON Lines
  std::vector<std::string> notes;   // as in InputsFound
};

/// Scores a saved model in this process, in float32.
Evaluation evaluate(const EvaluateOptions& options, const Progress& progress);

}  // namespace frostpipe
