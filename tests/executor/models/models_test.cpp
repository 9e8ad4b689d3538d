// Oracle: Hugging Face transformers on small models whose weights a formula gives, recorded by
// scripts/record-reference: logits, loss and gradients in fp32.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "executor/loading/dataset.h"
#include "executor/models/folder/model_config.h"
#include "executor/models/folder/model_folder.h"
#include "executor/models/task.h"
#include "profiles/error.h"
#include "tests/executor/padded_batch.h"
#include "tests/support/reference_data.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

std::vector<float> values_of(std::int64_t count, int number, bool is_scale) {
  std::vector<float> values(count);
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(0.3 * std::sin(0.7 * static_cast<double>(i) + number) + (is_scale ? 1 : 0));
  return values;
}

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

class ModelsTest : public test::ScratchFolderTest {
 protected:
  void write_config(const Json& config) { std::ofstream(folder_ / "config.json") << config; }

  /// The files of a recorded model; `parts`: in how many.
  void write_model(const Json& recorded, int parts = 1) {
    write_config(recorded["config"]);
    Json index;
    for (int part = 0; part < parts; ++part) {
      const std::string file = parts == 1 ? "model.safetensors" : "part-" + std::to_string(part) + ".safetensors";
      std::vector<SafetensorsWriter::Entry> entries;
      std::vector<std::vector<float>> contents;
      int number = 0;
      for (const auto& [name, shape] : recorded["shapes"].items()) {  // in order of their names, as recorded
        const auto sizes = shape.get<std::vector<std::int64_t>>();
        if (number % parts == part) {
          entries.push_back({name, "F32", sizes});
          contents.push_back(values_of(count_of(sizes), number, sizes.size() == 1 && name.ends_with("weight")));
          index["weight_map"][name] = file;
        }
        ++number;
      }
      SafetensorsWriter writer(folder_ / file, entries);
      for (const std::vector<float>& content : contents) writer.write(std::as_bytes(std::span(content)));
      writer.finish();
    }
    if (parts > 1) std::ofstream(folder_ / "model.safetensors.index.json") << index;
  }
};

at::Tensor integers(const Json& rows) {
  std::vector<std::int64_t> flat;
  std::vector<std::int64_t> sizes{static_cast<std::int64_t>(rows.size())};
  for (const Json& row : rows) {
    if (!row.is_array()) {
      flat.push_back(row);
      continue;
    }
    for (const Json& value : row) flat.push_back(value);
  }
  if (rows[0].is_array()) sizes.push_back(static_cast<std::int64_t>(rows[0].size()));
  return at::tensor(flat, at::kLong).view(sizes);
}

MicroBatch batch_of(const Json& recorded, const TransformerConfig& config) {
  MicroBatch batch;
  at::Tensor mask = at::ones({3, image_tokens(config)}, at::kLong);
  if (config.family != Family::vit) mask = integers(recorded["mask"]);
  for (std::int64_t i = 0; i < mask.size(0); ++i) batch.lengths.push_back(mask[i].sum().item<std::int64_t>());
  const auto packed = [&](const Json& rows) { return integers(rows).masked_select(mask == 1); };
  batch.input = config.family == Family::vit
                    ? at::sin(0.9 * at::arange(3 * 3 * 6 * 6, at::kDouble)).to(at::kFloat).view({3, 3, 6, 6})
                    : packed(recorded["input_ids"]);
  if (!recorded["token_types"].is_null()) batch.token_types = packed(recorded["token_types"]);
  const Json& labels = recorded["labels"];
  switch (config.task) {
    case Task::question_answering:
      batch.labels = at::stack({integers(labels["start_positions"]), integers(labels["end_positions"])}, 1);
      break;
    case Task::causal_language_modeling:
      batch.labels = packed(labels["labels"]);
      break;
    default:
      batch.labels = integers(labels["labels"]);
  }
  return batch;
}

double largest_of(const Json& values) {
  double largest = 0;
  for (const Json& value : values) largest = std::max(largest, std::abs(value.get<double>()));
  return largest;
}

/// The exactness tests' bound for float32: 1e-5 of the tensor, and 1e-6 (16 units of rounding) of `scale`, the largest
/// of the terms that it sums up. A tensor that is zero but for rounding, such as the gradient of a bias that a softmax
/// takes out again, has no scale of its own: what is left of its terms is another number on every CPU. `compared`: 0
/// where `expected` holds a value of padding.
void expect_close(const at::Tensor& values, const Json& expected, double scale, const std::string& what,
                  const at::Tensor& compared = {}) {
  const at::Tensor flat = values.detach().reshape(-1).to(at::kDouble);
  const std::int64_t stride = std::max<std::int64_t>(1, flat.numel() / 24);
  const bool is_thinned = static_cast<std::int64_t>(expected.size()) < flat.numel();
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::int64_t index = static_cast<std::int64_t>(i) * (is_thinned ? stride : 1);
    if (compared.defined() && compared.reshape(-1)[index].item<double>() == 0) continue;
    worst = std::max(worst, std::abs(flat[index].item<double>() - expected[i].get<double>()));
  }
  EXPECT_LE(worst, 1e-5 * largest_of(expected) + 1e-6 * scale) << what;
}

