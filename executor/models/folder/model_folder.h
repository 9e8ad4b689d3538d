#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "executor/models/folder/weight_files.h"
#include "executor/models/folder/written_weights.h"
#include "executor/models/layer_state.h"

namespace frostpipe {

/// A Hugging Face model folder of any supported family (profiles/transformer/families.h): config.json; weights, unless
/// the model starts at random; tokenizer files for text. Names of tensors may lack the base model's prefix ("bert.").
/// If the head is missing or belongs to another task, it starts at random.
struct ModelFolder {
  std::filesystem::path path;
  TransformerConfig config;              // its task is that of the folder's head, else the family's first
  std::vector<std::string> label_names;  // empty if the folder has none
  std::string other_use;  // use of the folder's head if the model needs another one, which starts at random; else ""
  std::string name;       // model_name()
};

/// Returns the name for plans of the folder at `path` with this text of config.json: the part of its _name_or_path
/// after the last slash, or the folder's name if it has no _name_or_path.
std::string model_name(const std::filesystem::path& path, const std::string& config);

/// Returns whether the names are those that transformers gives to unnamed labels (LABEL_0, ...), or there are none.
bool are_unnamed(const std::vector<std::string>& label_names);

/// True if a classifier for the folder's labels cannot be used for the data's. It can be if they are the same in the
/// same order, or if the folder's labels have no names (LABEL_0, ...) and the data's are numbers.
bool are_other_labels(const std::vector<std::string>& of_folder, const std::vector<std::string>& of_data);

/// Reads and checks config.json. Throws InvalidInput that names file, field, rule and value, also for an unsupported
/// model_type and for fields that select an unsupported computation (profiles/computed_fields.h).
ModelFolder open_model_folder(const std::filesystem::path& path);

/// Gives the model this task's head, for these labels in this order. The folder's head is used unless it is for another
/// task or problem_type, or the labels are other ones (are_other_labels). Throws InvalidInput if the family has no such
/// head.
void set_task(ModelFolder& folder, Task task, const std::vector<std::string>& label_names,
              ProblemType problem_type = ProblemType::single_label);

/// Returns the parts that will start at random: "the whole model" without weights, else tensors of the head, with the
/// reason if the folder has them. Throws InvalidInput unless the files have every other tensor that load_layer will ask
/// for, in a shape and dtype that it can read.
std::vector<std::string> check_weights(const ModelFolder& folder, const WeightFiles& files);

/// Copies one layer's weights from the files into `state`, converted to its dtype. Missing weights (the head's or all)
/// are initialized as in the family's paper: normal with initializer_range, biases 0, norms 1. They depend only on
/// `seed`, the layer and the parameter, and are the same in every parallel layout. Does not update `rounded`: call
/// round_weights() afterwards. Throws InvalidInput as check_weights() does.
void load_layer(const ModelFolder& folder, const WeightFiles& files, int layer, std::uint64_t seed, LayerState& state);

/// Writes a folder that open_model_folder() and transformers can read, with the source's tokenizer files. `weights_of`
/// is passed to write_weights(). With `embeddings_are_tied` the head's matrix is the input embedding's and is not
/// written.
void write_model_folder(const ModelFolder& source, bool embeddings_are_tied,
                        const std::function<at::Tensor(int layer)>& weights_of, const std::filesystem::path& target,
                        const SavedWeights& saved = {});

}  // namespace frostpipe
