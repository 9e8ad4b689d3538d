// Oracle: labels and parts of small data, by hand.
#include "executor/loading/dataset.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/models/folder/model_folder.h"
#include "executor/models/task.h"
#include "tests/executor/models/recorded_model.h"
#include "tests/support/reference_data.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

class DatasetTest : public test::RecordedModelTest {
 protected:
  /// Writes the files of a byte-level tokenizer that ends texts and pairs of texts with token 0, <|endoftext|>. Returns
  /// the config of a GPT-2 with its vocabulary.
  Json decoder_whose_texts_end() const {
    const Json end = "<|endoftext|>", piece = {{"SpecialToken", {{"id", end}, {"type_id", 0}}}};
    Json tokenizer = test::small_byte_level_tokenizer();
    for (const char* texts : {"single", "pair"}) tokenizer["post_processor"][texts].push_back(piece);
    tokenizer["post_processor"]["special_tokens"] = {
        {end, {{"id", end}, {"ids", Json::array({0})}, {"tokens", Json::array({end})}}}};
    file("tokenizer.json", tokenizer.dump());
    Json config;
    for (const Json& one : test::reference_data("models_reference.json")["models"])
      if (one["config"]["model_type"] == "gpt2") config = one["config"];
    config["vocab_size"] = 600;
    return config;
  }
  /// The samples of one question, with two words, about a text of three.
  MicroBatch question() const {
    const auto data = file("question.json", R"({"data": [{"paragraphs": [{"context": "b c b", "qas": [
        {"id": "1", "question": "a a", "answers": [{"text": "c", "answer_start": 2}]}]}]}]})");
    ModelFolder folder = open_model_folder(folder_);
    const Dataset dataset =
        load_dataset({.data = data, .test_data = {}, .held_out = 0}, {.max_tokens = 12, .window_overlap = 2}, folder);
    return dataset.samples->load({}, dataset.split.train, at::kFloat, /*with_input=*/true);
  }
};

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

TEST_F(DatasetTest, AContextEndsBeforeTheTokensThatCloseAPair) {
  write_config(test::reference_data("models_reference.json")["models"][0]["config"]);
  file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\n");
  const MicroBatch bert = question();  // [CLS] a a [SEP] b c b [SEP]
  EXPECT_EQ(bert.contexts, (std::vector<TokenRange>{{4, 7}}));
  EXPECT_TRUE(bert.token_types.equal(at::tensor({0, 0, 0, 0, 1, 1, 1, 1}, at::kLong))) << bert.token_types;
  write_config(decoder_whose_texts_end());
  const MicroBatch decoder = question();
  const std::int64_t length = decoder.lengths.front();
  ASSERT_EQ(decoder.input[length - 1].item<std::int64_t>(), 0);
  ASSERT_EQ(decoder.contexts.size(), 1u);
  EXPECT_EQ(decoder.contexts[0].end, length - 1);
}

// In transformers, the tokenizers of these families return no token_type_ids.
TEST_F(DatasetTest, TokensOfRobertaAndItsRelativesAreOfOneType) {
  Json config;
  for (const Json& one : test::reference_data("encoders_reference.json")["models"])
    if (one["config"]["model_type"] == "roberta") config = one["config"];
  config["type_vocab_size"] = 2;
  file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\n");
  for (const char* family : {"roberta", "xlm-roberta", "camembert"}) {
    config["model_type"] = family;
    write_config(config);
    const MicroBatch batch = question();
    EXPECT_FALSE(batch.token_types.defined()) << family;
    EXPECT_EQ(batch.contexts, (std::vector<TokenRange>{{4, 7}})) << family;
  }
}

