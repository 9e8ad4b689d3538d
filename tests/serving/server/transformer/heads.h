#pragma once
// Model folders that share their first layers, for tests of partitions with several heads.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/models/folder/model_folder.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/small_model.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe::test {

/// The config.json of small_config().
inline nlohmann::json small_config_json(Family family) {
  switch (family) {
    case Family::bert:
      return {{"model_type", "bert"},          {"hidden_size", 16},       {"num_hidden_layers", 3},
              {"num_attention_heads", 2},      {"intermediate_size", 24}, {"vocab_size", 40},
              {"max_position_embeddings", 12}, {"type_vocab_size", 2}};
    case Family::vit:
      return {{"model_type", "vit"},     {"hidden_size", 16}, {"num_hidden_layers", 3}, {"num_attention_heads", 2},
              {"intermediate_size", 24}, {"image_size", 6},   {"patch_size", 2},        {"num_channels", 3}};
    default:
      return {{"model_type", "gpt2"}, {"n_embd", 16},     {"n_layer", 3},      {"n_head", 2},
              {"n_inner", 24},        {"vocab_size", 40}, {"n_positions", 12}, {"activation_function", "gelu_new"}};
  }
}

class HeadFoldersTest : public ScratchFolderTest {
 protected:
  /// A folder whose first `shared_layers` layers are the same in all such folders of the family, and whose other layers
  /// are its own.
  std::string write_head(const std::string& name, Family family, int shared_layers, std::uint64_t seed,
                         nlohmann::json changes = nlohmann::json::object()) const {
    nlohmann::json config = small_config_json(family);
    config.update(changes);
    file(name + "/config.json", config.dump());
    ModelFolder folder = open_model_folder(folder_ / name);
    if (folder.config.task != Task::causal_language_modeling) set_task(folder, folder.config.task, {"a", "b", "c"});
    write_model_folder(
        folder, /*embeddings_are_tied=*/folder.config.ties_embeddings,
        [&](int layer) {
          LayerState state = make_layer_state(parameters_of(folder.config, layer), {at::kFloat, at::kFloat}, at::kCPU,
                                              /*trains=*/false, /*num_moments=*/0);
          randomise_layer(folder.config, layer, layer < shared_layers ? 1 : seed, state);
          return state.weights;
        },
        folder_ / name);
    return (folder_ / name).string();
  }
};

}  // namespace frostpipe::test
