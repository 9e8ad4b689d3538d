// Oracle: the models of models_reference.json, read unchanged or with changes made by hand.
#include "executor/models/folder/model_folder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "tests/executor/models/recorded_model.h"
#include "tests/support/reference_data.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

class ModelFolderTest : public test::RecordedModelTest {};

TEST_F(ModelFolderTest, UnreadableFilesAreNamed) {
  const Json& reference = test::reference_data("models_reference.json");
  const auto refused = [&](const std::string& says, const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << "nothing was said: " << says;
    } catch (const InvalidInput& error) {
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  };
  Json config = reference["models"][0]["config"];
  config["model_type"] = "t5";
  write_config(config);
  refused("model_type: must be one of bert, vit, gpt2, roberta", [&] { open_model_folder(folder_); });
  config["model_type"] = "bert";
  config["hidden_act"] = "mish";
  write_config(config);
  refused("hidden_act: must be one of gelu", [&] { open_model_folder(folder_); });

  Json recorded = reference["models"][0];
  recorded["shapes"]["bert.encoder.layer.1.output.dense.weight"] = {16, 25};
  write_model(recorded);
  refused("bert.encoder.layer.1.output.dense.weight",
          [&] { check_weights(open_model_folder(folder_), WeightFiles(folder_)); });
  recorded = reference["models"][0];
  recorded["shapes"].erase("bert.embeddings.word_embeddings.weight");
  write_model(recorded);
  refused("bert.embeddings.word_embeddings.weight",
          [&] { check_weights(open_model_folder(folder_), WeightFiles(folder_)); });

  // A head for other labels, or a missing one, starts at random; names may lack the base model's prefix.
  recorded = reference["models"][0];
  write_model(recorded);
  ModelFolder folder = open_model_folder(folder_);
  set_task(folder, Task::sequence_classification, {"a", "b", "c", "d", "e"});
  EXPECT_EQ(check_weights(folder, WeightFiles(folder_)),
            (std::vector<std::string>{"classifier.weight (there, but for other labels)",
                                      "classifier.bias (there, but for other labels)"}));
  set_task(folder, Task::question_answering, {});
  EXPECT_EQ(check_weights(folder, WeightFiles(folder_)),
            (std::vector<std::string>{"qa_outputs.weight", "qa_outputs.bias"}));
  refused("must be of a model with a head for image classification", [&] {
    set_task(folder, Task::image_classification, {"a", "b"});
  });
  std::filesystem::remove(folder_ / "model.safetensors");
  EXPECT_EQ(check_weights(folder, WeightFiles(folder_)), std::vector<std::string>{"the whole model"});

  file("pytorch_model.bin", "");
  refused("must hold its weights as model.safetensors", [&] { WeightFiles files(folder_); });

  std::ofstream(folder_ / "model.safetensors.index.json") << R"({"weight_map": {"x": "../elsewhere.safetensors"}})";
  refused("must be a file beside it", [&] { WeightFiles files(folder_); });

  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);  // reading it would wait
  std::ofstream(folder_ / "model.safetensors.index.json") << R"({"weight_map": {"x": "pipe"}})";
  refused("pipe: must be a regular file, is a pipe", [&] { WeightFiles files(folder_); });
}

// A classifier is only valid for the labels that it was trained for, in their order.
TEST_F(ModelFolderTest, AClassifierIsKeptForItsOwnLabels) {
  Json recorded = test::reference_data("models_reference.json")["models"][0];
  const auto starts_at_random = [&](const std::vector<std::string>& own, const std::vector<std::string>& wanted) {
    recorded["config"]["id2label"] = Json::object();
    for (std::size_t i = 0; i < own.size(); ++i) recorded["config"]["id2label"][std::to_string(i)] = own[i];
    write_model(recorded);
    ModelFolder folder = open_model_folder(folder_);
    set_task(folder, Task::sequence_classification, wanted);
    return check_weights(folder, WeightFiles(folder_)).size();
  };
  EXPECT_EQ(starts_at_random({"a", "b", "c"}, {"a", "b", "c"}), 0u);
  EXPECT_EQ(starts_at_random({"a", "b", "c"}, {"b", "a", "c"}), 2u) << "weight and bias";
  EXPECT_EQ(starts_at_random({"a", "b", "c"}, {"a", "b", "d"}), 2u);
  EXPECT_EQ(starts_at_random({"LABEL_0", "LABEL_1", "LABEL_2"}, {"0", "1", "2"}), 0u) << "labels that nobody named";
  EXPECT_EQ(starts_at_random({"LABEL_0", "LABEL_1", "LABEL_2"}, {"a", "b", "c"}), 2u);
}