// As transformers' run_ner has it: a word's label is that of its first token.
TEST_F(DatasetTest, ASentencesLabelsStandOnTheFirstTokensOfItsWords) {
  Json recorded = test::reference_data("models_reference.json")["models"][0];
  recorded["config"]["id2label"] = {{"0", "O"}, {"1", "B-X"}, {"2", "I-X"}};
  write_model(recorded);
  file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n##c\n##d\n");
  const auto data = file("data.conll", "bcd B-X\n\x01 I-X\na O\n\na O\nbc B-X\nbcd O\na O\n");
  ModelFolder folder = open_model_folder(folder_);
  const Dataset dataset = load_dataset({.data = data, .test_data = {}, .held_out = 0}, {.max_tokens = 7}, folder);
  EXPECT_EQ(dataset.task, Task::token_classification);
  EXPECT_EQ(folder.config.task, Task::token_classification);
  EXPECT_EQ(dataset.words.label_names, (std::vector<std::string>{"O", "B-X", "I-X"})) << "in the model's order";
  const std::vector<int> all{0, 1};
  const MicroBatch batch = dataset.samples->load({}, all, at::kFloat, /*with_input=*/true);
  constexpr std::int64_t none = kIgnored;
  EXPECT_TRUE(batch.input.equal(at::tensor({2, 5, 6, 7, 4, 3, 2, 4, 5, 6, 3}, at::kLong))) << batch.input;
  EXPECT_TRUE(batch.labels.equal(at::tensor({none, 1L, none, none, 0L, none, none, 0L, 1L, none, none}, at::kLong)))
      << batch.labels;
  EXPECT_EQ(dataset.first_tokens, (std::vector<std::vector<int>>{{1, -1, 4}, {1, 2, -1, -1}}))
      << "a control character has no token, and the last words are cut off";
  ASSERT_EQ(dataset.notes.size(), 1u);
  EXPECT_NE(dataset.notes[0].find("1 of 2 sentences are longer than 7 tokens"), std::string::npos) << dataset.notes[0];
  const auto shorter = file("short.conll", "a O\nbc B-X\n\na O\n\na O\n");
  const Dataset tested = load_dataset({.data = shorter, .test_data = data}, {.max_tokens = 7}, folder);
  EXPECT_EQ(tested.notes, dataset.notes) << "of the test data alone";
}

TEST_F(DatasetTest, TextsThatAreCutAreCounted) {
  write_config(test::reference_data("models_reference.json")["models"][0]["config"]);
  file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n");
  const auto data = file("data.tsv", "text\tlabel\na b\tx\na b a\ty\na a a a a\tx\n");  // 4, 5 and 7 tokens
  const auto notes_within = [&](int max_tokens) {
    ModelFolder folder = open_model_folder(folder_);
    return load_dataset({.data = data, .held_out = 0}, {.max_tokens = max_tokens}, folder).notes;
  };
  EXPECT_EQ(notes_within(7), (std::vector<std::string>{}));
  EXPECT_EQ(notes_within(5),
            (std::vector<std::string>{"1 of 3 texts are cut after 5 tokens (--max-tokens, or what the model takes)"}));
}

