#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/layer_state.h"
#include "executor/job/safetensors.h"

namespace frostpipe {

class Communicator;

/// A Hugging Face folder of a BERT-type encoder: config.json, model.safetensors, tokenizer files. Tensor names may carry a
/// "bert." prefix. A folder that `train` wrote also has the head (classifier.*) and label names in config.json.
struct ModelFolder {
  std::filesystem::path path;
  EncoderConfig config;                  // num_labels as in label_names, or 2
  std::vector<std::string> label_names;  // empty if the folder has no labels
  std::string name;                      // for plans: folder's name or config's _name_or_path
};

/// Reads and checks config.json. Throws InvalidInput naming file, field, rule and value; also for architectures that this is
/// not (model_type must be bert, hidden_act gelu, absolute positions).
ModelFolder open_model_folder(const std::filesystem::path& path);

/// Throws InvalidInput unless the file has every tensor that load_layer will ask for, in a shape and dtype that it can read.
void check_weights(const ModelFolder& folder, const SafetensorsFile& file);

/// Copies one layer's weights from the file into `state` (converted to its dtype). A head that the file lacks is initialised
/// uniformly in +-1/sqrt(hidden) from `seed`, the same in every layout.
void load_layer(const ModelFolder& folder, const SafetensorsFile& file, int layer, std::uint64_t seed, LayerState& state);

/// Random weights for tests: normal(0, 0.02 or 1 for norms) from (seed, layer), the same in every layout.
void randomise_layer(const EncoderConfig& config, int layer, std::uint64_t seed, LayerState& state);

/// Writes a folder that open_model_folder reads: collects layer after layer on rank 0 (whose device needs room for one layer
/// only) and copies the tokenizer files. holder_of[l] = rank that has layer l. Called by all ranks; rank 0 writes.
void save_model_folder(const ModelFolder& source, const std::vector<std::string>& label_names, const std::map<int, LayerState>& layers,
                       const std::vector<int>& holder_of, Communicator& communicator, const std::filesystem::path& target);

}  // namespace frostpipe
