#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "executor/checkpoint/checkpoint_files.h"
#include "executor/checkpoint/safetensors.h"
#include "plan/plan.h"
#include "plan/summary.h"

namespace frostpipe {

/// What a run and its continuation must have in common: with it the order of the samples, the learning rates and the
/// updates are the same. The layout, the schedule and what is frozen may change.
struct RunSettings {
  std::string model_fingerprint;
  std::string data_fingerprint;  // of every sample's tokens and label, and of what is held out
  int data_shards = 1;           // parts of the data that nodes have to themselves
  std::uint64_t seed = 0;
  int global_batch_size = 1;
  int num_steps = 0;
  Optimizer optimizer = Optimizer::kAdamW;
  DType dtype = DType::kFloat32;
  std::optional<DType> frozen_dtype = std::nullopt;  // as TrainingPlan's
  double learning_rate = 0;
  double learning_rate_warm_up = 0;
  double weight_decay = 0;
  double gradient_clip = 0;
  std::string decay;  // of the learning rate
  double dropout = 0;
  double label_smoothing = 0;
  int group_by_length = 0;  // as in TrainOptions
  bool operator==(const RunSettings&) const = default;
};

/// The settings as JSON, by name.
std::map<std::string, std::string> values_by_name(const RunSettings& settings);

/// What two processes or times know by one name; "none" where it has none.
struct ValueDifference {
  std::string name, one, other;
};
/// The first by name; nothing if all are equal.
std::optional<ValueDifference> first_difference(const std::map<std::string, std::string>& one,
                                                const std::map<std::string, std::string>& other);

/// The first setting that differs: "seed: 1 in the checkpoint, 2 now"; nothing if all are equal.
std::optional<std::string> first_difference(const RunSettings& saved, const RunSettings& now);

/// A snapshot of a run: `step` optimizer steps are done. On disk it is a folder:
///   checkpoint.json          this struct but for plan and run, with a hash of itself; written last
///   plan.json                the phases as they were executed, the running one, and those decided but not begun
///   run.json                 the summary of the steps so far
///   layer-007.safetensors    a layer's flat weights and, unless the optimizer has none, first_moment and
///                            second_moment: also of frozen layers, if they ever trained; and
///                            older_weights where updates are delayed
/// The folder gets its name, step-00000120, when all of it is written and has reached the disk. Nothing in it is ever
/// executed.
struct Checkpoint {
  int step = 0;
  RunSettings settings;
  std::string plan_fingerprint;  // of the plan that the run was started with
  std::string freeze_rule;
  std::vector<double> freeze_state;  // the rule's
  bool freeze_is_decided = false;    // the rule was already asked before `step`, and the plan has what it decided
  int watched_step =
      -1;  // a freeze that no test has confirmed yet can be taken back to this step's checkpoint; -1 = none
  double watched_accuracy = 0;  // there
  std::string attempt;          // equal for the parts that hosts have of one checkpoint; "" where they share the folder
  std::vector<CheckpointFile> files;
  TrainingPlan plan;
  RunSummary run;
  std::filesystem::path folder;  // not stored
};

std::filesystem::path checkpoint_path(const std::filesystem::path& root, int step);
std::string layer_file_name(int layer);

/// The texts of the three JSON files, the first of which lists the others and `layers`.
struct CheckpointTexts {
  std::string checkpoint, plan, run;
};
CheckpointTexts to_texts(const Checkpoint& checkpoint, const std::vector<CheckpointFile>& layers);

/// Reads and checks checkpoint.json, plan.json and run.json. Throws InvalidInput that names the file and what is wrong
/// with it.
Checkpoint read_checkpoint(const std::filesystem::path& folder);

/// A snapshot without files, as one text and back: what ranks tell each other after a loss. Throws InvalidInput.
std::string to_text(const Checkpoint& checkpoint);
Checkpoint checkpoint_from_text(const std::string& text);

/// Number of layers that the checkpoint holds.
int num_layers(const Checkpoint& checkpoint);

/// A file that the checkpoint lists. Throws InvalidInput if it lists none of that name.
const CheckpointFile& entry_of(const Checkpoint& checkpoint, std::string_view name);

/// A layer's file, after its size and hash have been compared. Throws InvalidInput.
SafetensorsFile open_layer(const Checkpoint& checkpoint, int layer);

/// Checkpoints of a run's folder, the newest first.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& root);

/// Throws InvalidInput unless every byte of it is as it was written.
void read_whole_checkpoint(const std::filesystem::path& folder);

struct NewestFolder {
  std::filesystem::path folder;          // the newest that `read` takes; "" = none
  std::vector<std::string> passed_over;  // why newer ones were not taken
};
/// Of checkpoints of any kind; `read` throws InvalidInput.
NewestFolder newest_whole_folder(const std::filesystem::path& root,
                                 const std::function<void(const std::filesystem::path&)>& read);

struct NewestCheckpoint {
  std::optional<Checkpoint> checkpoint;  // the newest of which every byte is as it was written
  std::vector<std::string> passed_over;  // why newer ones were not taken
};
NewestCheckpoint newest_whole_checkpoint(const std::filesystem::path& root);

/// Removes all but the newest `count`, and those of the steps `held`.
void keep_newest_checkpoints(const std::filesystem::path& root, int count, const std::set<int>& held);
/// Removes those after `step`: the run has gone back to it.
void remove_checkpoints_after(const std::filesystem::path& root, int step);
/// Removes what writers that were interrupted have left.
void remove_unfinished_checkpoints(const std::filesystem::path& root);

/// An attempt to write a checkpoint, for CheckpointPart::attempt: the `number`th of rendezvous round `round`.
std::string attempt_name(int round, int number);
/// Removes what attempts of the rounds before `round` have left. Nobody may write to them any more.
void remove_attempts_before(const std::filesystem::path& root, int round);

}  // namespace frostpipe