// transformers' loss of a classifier follows from problem_type, else from the number of labels; one label means
// regression.
TEST_F(ModelFolderTest, AClassifierOfAnotherProblemStartsAtRandom) {
  Json recorded = test::reference_data("models_reference.json")["models"][0];
  recorded["config"]["id2label"] = {{"0", "a"}, {"1", "b"}, {"2", "c"}};
  const auto missing = [&](const std::vector<std::string>& labels, ProblemType problem_type) {
    write_model(recorded);
    ModelFolder folder = open_model_folder(folder_);
    set_task(folder, Task::sequence_classification, labels, problem_type);
    const std::vector<std::string> tensors = check_weights(folder, WeightFiles(folder_));
    return tensors.empty() ? "" : tensors.front();
  };
  const std::vector<std::string> names{"a", "b", "c"};
  EXPECT_EQ(missing(names, ProblemType::single_label), "");
  EXPECT_EQ(missing(names, ProblemType::multi_label), "classifier.weight (there, but for single_label_classification)");
  for (const ProblemType problem_type : {ProblemType::multi_label, ProblemType::regression}) {
    recorded["config"]["problem_type"] = to_string(problem_type);
    EXPECT_EQ(missing(names, problem_type), "");
    EXPECT_EQ(missing(names, ProblemType::single_label),
              std::string("classifier.weight (there, but for ") + to_string(problem_type) + ")");
  }
  recorded["config"]["problem_type"] = "ranking";
  write_config(recorded["config"]);
  EXPECT_EQ(message_of([&] { open_model_folder(folder_); }),
            "config.json: problem_type: must be one of single_label_classification, multi_label_classification, "
            "regression, or "
            "missing, is \"ranking\"");
  recorded["config"].erase("problem_type");
  recorded["config"]["id2label"] = {{"0", "LABEL_0"}};
  recorded["shapes"]["classifier.weight"][0] = recorded["shapes"]["classifier.bias"][0] = 1;
  EXPECT_EQ(missing({"LABEL_0"}, ProblemType::regression), "");
}

// Heads of several tasks may have the same names: BERT's for texts and for tokens, ModernBERT's all.
TEST_F(ModelFolderTest, AHeadOfAnotherTaskStartsAtRandom) {
  Json recorded = test::reference_data("models_reference.json")["models"][0];
  write_model(recorded);
  ModelFolder folder = open_model_folder(folder_);
  set_task(folder, Task::token_classification, {"0", "1", "2"});
  EXPECT_EQ(check_weights(folder, WeightFiles(folder_)),
            (std::vector<std::string>{"classifier.weight (there, but for sequence classification)",
                                      "classifier.bias (there, but for sequence classification)"}));
}

TEST_F(ModelFolderTest, TheNumberOfLabelsCountsWhereTheyHaveNoNames) {
  Json config = test::reference_data("models_reference.json")["models"][0]["config"];
  config.erase("id2label");
  config.erase("num_labels");
  write_config(config);
  EXPECT_EQ(open_model_folder(folder_).config.num_labels, 2) << "transformers' default";
  config["num_labels"] = 5;
  write_config(config);
  EXPECT_EQ(open_model_folder(folder_).config.num_labels, 5);
}