// As GenericForSequenceClassification of transformers 5 has it: the class is read from the last token that is not
// pad_token_id, or from the first one if all are.
TEST_F(DatasetTest, ACausalClassifiersTextsEndBeforeTheirPadding) {
  Json config = decoder_whose_texts_end();
  const auto data = file("data.tsv", "text\tlabel\na\tx\na<|endoftext|>\ty\n<|endoftext|>\tx\n");
  const auto lengths_with = [&](const Json& padding) {
    config["pad_token_id"] = padding;
    write_config(config);
    ModelFolder folder = open_model_folder(folder_);
    const Dataset dataset = load_dataset({.data = data, .held_out = 0}, {.max_tokens = 3}, folder);
    EXPECT_EQ(dataset.notes, std::vector<std::string>{}) << "none is cut";
    EXPECT_EQ(folder.config.padding_id, padding.is_null() ? 0 : padding.get<int>());
    return std::vector<int>{dataset.samples->tokens(0), dataset.samples->tokens(1), dataset.samples->tokens(2)};
  };
  EXPECT_EQ(lengths_with(0), (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(lengths_with(nullptr), (std::vector<int>{1, 1, 1})) << "it is then the tokenizer's";
  EXPECT_EQ(lengths_with(7), (std::vector<int>{2, 3, 2}));
}

// The model has a row less than the tokenizer has tokens.
TEST_F(DatasetTest, TextsThatCannotBeEncodedAreNamed) {
  Json config = test::reference_data("models_reference.json")["models"][0]["config"];
  config["vocab_size"] = 5;
  write_config(config);
  file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
  file("added_tokens.json", R"({"<x>": 5})");
  const auto refusal = [&](const std::filesystem::path& data, const std::filesystem::path& test) {
    ModelFolder folder = open_model_folder(folder_);
    return message_of([&] { load_dataset({.data = data, .test_data = test}, {}, folder); });
  };
  const std::string why = ": text: must have tokens of the model's 5 alone, is one with \"<x>\", number 5";
  const auto texts = file("data.tsv", "text\tlabel\na\tx\na\ty\n"),
             bad = file("bad.tsv", "text\tlabel\na\tx\n<x>\ty\n");
  EXPECT_EQ(refusal(bad, {}), "bad.tsv: text 2" + why);
  EXPECT_EQ(refusal(texts, bad), "bad.tsv: text 2" + why);
  const auto words = file("data.conll", "a X\n\na O\n"), bad_words = file("bad.conll", "a X\n\n<x> O\n");
  EXPECT_EQ(refusal(words, bad_words), "bad.conll: sentence 2" + why);
}

TEST_F(DatasetTest, TheFormOfRecordsTellsTheTask) {
  const auto task = [&](const std::string& line) { return task_of(file("data.jsonl", line)); };
  EXPECT_EQ(task(R"({"text": "a", "labels": ["x"]})"), Task::sequence_classification);
  EXPECT_EQ(task(R"({"text": "a", "x": 0, "y": 1})"), Task::sequence_classification);
  EXPECT_EQ(task(R"({"text": "a", "id": 1})"), Task::causal_language_modeling);
  EXPECT_EQ(task(R"({"tokens": ["a"], "ner_tags": [0]})"), Task::token_classification);
  EXPECT_EQ(task_of(file("a.txt", "-DOCSTART- -X- O\n\na O\n")), Task::token_classification);
  EXPECT_EQ(task_of(file("a.txt", "a O\n")), Task::causal_language_modeling);
}

TEST_F(DatasetTest, PromptsMayHaveMoreTokensThanTextsUnlessToldOtherwise) {
  for (Json one : test::reference_data("models_reference.json")["models"]) {
    one["config"]["vocab_size"] = 600;
    one["config"]["n_positions"] = 2048;
    if (one["config"]["model_type"] == "gpt2") write_config(one["config"]);
  }
  test::write_small_byte_level_vocabulary(folder_);
  const auto prompts = file("data.jsonl", R"({"prompt": "a", "completion": ")" + std::string(400, '!') + R"("})");
  const auto longest = [&](const SampleOptions& options) {
    ModelFolder folder = open_model_folder(folder_);
    const Dataset dataset = load_dataset({.data = prompts, .held_out = 0}, options, folder);
    return longest_tokens(*dataset.samples, dataset.split.train);
  };
  EXPECT_GT(longest({}), kMaxTokens);
  EXPECT_LE(longest({}), kMaxTokensOfExamples);
  EXPECT_EQ(longest({.max_tokens = 100}), 100);
}

TEST_F(DatasetTest, OfACausalModelIsNotTestedOnLabels) {
  for (Json one : test::reference_data("models_reference.json")["models"]) {
    one["config"]["vocab_size"] = 600;
    if (one["config"]["model_type"] == "gpt2") write_config(one["config"]);
  }
  test::write_small_byte_level_vocabulary(folder_);
  const auto refusal = [&](const std::filesystem::path& data, const std::filesystem::path& test) {
    ModelFolder folder = open_model_folder(folder_);
    return message_of([&] { load_dataset({.data = data, .test_data = test}, {.max_tokens = 4}, folder); });
  };
  const auto prompts = file("prompts.jsonl", R"({"prompt": "a", "completion": "bcdef"})"),
             text = file("text.txt", "a text of many letters"), labels = file("labels.tsv", "text\tlabel\na\tb\n");
  EXPECT_EQ(refusal(prompts, labels), "labels.tsv: must hold chats, prompts or texts, as " + prompts.string() +
                                          " does, is texts or words with labels");
  EXPECT_EQ(refusal(prompts, text),
            "text.txt: must hold chats, prompts or texts, as " + prompts.string() + " does, is plain text");
  const std::string like_text = ": must hold plain text (in a file that ends in .txt), as " + text.string() + " does";
  EXPECT_EQ(refusal(text, prompts), "prompts.jsonl" + like_text + ", is JSON");
  EXPECT_EQ(refusal(text, labels), "labels.tsv" + like_text + ", is another file");
  EXPECT_EQ(refusal(prompts, prompts), "no InvalidInput");
  EXPECT_EQ(refusal(text, text), "no InvalidInput");
}

}  // namespace
}  // namespace frostpipe
