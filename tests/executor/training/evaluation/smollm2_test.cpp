// Real weights: SmolLM2-135M-Instruct in float32, as unpacked by scripts/record-reference. Oracle: transformers'
// results for the same folder (smollm2_reference.json).
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "executor/execute.h"
#include "executor/models/layers.h"
#include "executor/training/evaluation/completions.h"
#include "executor/training/evaluation/whole_model.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe::test {
namespace {

class SmolLm2 : public ScratchFolderTest {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("FROSTPIPE_SMOLLM2_FOLDER");
    if (!folder)
      GTEST_SKIP() << "SmolLM2's own weights are NOT tested: set FROSTPIPE_SMOLLM2_FOLDER to the folder that "
                      "scripts/record-reference unpacks";
    model_folder_ = open_model_folder(folder);
    set_task(model_folder_, Task::causal_language_modeling, {});
    std::ifstream(FROSTPIPE_TEST_DATA "/smollm2_reference.json") >> recorded_;
    EncodedData data{.token_ids = {}, .labels = {}, .labels_per_sample = 0};
    for (const auto& prompt : recorded_["prompts"]) prompts_.push_back(prompt["ids"]);
    data.token_ids = prompts_;
    samples_ = std::make_unique<TokenSamples>(std::move(data));
    model_ = std::make_unique<WholeModel>(model_folder_, WeightFiles(folder), *samples_, "cpu");
  }

  ModelFolder model_folder_;
  nlohmann::json recorded_;
  std::vector<TokenIds> prompts_;
  std::unique_ptr<Samples> samples_;
  std::unique_ptr<WholeModel> model_;
};

TEST_F(SmolLm2, GreedyCompletionsOf50PromptsEqualTransformers) {
  const std::vector<TokenIds> found = completions_of(prompts_,
                                                     {.end_tokens = {2},
                                                      .max_new_tokens = 20,
                                                      .longest = model_folder_.config.max_position_embeddings,
                                                      .max_samples = 16},
                                                     &model_->runner(), nullptr);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& prompt = recorded_["prompts"][i];
    EXPECT_EQ(found[i], prompt["completion_ids"].get<TokenIds>()) << prompt["prompt"];
  }
}

TEST_F(SmolLm2, BestLogitsAfterEachTokenEqualTransformers) {
  const at::NoGradGuard no_grad;
  double worst = 0;
  for (const auto& prompt : recorded_["prompts"]) {
    if (!prompt.contains("top_ids")) continue;
    const auto ids = prompt["ids"].get<std::vector<std::int64_t>>();
    const MicroBatch batch{.lengths = {std::ssize(ids)}, .input = at::tensor(ids, at::kLong)};
    at::Tensor x;
    for (const auto& [layer, state] : model_->layers())
      x = forward_layer(model_folder_.config, layer, state.parameters, x, batch);
    for (std::size_t token = 0; token < ids.size(); ++token) {
      const auto best = prompt["top_ids"][token].get<std::vector<std::int64_t>>();
      const auto logits = prompt["top_logits"][token].get<std::vector<double>>();
      for (std::size_t i = 0; i < best.size(); ++i) {
        const double found = x[static_cast<std::int64_t>(token)][best[i]].item<double>();
        worst = std::max(worst, std::abs(found - logits[i]));
      }
    }
  }
  // Logits are up to 40 and recorded to 7 digits; both sides round in float32.
  EXPECT_LE(worst, 2e-4);
  RecordProperty("worst", std::to_string(worst));
}

TEST_F(SmolLm2, LossesOfPromptsEqualTransformers) {
  std::vector<int> all(prompts_.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<double> answers = model_->runner().answers(*samples_, all, 16);
  int compared = 0;
  for (std::size_t i = 0; i < prompts_.size(); ++i) {
    const auto& prompt = recorded_["prompts"][i];
    if (!prompt.contains("loss")) continue;
    EXPECT_NEAR(answers[3 * i], prompt["loss"].get<double>(), 1e-5) << prompt["prompt"];
    ++compared;
  }
  EXPECT_EQ(compared, 5);
}

/// Chats, whose last turn is the expected text, and plain texts.
TEST_F(SmolLm2, EvaluateWritesTheCompletionsOfTransformersAfterChatsAndPrompts) {
  std::string records;
  for (auto record : recorded_["prompts"]) {
    if (record.contains("messages")) {
      record["messages"].push_back({{"role", "assistant"}, {"content", "Expected."}});
      records += nlohmann::json{{"messages", record["messages"]}}.dump() + "\n";
    } else {
      records += nlohmann::json{{"prompt", record["prompt"]}, {"completion", "Expected."}}.dump() + "\n";
    }
  }
  const Evaluation evaluation = evaluate({.model = model_folder_.path,
                                          .data = file("prompts.jsonl", records),
                                          .predicts = true,
                                          .max_new_tokens = 20,
                                          .batch_size = 16},
                                         [](double, const std::string&) {});
  std::istringstream lines(evaluation.predictions_file);
  std::string line;
  for (const auto& recorded : recorded_["prompts"]) {
    ASSERT_TRUE(std::getline(lines, line));
    const auto found = nlohmann::json::parse(line);
    EXPECT_EQ(found["prompt"], recorded["prompt"]);
    EXPECT_EQ(found["completion"], recorded["completion"]);
    EXPECT_EQ(found["expected"], "Expected.");
  }
  EXPECT_FALSE(std::getline(lines, line));
}

}  // namespace
}  // namespace frostpipe::test
