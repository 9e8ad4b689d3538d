// Oracle: Hugging Face transformers' BertModel on the real MiniLM weights, recorded by scripts/record-reference; 1e-4
// in fp32.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "executor/models/folder/model_folder.h"
#include "executor/models/layer_state.h"
#include "executor/models/layers.h"
#include "tests/executor/padded_batch.h"
#include "tests/support/reference_data.h"

namespace frostpipe {
namespace {

void expect_close(const at::Tensor& values, const nlohmann::json& expected, const std::string& what) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(values[static_cast<std::int64_t>(i)].item<double>(), expected[i].get<double>(), 1e-4)
        << what << "[" << i << "]";
  }
}

TEST(Encoder, HiddenStatesEqualTransformersOnTheRealWeights) {
  const std::optional<std::filesystem::path> minilm = test::minilm_folder();
  if (!minilm) GTEST_SKIP() << test::kNoMinilm;
  const nlohmann::json& reference = test::reference_data("minilm_reference.json");
  const auto& sentences = reference["sentences"];
  const auto count = static_cast<std::int64_t>(sentences.size());
  MicroBatch batch;
  std::vector<std::int64_t> all_ids;
  for (const nlohmann::json& sentence : sentences) {
    const auto ids = sentence["input_ids"].get<std::vector<std::int64_t>>();
    batch.lengths.push_back(static_cast<std::int64_t>(ids.size()));
    all_ids.insert(all_ids.end(), ids.begin(), ids.end());
  }
  batch.input = at::tensor(all_ids, at::kLong);
  ModelFolder folder = open_model_folder(*minilm);
  folder.config.task = Task::question_answering;  // its head uses every token of the last block
  const WeightFiles weights(folder.path);
  const Model model = model_of(folder.config, folder.name);
  const at::NoGradGuard no_grad;
  at::Tensor x;
  for (int layer = 0; layer + 1 < static_cast<int>(model.layers.size()); ++layer) {
    LayerState state =
        make_layer_state(parameters_of(folder.config, layer), {at::kFloat, at::kFloat}, at::kCPU, /*trains=*/false, 0);
    load_layer(folder, weights, layer, 0, state);
    x = forward_layer(folder.config, layer, state.parameters, x, batch);
  }
  x = test::padded(x, batch.lengths);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string what = sentences[i]["text"].get<std::string>().substr(0, 30);
    const auto length = static_cast<std::int64_t>(sentences[i]["input_ids"].size());
    expect_close(x[i][0], sentences[i]["first_token_first_8"], what + " first token");
    expect_close(x[i][length - 1], sentences[i]["last_token_first_8"], what + " last token");
    const at::Tensor mean = x[i].narrow(0, 0, length).mean(0);
    expect_close(mean, sentences[i]["mean_first_16"], what + " mean");
    EXPECT_NEAR(mean.norm().item<double>(), sentences[i]["mean_l2_norm"].get<double>(), 1e-4) << what;
  }
}

}  // namespace
}  // namespace frostpipe
