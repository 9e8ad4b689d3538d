#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "executor/loading/text_encoder.h"
#include "executor/models/folder/model_config.h"
#include "executor/models/folder/model_folder.h"
#include "executor/models/task.h"
#include "serving/server/servable_model.h"
#include "serving/server/transformer/shared_layers.h"

namespace frostpipe {
namespace {

ServedTask served_task(const ModelFolder& folder) {
  switch (folder.config.task) {
    case Task::sequence_classification:
      require_single_label(folder.config.problem_type, folder.path);
      return ServedTask::text_classification;
    case Task::image_classification:
      require_single_label(folder.config.problem_type, folder.path);
      return ServedTask::image_classification;
    case Task::causal_language_modeling:
      return ServedTask::language_modeling;
    default:
      throw InvalidInput(folder.path.string(), "must be a classifier of texts or pictures, or a language model",
                         fmt::format("made for {}", to_string(folder.config.task)));
  }
}

bool has_tokenizer(const std::filesystem::path& folder) {
  return std::ranges::any_of(std::array{"tokenizer.json", "vocab.txt", "vocab.json"},
                             [&](const char* name) { return std::filesystem::exists(folder / name); });
}

void require_weights(const ModelFolder& folder) {
  const std::vector<std::string> missing = check_weights(folder, WeightFiles(folder.path));
  if (!missing.empty())
    throw InvalidInput(folder.path.string() + ": weights", "must all be there to be served",
                       "without " + missing.front());
}

std::vector<std::string> label_names_of(const ModelFolder& folder) {
  std::vector<std::string> names = folder.label_names;
  if (served_task(folder) == ServedTask::language_modeling) return names;
  for (auto label = static_cast<std::int64_t>(names.size()); label < folder.config.num_labels; ++label)
    names.push_back(fmt::format("LABEL_{}", label));
  return names;
}

void require_planned(const ModelFolder& folder, const ServedModel& planned) {
  const int num_layers = static_cast<int>(model_of(folder.config, folder.name).layers.size());
  if (planned.blocks.back().end != num_layers)
    throw InvalidInput(
        folder.path.string(),
        fmt::format("must have the {} layers that the plan has of {}", planned.blocks.back().end, planned.name),
        std::to_string(num_layers));
  const bool is_image = folder.config.task == Task::image_classification;
  const std::int64_t most = is_image ? folder.config.num_patches() + 1 : folder.config.max_position_embeddings;
  if (is_image ? planned.tokens != most : planned.tokens > most)
    throw InvalidInput(fmt::format("the plan's tokens of {}", planned.name),
                       fmt::format("must be {}{}, the number of tokens that the model in {} takes",
                                   is_image ? "" : "at most ", most, folder.path.string()),
                       std::to_string(planned.tokens));
}

}  // namespace

ServableModel open_servable_model(const std::vector<HeadFolder>& heads, const ServedModel& planned, DType dtype) {
  ServableModel model;
  model.form.heads.clear();
  std::vector<ModelFolder> folders;
  for (const HeadFolder& head : heads) {
    model.folder_bytes.push_back(read_folder_bytes(head.folder));
    const ModelFolder& folder = folders.emplace_back(open_model_folder(head.folder));
    require_weights(folder);
    require_planned(folder, planned);
    model.folders.push_back(head.folder.string());
    model.form.heads.push_back({.name = head.name, .label_names = label_names_of(folder)});
  }
  if (planned.shared_prefix) require_shared_layers(folders, planned.shared_prefix->layers);
  const ModelFolder& folder = folders.front();
  const TransformerConfig& config = folder.config;
  model.form.task = served_task(folder);
  model.form.max_tokens = planned.tokens;
  if (model.form.task == ServedTask::image_classification) {
    model.form.image_size = static_cast<int>(config.image_size);
    model.shape.pixels = static_cast<int>(3 * config.image_size * config.image_size);
  } else {
    model.form.vocabulary_size = config.vocab_size;
    if (config.reads_last_token())
      model.form.drop_padding = [config](std::vector<std::int32_t>& ids) { drop_padding(config, ids); };
    if (has_tokenizer(folder.path)) {
      model.form.tokens_of = text_encoder(folder, planned.tokens);
      model.form.is_cut = [longer = text_encoder(folder, planned.tokens + 1),
                           most = static_cast<std::size_t>(planned.tokens)](std::string_view text) {
        return longer(text).size() > most;
      };
    }
  }
  model.shape.max_tokens = planned.tokens;
  model.shape.heads = static_cast<int>(heads.size());
  model.shape.activation_bytes = config.hidden_size * bytes_per_value(dtype);
  model.shape.answer_size = static_cast<int>(answer_shape(config).size(planned.tokens));
  return model;
}

}  // namespace frostpipe
