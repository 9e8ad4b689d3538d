// Oracle: Hugging Face transformers on small models whose weights a formula gives, recorded by
// scripts/record-reference: logits, loss and gradients in fp32.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "executor/models/folder/model_config.h"
#include "executor/models/folder/model_folder.h"
#include "executor/models/task.h"
#include "tests/executor/models/recorded_model.h"
#include "tests/executor/padded_batch.h"
#include "tests/support/reference_data.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

class ModelsTest : public test::RecordedModelTest {};

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
      const at::Tensor loss = loss_sum(config, x, batch, 0) / 3.0;
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

}  // namespace
}  // namespace frostpipe
