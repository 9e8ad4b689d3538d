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

// The interface of the executor. It does not include LibTorch's headers. All ranks of the job must call train() and
// measure_profile() at the same time and with equal options.

namespace frostpipe {

/// Returns false in a program that was linked without LibTorch. The functions here that need tensors then only throw.
bool executor_is_linked();

/// Receives a line of progress. `fraction` is the completed part of the whole, in [0, 1].
using Progress = std::function<void(double fraction, const std::string& line)>;

/// Decides when layers freeze.
struct FreezePolicy {
  enum class Rule { plan, paper, cap, fixed, adaptive };
  Rule rule = Rule::plan;
  FreezeOptions options;          // paper, cap, fixed: the steps of decisions; adaptive: warm-up and threshold; alpha
                                  // for all of these except fixed
  std::vector<int> fixed_layers;  // fixed: number of frozen blocks after the 1st, 2nd, ... decision
};

/// Returns "plan", "paper", "cap", "fixed" or "adaptive".
const char* to_string(FreezePolicy::Rule rule);

/// Parses "plan", "paper", "cap", "adaptive" or "fixed:3,5,6". Throws InvalidInput that lists the rules.
FreezePolicy parse_freeze_policy(const std::string& text, const FreezeOptions& options);

/// The result of re-planning.
struct ReplanAnswer {
  std::vector<Phase> phases;  // The phases from the request's step on, until the next decision. If empty, the layout
                              // stays and the freeze still happens; after a loss, no layout fits and the run fails.
  std::string explanation;    // The alternatives considered, for the user. After a loss: empty if there was no choice,
                              // and the reason if no layout fits.
};

/// Re-plans at a freeze decision or after a loss. It is called on rank 0 only, which broadcasts the result.
using Replan = std::function<ReplanAnswer(const ReplanRequest&)>;

/// Callbacks of a training run.
struct TrainCallbacks {
  Replan replan;   // called at freeze decisions; may be empty
  Replan recover;  // called after a loss: returns a layout for fewer ranks
  Progress progress;
  std::function<void(const std::string&)> note;  // receives messages for the user, on any rank
};

/// The data to train and test on. A folder has a sub-folder of pictures per label. A file is CIFAR (.bin), plain text
/// (.txt), words with labels in CoNLL's columns (.conll, .bio, or a .txt that begins with -DOCSTART-), SQuAD 1.1 or 2.0
/// (.json), samples in JSON Lines (.jsonl, .ndjson, .json), an array of samples in JSON (.json), or, with any other
/// name, a table in TSV or CSV. Samples are texts with labels, chats, prompts with completions, ..., according to the
/// names of their fields (kind_of_records).
struct DataSource {
  std::filesystem::path data;
  std::filesystem::path test_data;  // a file to test on, with the labels of `data`; if empty, a part of the data is
                                    // held out
  double held_out = 0.2;            // size of that part as a fraction
  std::uint64_t seed = 1;
};

constexpr int kMaxTokens = 128, kMaxTokensOfExamples = 1024;

/// How samples are made from the data.
struct SampleOptions {
  /// Longer texts are truncated; contexts of questions are cut into windows, and plain text into blocks, of this many
  /// tokens. 0 = the default for the data: kMaxTokensOfExamples for chats, prompts and JSON texts without labels, else
  /// kMaxTokens.
  int max_tokens = 0;
  int window_overlap = 32;                // tokens of a context that neighbouring windows have in common
  std::string text_column, label_column;  // column or field names, if they differ from the usual ones
  bool loss_on_all = false;               // causal: compute the loss on prompts and on messages of other roles too
  int crop_padding = 0;                   // training pictures are randomly shifted by up to this many pixels
  bool flip = false;                      // each training picture is mirrored with probability 1/2
};

/// A rehearsal of a run: everything is real except the arithmetic, in whose place the ranks sleep for the profile's
/// times.
struct Emulation {
  Profile profile;     // its workload gives the number of samples and their length
  int shrink = 1;      // divisor of tensor sizes and link bandwidths; reports show undivided bytes
  bool links = false;  // messages take the times of the cluster's links
};

/// When checkpoints are written, and how many are kept.
struct CheckpointPolicy {
  int every_steps = 0;       // 0 = not by steps
  double every_minutes = 0;  // 0 = not by time
  int keep = 2;              // the newest ones
};

struct TrainOptions {
  TrainingPlan plan;
  std::string plan_source = "plan";  // name of the plan's file in messages
  /// Gives the memory limits per rank if plan.memory_limited.
  std::optional<Cluster> cluster;
  std::filesystem::path model;         // Hugging Face folder
  std::filesystem::path data;          // see DataSource
  std::filesystem::path test_data;     // see DataSource
  std::filesystem::path cache_folder;  // for the part of the activation cache that is on disk
  std::filesystem::path output;        // run folder: summary.json, executed_plan.json, trace.json, model/
  std::string name;                    // name of the run; default: run_name(plan.method)
  std::uint64_t seed = 1;
  double learning_rate = 1e-4;
  double learning_rate_warm_up = 0.06;  // fraction of the steps, then the rate decays to 0
  double weight_decay = 0.01;           // of AdamW: matrices only; of nets: all weights
  double gradient_clip = 1.0;           // L2 norm over all trainable parameters; 0 = off
  double held_out = 0.2;                // fraction of the data used for testing
  SampleOptions samples;
  std::string decay = "linear";  // decay of the learning rate to 0 after the warm-up: linear or cosine
  double dropout = 0;
  double label_smoothing = 0;
  int group_by_length = 0;  // mini-batches of an epoch among which samples are grouped by length; 0 = no grouping
  FreezePolicy freeze;
  std::string device = "cpu";          // or "cuda"
  bool cuda_graphs = false;            // on CUDA: capture and replay repeated iterations
  std::optional<Emulation> emulation;  // replaces device, model and data; needs `cluster`
  CheckpointPolicy checkpoints;        // in output/checkpoints
  std::string save_dtype = "float32";  // dtype of the weights in output/model: float32, bfloat16 or float16
  /// "auto" resumes from the newest intact checkpoint in output/checkpoints, unless the run there has ended; "no"
  /// starts over; any other value is the path of a checkpoint or of a folder of checkpoints.
  std::string resume = "no";
  /// A freeze is undone if the test accuracy falls by more than this, as an absolute fraction (0.01: one percentage
  /// point). If not set, freezes are not watched.
  std::optional<double> accuracy_tolerance;
  /// The ranks form this many virtual nodes, each with an activation cache and a part of the data of its own. 0: one
  /// per host.
  int num_nodes = 0;
};

class TrainingTask;

/// The result of checking a run's inputs.
struct InputsFound {
  std::shared_ptr<const TrainingTask> training_task;  // model and data as read, for train()
  Nanoseconds reading_ns = 0;
  int num_training_samples = 0;
  int longest_tokens = 0;                     // tokens of the longest training sample
  std::vector<std::string> starts_at_random;  // tensors that neither the model folder nor a checkpoint to resume from
                                              // has, or "the whole model"
  std::vector<std::string> notes;             // possible mistakes in the data, or reasons for slowness here: sentences
                                              // for the user
  /// An estimate from above of the largest file that training will write: the saved model, or one of its files, or a
  /// layer of a checkpoint (for these two the path of their folder). "" and 0 in a rehearsal.
  std::filesystem::path largest_file;
  Bytes largest_file_bytes = 0;
  Bytes weights_bytes = 0;  // all weights in float32; 0 in a rehearsal
};

/// Checks model folder, data and plan without starting any rank, so that an error is reported once and not by every
/// rank. Throws InvalidInput.
InputsFound check_inputs(const TrainOptions& options);

/// Returns the tokens of the largest micro-batch of each phase of the plan, for the order in which a run with these
/// options trains on the data of `inputs`, on one host or options.num_nodes. Layouts that re-planning will choose are
/// not included.
std::vector<std::int64_t> largest_micro_batches(const TrainOptions& options, const InputsFound& inputs);

/// Must be called by a rank that fails before train(), for example because its host lacks a file. Throws InvalidInput
/// with `reason`. If another launcher has started the ranks, it first tells the other ranks, so that they do not wait;
/// the message then names the host, and all ranks throw that of the lowest rank that has failed.
[[noreturn]] void fail_on_all_ranks(const Membership& membership, const std::string& reason);

/// Trains; rank 0 also writes the run folder. After a loss the remaining ranks enter a new rendezvous round and
/// continue, if the membership allows it: from their state in memory if it is complete, otherwise from the newest
/// checkpoint, otherwise from the beginning. A spare returns when the job has ended without it. Throws InvalidInput for
/// bad data or a checkpoint of another run, and RuntimeFailure that names rank and action if a device, link or rank
/// fails or a memory limit is exceeded.
///
/// `inputs` is the result of check_inputs() with the same options.
void train(Membership& membership, const TrainOptions& options, const InputsFound& inputs,
           const TrainCallbacks& callbacks);

struct MeasureOptions {
  std::filesystem::path model;
  std::optional<std::filesystem::path> data;  // gives Profile::workload and determines the lengths to measure
  std::filesystem::path test_data;            // as training will use it
  int global_batch_size = 64;
  std::uint64_t seed = 1;
  double held_out = 0.2;  // fraction that `train` will hold out and not train on
  SampleOptions samples;
  bool quick = false;  // measure fewer sizes, in one round, for rough predictions
  bool links = true;   // also measure the links between ranks, and the time to form process groups
  /// Compute threads of each rank on the CPU. 0 measures one, and then fewer ranks with several threads each, so that a
  /// plan can choose.
  int threads_per_rank = 0;
  std::vector<int> micro_batch_sizes;  // empty: 1, 2, 4, ... up to the global batch; quick: 1, 8, 64, ...
  std::vector<int> tokens;             // empty: chosen around the data's, else {16, 32}
  /// Numbers of ranks that share the layers, with their collectives. Each must divide the number of ranks and be at
  /// most the number of attention heads.
  std::vector<int> tensor_parallel_sizes = {1};
  bool sequence_parallel = false;  // also measure these ranks with sequence parallelism
  DType dtype = DType::kFloat32;
  std::optional<DType> frozen_dtype;  // see TrainingPlan
  std::string device = "cpu";
  std::optional<Bytes> memory_limit_bytes;  // stored in the cluster, but not enforced while measuring
};

struct MeasuredProfile {
  Profile profile;
  Cluster cluster;  // empty unless the links were measured
};

/// Checks the inputs, as for training, for a measurement on `num_ranks` ranks. Returns messages for the user.
std::vector<std::string> check_inputs(const MeasureOptions& options, int num_ranks);

/// Measures every layer on all ranks at once, because ranks of one machine share its memory bandwidth and clock rate,
/// and, with `links`, the links between ranks. Every rank returns a result; that of rank 0 counts.
MeasuredProfile measure_profile(const RankEnvironment& self, const MeasureOptions& options, const Progress& progress);

struct EvaluateOptions {
  std::filesystem::path model;  // a folder that `train` wrote
  std::filesystem::path
      data;                  // see DataSource; labels may be missing, and .txt is a text per line for text classifiers
  bool predicts = false;     // write predictions_file; prompts need no answer then
  int max_new_tokens = 128;  // of each completion
  int batch_size = 64;
  SampleOptions samples;
  std::string device = "cpu";
};

/// The numbers of samples (or words, or entities) that have a label, that are predicted to have it, and of those for
/// which both are true. The label of an entity is its kind.
struct LabelCounts {
  std::string label;
  int count = 0, predicted = 0, hits = 0;
};

struct Evaluation {
  int num_samples = 0;      // questions: windows
  int num_questions = 0;    // number of questions in the windows
  int num_completions = 0;  // number of completed prompts in predictions_file
  std::string metric;       // accuracy, micro F1, Pearson correlation, ...; empty if the data have no labels or answers
  double value = 0;         // value of the metric, at most 1
  double standard_error = 0;
  std::vector<NamedValue> others;
  double samples_per_second = 0;
  std::vector<LabelCounts> labels;  // for classification: all labels; if the data have none, count and hits are 0
  std::string predictions_file;     // content of a predictions file: for questions {"id": "answer"}, as SQuAD's script
                                    // reads it; for labels CSV; for words CoNLL's columns; for prompts JSON Lines
  std::vector<std::string> notes;   // see InputsFound
};

/// Evaluates a saved model in this process, in float32.
Evaluation evaluate(const EvaluateOptions& options, const Progress& progress);

}  // namespace frostpipe
