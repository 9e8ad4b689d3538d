#pragma once
#include <cstdint>
#include <filesystem>
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

/// The settings in which a resumed run must equal the original one. They determine the order of the samples, the
/// learning rates and the updates. The layout, the schedule and the frozen layers may change.
struct RunSettings {
  std::string model_fingerprint;
  std::string data_fingerprint;  // of every sample's tokens and label, and of the held-out samples
  int data_shards = 1;           // number of parts into which the data is divided among nodes
  std::uint64_t seed = 0;
  int global_batch_size = 1;
  int num_steps = 0;
  Optimizer optimizer = Optimizer::kAdamW;
  DType dtype = DType::kFloat32;
  std::optional<DType> frozen_dtype = std::nullopt;  // see TrainingPlan
  double learning_rate = 0;
  double learning_rate_warm_up = 0;
  double weight_decay = 0;
  double gradient_clip = 0;
  std::string decay;  // of the learning rate
  double dropout = 0;
  double label_smoothing = 0;
  int group_by_length = 0;  // see TrainOptions
  bool operator==(const RunSettings&) const = default;
};

/// Returns the settings as JSON values, by name.
std::map<std::string, std::string> values_by_name(const RunSettings& settings);

/// Two different values of one name. A value is "none" if its side has no such name.
struct ValueDifference {
  std::string name, one, other;
};
/// Returns the first difference by name; nothing if all are equal.
std::optional<ValueDifference> first_difference(const std::map<std::string, std::string>& one,
                                                const std::map<std::string, std::string>& other);

/// Describes the first setting that differs: "seed: 1 in the checkpoint, 2 now"; nothing if all are equal.
std::optional<std::string> first_difference(const RunSettings& saved, const RunSettings& now);

/// A snapshot of a run after `step` optimizer steps. On disk it is a folder:
///   checkpoint.json        this struct without plan and run, with a hash of itself; written last
///   plan.json              the phases as they were executed, the current one, and those decided but not begun
///   run.json               the summary of the steps so far
///   layer-007.safetensors  a layer's flat weights; first_moment and second_moment, unless the optimizer has none (also
///                          for frozen layers that have trained before); older_weights where updates are delayed
/// The folder is renamed to its final name, step-00000120, when all of it has been written and synced to disk. Nothing
/// in it is ever executed.
struct Checkpoint {
  int step = 0;
  RunSettings settings;
  std::string plan_fingerprint;  // of the plan that the run was started with
  std::string freeze_rule;
  std::vector<double> freeze_state;  // state of the freeze rule
  bool freeze_is_decided = false;    // the rule was already asked before `step`, and the plan includes its decision
  int watched_step = -1;  // if the accuracy guard rejects the last freeze, the run goes back to this step's checkpoint;
                          // -1 = no freeze is watched
  double watched_accuracy = 0;  // accuracy at watched_step
  std::string attempt;          // equal for all hosts' shares of a checkpoint; "" if they share the folder
  std::vector<CheckpointFile> files;
  TrainingPlan plan;
  RunSummary run;
  std::filesystem::path folder;  // not stored
};

std::filesystem::path checkpoint_path(const std::filesystem::path& root, int step);
std::string layer_file_name(int layer);

/// The contents of the three JSON files. checkpoint.json lists the other two and `layers`.
struct CheckpointTexts {
  std::string checkpoint, plan, run;
};
CheckpointTexts to_texts(const Checkpoint& checkpoint, const std::vector<CheckpointFile>& layers);

/// Reads and checks checkpoint.json, plan.json and run.json. Throws InvalidInput that names the file and the fault.
Checkpoint read_checkpoint(const std::filesystem::path& folder);

/// Convert a snapshot without files to one text and back, to send it to other ranks after a loss.
/// checkpoint_from_text() throws InvalidInput if a part is damaged.
std::string to_text(const Checkpoint& checkpoint);
Checkpoint checkpoint_from_text(const std::string& text);

/// Returns the number of layers in the checkpoint.
int num_layers(const Checkpoint& checkpoint);

/// Returns the entry of a file. Throws InvalidInput if the checkpoint does not list it.
const CheckpointFile& entry_of(const Checkpoint& checkpoint, std::string_view name);

/// Opens a layer's file after checking its size and hash. Throws InvalidInput, which names the host that wrote the file
/// if the file is missing and hosts do not share the folder.
SafetensorsFile open_layer(const Checkpoint& checkpoint, int layer);

/// Returns the checkpoints in a run's folder by their names, the newest first. They may be damaged.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& root);

/// Reads a checkpoint and all its layers. Throws InvalidInput unless every byte is as it was written.
Checkpoint read_whole_checkpoint(const std::filesystem::path& folder);

struct NewestCheckpoint {
  std::optional<Checkpoint> checkpoint;  // the newest one whose every byte is as it was written
  std::vector<std::string> passed_over;  // why newer ones were rejected
};
NewestCheckpoint newest_whole_checkpoint(const std::filesystem::path& root);

/// Removes all checkpoints but the newest `count` (damaged ones count too) and those of the steps in `held`.
void keep_newest_checkpoints(const std::filesystem::path& root, int count, const std::set<int>& held);
/// Removes the checkpoints after `step`, to which the run has gone back.
void remove_checkpoints_after(const std::filesystem::path& root, int step);
/// Removes the partial checkpoints of interrupted writers. No process may still be writing one.
void remove_unfinished_checkpoints(const std::filesystem::path& root);

/// Returns the name of an attempt to write a checkpoint, the `number`th of rendezvous round `round`, for
/// CheckpointPart::attempt.
std::string attempt_name(int round, int number);
/// Removes the partial checkpoints of rounds before `round`. No process may still be writing them.
void remove_attempts_before(const std::filesystem::path& root, int round);

}  // namespace frostpipe
