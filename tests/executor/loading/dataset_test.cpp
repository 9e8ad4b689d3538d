// Oracle: labels and parts of small data, by hand.
#include "executor/loading/dataset.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/models/folder/model_folder.h"
#include "tests/executor/models/recorded_model.h"
#include "tests/support/reference_data.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

class DatasetTest : public test::RecordedModelTest {};

TEST_F(DatasetTest, DataIsNumberedAsTheFoldersLabels) {
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

// Only contexts with questions are divided; with a single one nothing can be held out.
TEST_F(DatasetTest, ContextsWithoutQuestionsAreNotHeldOut) {
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