TEST_F(ModelsTest, LogitsLossAndGradientsOfEveryHeadEqualTransformers) {
  const Json& reference = test::reference_data("models_reference.json");
  ASSERT_EQ(reference["models"].size(), 6u);
  for (const Json& recorded : reference["models"]) {
    const std::string architecture = recorded["config"]["architectures"][0];
    SCOPED_TRACE(architecture);
    for (const int parts : {1, 3}) {  // one file, or several and an index
      std::filesystem::remove_all(folder_);
      std::filesystem::create_directories(folder_);
      write_model(recorded, parts);
      ModelFolder folder = open_model_folder(folder_);
      EXPECT_EQ(architecture_of(folder.config), architecture);
      if (folder.config.task == Task::sequence_classification || folder.config.task == Task::image_classification)
        set_task(folder, folder.config.task, {"0", "1", "2"});
      const TransformerConfig& config = folder.config;
      const WeightFiles weights(folder.path);
      EXPECT_EQ(check_weights(folder, weights), std::vector<std::string>{});
      const int num_layers = static_cast<int>(2 * config.num_hidden_layers + 2);
      std::vector<LayerState> layers;
      for (int layer = 0; layer < num_layers; ++layer) {
        layers.push_back(
            make_layer_state(parameters_of(config, layer), {at::kFloat, at::kFloat}, at::kCPU, /*trains=*/true, 0));
        load_layer(folder, weights, layer, 1, layers.back());
      }
      const MicroBatch batch = batch_of(recorded, config);
      at::Tensor x;
      for (int layer = 0; layer < num_layers; ++layer)
        x = forward_layer(config, layer, layers[layer].parameters, x, batch);
      const bool is_by_token = x.size(0) == batch.num_tokens();
      expect_close(is_by_token ? test::padded(x, batch.lengths) : x, recorded["logits"], largest_of(recorded["logits"]),
                   "logits", is_by_token ? test::padded(at::ones_like(x), batch.lengths) : at::Tensor());
      const at::Tensor loss = loss_sum(config.task, x, batch, 0) / 3.0;
      EXPECT_NEAR(loss.item<double>(), recorded["loss"].get<double>(), 1e-5);
      torch::autograd::backward({loss}, {});
      std::map<std::string, at::Tensor> gradients;  // as the file has its tensors
      for (int layer = 0; layer < num_layers; ++layer) {
        const std::vector<ParameterSpec> specs = parameters_of(config, layer);
        for (std::size_t i = 0; i < specs.size(); ++i) {
          at::Tensor whole = layers[layer].parameters[i].gradient;
          const auto pieces = static_cast<std::int64_t>(specs[i].names.size());
          for (std::int64_t piece = 0; piece < pieces; ++piece) {
            at::Tensor gradient = whole.narrow(0, piece * (whole.size(0) / pieces), whole.size(0) / pieces);
            if (specs[i].transposed) gradient = gradient.t().contiguous();
            gradients[specs[i].names[piece]] = gradient;
          }
        }
      }
      if (config.ties_embeddings && config.task == Task::causal_language_modeling)
        gradients["transformer.wte.weight"] = gradients["transformer.wte.weight"] + gradients["lm_head.weight"];
      double scale = 0;  // of all gradients together
      for (const Json& expected : recorded["gradients"]) scale = std::max(scale, largest_of(expected));
      for (const auto& [name, expected] : recorded["gradients"].items()) {
        ASSERT_TRUE(gradients.contains(name)) << name;
        expect_close(gradients.at(name), expected, scale, name);
      }
    }
  }
}

/// Worked out by hand: the question is token 0, the context 1 to 3. Token 3 closes BERT's second segment; GPT-2's has
/// no such token. Another sample follows, whose tokens would all be better.
TEST(Answers, BestSpanIsOfTheContextAlone) {
  MicroBatch batch;
  batch.lengths = {4, 2};
  batch.token_types = at::tensor({0, 1, 1, 1, 0, 1}, at::kLong);
  const at::Tensor logits = at::tensor({9.f, 9.f, 1.f, 0.f, 2.f, 3.f, 0.f, 5.f, 9.f, 9.f, 9.f, 9.f})
                                .view({6, 2});  // start and end of each token
  const auto best = [&](Family family) {
    const at::Tensor answer = answers_of({.family = family, .task = Task::question_answering}, logits, batch);
    return std::vector<double>(answer.data_ptr<double>(), answer.data_ptr<double>() + 3);
  };
  EXPECT_EQ(best(Family::bert), (std::vector<double>{2, 2, 5}));
  EXPECT_EQ(best(Family::gpt2), (std::vector<double>{2, 3, 7}));
}