/// A written folder is read back bitwise equal, whatever tensors the files stack, transpose or tie.
TEST_F(ModelFolderTest, AWrittenFolderHasTheWeightsThatItWasGiven) {
  const Json& reference = test::reference_data("models_reference.json");
  for (const Json& recorded : reference["models"]) {
    SCOPED_TRACE(recorded["config"]["architectures"][0]);
    std::filesystem::remove_all(folder_);
    const std::filesystem::path target = folder_ / "written";
    std::filesystem::create_directories(target);
    write_model(recorded);
    ModelFolder folder = open_model_folder(folder_);
    if (folder.config.task == Task::sequence_classification || folder.config.task == Task::image_classification)
      set_task(folder, folder.config.task, {"0", "1", "2"});
    const auto weights_in = [&](const ModelFolder& one, int layer) {
      LayerState state =
          make_layer_state(parameters_of(one.config, layer), {at::kFloat, at::kFloat}, at::kCPU, /*trains=*/false, 0);
      load_layer(one, WeightFiles(one.path), layer, /*seed=*/1, state);
      return state.weights;
    };
    const bool embeddings_are_tied =
        folder.config.ties_embeddings && folder.config.task == Task::causal_language_modeling;
    std::ofstream(folder.path / "added_tokens.json") << R"({"<new>": 30522})";
    write_model_folder(
        folder, embeddings_are_tied, [&](int layer) { return weights_in(folder, layer); }, target);
    EXPECT_EQ(read_text_file(target / "added_tokens.json"), R"({"<new>": 30522})") << "part of the tokenizer";
    const ModelFolder written = open_model_folder(target);
    EXPECT_EQ(written.config.task, folder.config.task);
    EXPECT_EQ(written.label_names, folder.label_names);
    EXPECT_EQ(check_weights(written, WeightFiles(target)), std::vector<std::string>{});
    for (int layer = 0; layer < num_layers(folder.config); ++layer)
      EXPECT_TRUE(at::equal(weights_in(written, layer), weights_in(folder, layer))) << "layer " << layer;
  }
}

/// As in transformers, which ties after loading.
TEST_F(ModelFolderTest, ATiedHeadIsTheEmbeddingWhateverMatrixTheFilesHave) {
  const Json& models = test::reference_data("models_reference.json")["models"];
  Json recorded = *std::ranges::find_if(
      models, [](const Json& one) { return one["config"]["architectures"][0] == "GPT2LMHeadModel"; });
  const Json embedding = recorded["shapes"]["transformer.wte.weight"];
  for (const int more_rows : {0, 8}) {
    recorded["shapes"]["lm_head.weight"] = {embedding[0].get<int>() + more_rows, embedding[1]};
    write_model(recorded);
    const ModelFolder folder = open_model_folder(folder_);
    ASSERT_GT(tied_parameter_count(folder.config), 0);
    EXPECT_EQ(check_weights(folder, WeightFiles(folder_)), std::vector<std::string>{});
    const auto parameter = [&](int layer, Role role) {
      const std::vector<ParameterSpec> specs = parameters_of(folder.config, layer);
      LayerState state = make_layer_state(specs, {at::kFloat, at::kFloat}, at::kCPU, /*trains=*/false, 0);
      load_layer(folder, WeightFiles(folder_), layer, /*seed=*/1, state);
      const auto found = std::ranges::find(specs, role, &ParameterSpec::role);
      return kept_parameters(state).at(found - specs.begin());
    };
    EXPECT_TRUE(at::equal(parameter(num_layers(folder.config) - 1, Role::classes), parameter(0, Role::words)));
  }
}

TEST_F(ModelFolderTest, TheNameIsThatOfTheFolderInNameOrPath) {
  EXPECT_EQ(model_name("folder", R"({"_name_or_path": "./my-bert/"})"), "my-bert");
  EXPECT_EQ(model_name("folder", R"({"_name_or_path": "google/bert"})"), "bert");
  EXPECT_EQ(model_name("folder", R"({"_name_or_path": "/"})"), "folder");
}

TEST_F(ModelFolderTest, NormsMayBeCalledGammaAndBeta) {
  Json recorded = test::reference_data("models_reference.json")["models"][0];
  const Json shapes = std::exchange(recorded["shapes"], Json::object());
  for (const auto& [name, shape] : shapes.items()) {
    std::string old = name;
    if (name.ends_with("LayerNorm.weight")) old = name.substr(0, name.size() - 6) + "gamma";
    if (name.ends_with("LayerNorm.bias")) old = name.substr(0, name.size() - 4) + "beta";
    recorded["shapes"][old] = shape;
  }
  ASSERT_TRUE(recorded["shapes"].contains("bert.embeddings.LayerNorm.gamma"));
  write_model(recorded);
  ModelFolder folder = open_model_folder(folder_);
  set_task(folder, Task::sequence_classification, {"0", "1", "2"});
  EXPECT_EQ(check_weights(folder, WeightFiles(folder_)), std::vector<std::string>{});
}

}  // namespace
}  // namespace frostpipe