/// Worked out by hand: e^ln 3 / (e^0 + e^ln 3) = 3/4.
TEST(Answers, AClassComesWithItsProbability) {
  const at::Tensor logits = at::tensor({0.0, std::log(3.0), 5.0, 5.0}, at::kDouble).view({2, 2});
  for (const Task task : {Task::sequence_classification, Task::image_classification}) {
    const at::Tensor answer = answers_of({.task = task}, logits, MicroBatch());
    ASSERT_EQ(answer.sizes(), (std::vector<std::int64_t>{2, answer_size(task)}));
    const double* const value = answer.data_ptr<double>();
    EXPECT_EQ(value[0], 1);
    EXPECT_NEAR(value[1], 0.75, 1e-12);
    EXPECT_EQ(value[2], 0);
    EXPECT_NEAR(value[3], 0.5, 1e-12);
  }
}

TEST_F(ModelsTest, WhatCannotBeReadIsNamed) {
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
  config["model_type"] = "llama";
  write_config(config);
  refused("model_type: must be bert, vit or gpt2", [&] { open_model_folder(folder_); });
  config["model_type"] = "bert";
  config["hidden_act"] = "relu";
  write_config(config);
  refused("hidden_act: must be \"gelu\"", [&] { open_model_folder(folder_); });

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

  // A head for other labels, or none, starts at random; a base model without prefix is one too.
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

  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);  // would be waited for
  std::ofstream(folder_ / "model.safetensors.index.json") << R"({"weight_map": {"x": "pipe"}})";
  refused("pipe: must be a regular file, is a pipe", [&] { WeightFiles files(folder_); });
}

// A classifier says something for the labels that it was trained for, in their order, alone.
TEST_F(ModelsTest, AClassifierIsKeptForItsOwnLabels) {
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

/// A folder that is written is read back to the bit, whatever the files have stacked, transposed or tied.
TEST_F(ModelsTest, AWrittenFolderHasTheWeightsThatItWasGiven) {
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
    const bool is_tied = folder.config.ties_embeddings && folder.config.task == Task::causal_language_modeling;
    write_model_folder(
        folder, is_tied, [&](int layer) { return weights_in(folder, layer); }, target);
    const ModelFolder written = open_model_folder(target);
    EXPECT_EQ(written.config.task, folder.config.task);
    EXPECT_EQ(written.label_names, folder.label_names);
    EXPECT_EQ(check_weights(written, WeightFiles(target)), std::vector<std::string>{});
    for (int layer = 0; layer < 2 * folder.config.num_hidden_layers + 2; ++layer)
      EXPECT_TRUE(at::equal(weights_in(written, layer), weights_in(folder, layer))) << "layer " << layer;
  }
}

TEST_F(ModelsTest, NormsMayBeCalledGammaAndBeta) {
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

TEST_F(ModelsTest, DataIsNumberedAsTheFoldersLabels) {
  Json recorded = test::reference_data("models_reference.json")["models"][0];
  recorded["config"]["id2label"] = {{"0", "pos"}, {"1", "neg"}};
  write_model(recorded);
  file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n");
  const auto data = file("data.tsv", "text\tlabel\na\tneg\nb\tpos\nc\tneg\nd\tpos\n");
  ModelFolder folder = open_model_folder(folder_);
  const Dataset dataset = load_dataset({.data = data, .test_data = {}, .held_out = 0.5}, {}, folder);
  EXPECT_EQ(dataset.label_names, (std::vector<std::string>{"pos", "neg"}));
  EXPECT_EQ(dataset.labels, (std::vector<int>{1, 0, 1, 0}));
}

// Only the contexts that something is asked about are divided: with one such there is nothing to hold out.
TEST_F(ModelsTest, ContextsWithoutQuestionsAreNotHeldOut) {
  Json recorded = test::reference_data("models_reference.json")["models"][0];
  write_model(recorded);
  file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n");
  const auto question = [](const char* id) {
    return Json{{"id", id}, {"question", "q"}, {"answers", {{{"text", "c"}, {"answer_start", 0}}}}};
  };
  Json paragraphs = {{{"context", "c 0"}, {"qas", {question("0")}}}, {{"context", "c 1"}, {"qas", {question("1")}}}};
  for (int i = 0; i < 20; ++i) paragraphs.push_back({{"context", "c"}, {"qas", Json::array()}});
  const auto data = file("data.json", Json{{"data", {{{"title", "t"}, {"paragraphs", paragraphs}}}}}.dump());
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    ModelFolder folder = open_model_folder(folder_);
    const Dataset dataset =
        load_dataset({.data = data, .test_data = {}, .held_out = 0.5, .seed = seed}, {.window_overlap = 2}, folder);
    EXPECT_EQ(dataset.split.train.size(), 1u);
    EXPECT_EQ(dataset.split.test.size(), 1u);
  }
}

}  // namespace
}  // namespace frostpipe
