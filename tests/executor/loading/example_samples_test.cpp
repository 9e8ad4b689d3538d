// Oracle: transformers' apply_chat_template with tokens and its mask of the assistant's tokens (recorded by
// scripts/record-reference); prompts and cuts by hand.
#include "executor/loading/example_samples.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/data/tokenizers/tokenizer.h"
#include "executor/loading/dataset.h"
#include "executor/models/task.h"
#include "tests/executor/models/recorded_model.h"
#include "tests/support/reference_data.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<std::int32_t>;
using LearnedRanges = std::vector<std::vector<TokenRange>>;
using testing::HasSubstr;

class ExampleSamples : public test::RecordedModelTest {
 protected:
  ExampleSamples() {
    Json config;
    for (const Json& one : test::reference_data("models_reference.json")["models"])
      if (one["config"]["model_type"] == "gpt2") config = one["config"];
    config["vocab_size"] = 600;
    config["n_positions"] = 512;
    write_config(config);
    test::write_small_byte_level_vocabulary(folder_);
  }
  void write_template(const std::string& name) {
    for (const Json& one : test::reference_data("chats_reference.json")["templates"])
      if (one["name"] == name) file("chat_template.jinja", one["template"].get<std::string>());
    file("special_tokens_map.json",
         R"({"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"})");
  }
  EncodedData encoded(const std::filesystem::path& data, ExampleOptions options = {.max_tokens = 512}) {
    EncodedData found{.token_ids = {}, .labels = {}, .labels_per_sample = 0};
    notes_.clear();
    add_examples(data, {}, open_model_folder(folder_), options, found, notes_);
    return found;
  }
  Ids ids_of(const std::string& text) const { return Tokenizer(folder_).encode(text, {.add_special_tokens = false}); }

  std::vector<std::string> notes_;
};

Ids with_end(Ids ids) {
  ids.push_back(0);  // <|endoftext|>
  return ids;
}

TEST_F(ExampleSamples, ChatsAreTransformersTokensAndMask) {
  std::map<std::string, Json> messages;
  for (const Json& one : test::reference_data("chats_reference.json")["chats"]) messages[one["name"]] = one["messages"];
  int count = 0;
  for (const Json& one : test::reference_data("chats_reference.json")["tokens"]) {
    SCOPED_TRACE(one["template"].get<std::string>() + ", " + one["chat"].get<std::string>());
    write_template(one["template"]);
    const auto data = file("chats.jsonl", Json{{"messages", messages[one["chat"]]}}.dump());
    const EncodedData found = encoded(data);
    ASSERT_EQ(found.token_ids.size(), 1u);
    EXPECT_EQ(found.token_ids[0], one["ids"].get<Ids>());
    Ids said(found.token_ids[0].size(), 0);
    for (const TokenRange& range : found.learned[0]) std::fill(said.begin() + range.begin, said.begin() + range.end, 1);
    EXPECT_EQ(said, one["said"].get<Ids>());
    ++count;
  }
  EXPECT_EQ(count, 24);
  EXPECT_EQ(notes_, std::vector<std::string>{});
}

TEST_F(ExampleSamples, CompletionsAndTextsEndInTheTokenForIt) {
  const auto data = file("data.jsonl",
                         "{\"prompt\": \"The pipeline\", \"completion\": \" trains\"}\n"
                         "{\"text\": \"the model\"}\n"
                         "{\"instruction\": \"a\", \"output\": \"b\"}\n");
  const EncodedData found = encoded(data);
  const Ids whole = ids_of("The pipeline trains"), prompt = ids_of("The pipeline"), text = ids_of("the model");
  const Ids instruction = ids_of(
      "Below is an instruction that describes a task. Write a response that appropriately completes the "
      "request.\n\n### "
      "Instruction:\na\n\n### Response:\nb");
  EXPECT_EQ(found.token_ids, (std::vector<Ids>{with_end(whole), with_end(text), with_end(instruction)}));
  EXPECT_EQ(found.learned, (LearnedRanges{{{std::ssize(prompt), std::ssize(whole) + 1}},
                                          {{0, std::ssize(text) + 1}},
                                          {{std::ssize(instruction) - 1, std::ssize(instruction) + 1}}}));
  const EncodedData all = encoded(data, {.max_tokens = 512, .loss_on_all = true});
  EXPECT_EQ(all.token_ids, found.token_ids);
  EXPECT_EQ(all.learned[0], (std::vector<TokenRange>{{0, std::ssize(whole) + 1}}));
}

// GPT-NeoX's tokenizer trims spans; a token of spaces is learned nevertheless.
TEST_F(ExampleSamples, TokensOfSpacesHaveALossWhateverTheTokenizersSpans) {
  const auto data = file("data.jsonl", R"({"prompt": "the", "completion": " the    the  "})");
  Json tokenizer = test::small_byte_level_tokenizer();
  for (const bool trims : {false, true}) {
    tokenizer["post_processor"] = {{"type", "ByteLevel"}, {"trim_offsets", trims}};
    file("tokenizer.json", tokenizer.dump());
    const EncodedData found = encoded(data);
    EXPECT_EQ(found.token_ids[0], with_end(ids_of("the the    the  ")));
    EXPECT_EQ(found.learned[0], (std::vector<TokenRange>{{1, std::ssize(found.token_ids[0])}})) << trims;
  }
}

TEST_F(ExampleSamples, LongOnesAreCutAndThoseWithNothingToLearnLeftOut) {
  const auto data = file("data.jsonl",
                         "{\"prompt\": \"the the the the\", \"completion\": \" the\"}\n"
                         "{\"prompt\": \"the\", \"completion\": \" the the the the\"}\n"
                         "{\"prompt\": \"the\", \"completion\": \" the\"}\n");
  const EncodedData found = encoded(data, {.max_tokens = 4});
  ASSERT_EQ(ids_of("the the the the the").size(), 5u) << "a token for each word";
  EXPECT_EQ(found.token_ids, (std::vector<Ids>{ids_of("the the the the"), with_end(ids_of("the the"))}));
  EXPECT_EQ(found.learned, (LearnedRanges{{{1, 4}}, {{1, 3}}}));
  const std::string path = data.string();
  EXPECT_EQ(notes_,
            (std::vector<std::string>{
                path + ": 2 of 3 samples are cut after 4 tokens (--max-tokens, or what the model takes)",
                path + ":1: 1 of 3 samples have nothing to learn in their first 4 tokens (--max-tokens, or what "
                       "the model takes) and are left out, this being the first"}));
  EXPECT_EQ(message_of([&] { encoded(data, {.max_tokens = 1}); }),
            "data.jsonl: must have a sample with something to learn in its first 1 tokens (--max-tokens, or what the "
            "model takes), is 3 samples without anything to learn");
}

TEST_F(ExampleSamples, ChatsNeedATemplateThatTakesThem) {
  const auto chats = file("data.jsonl", R"({"messages": [{"role": "assistant", "content": "b"}]})");
  EXPECT_THAT(message_of([&] { encoded(chats); }),
              HasSubstr("data.jsonl:1: chats need a model with a template for them: chat_template.jinja in its folder, "
                        "or chat_template in its tokenizer_config.json"));
  write_template("Gemma");
  EXPECT_THAT(message_of([&] { encoded(chats); }),
              testing::AllOf(testing::StartsWith("data.jsonl:1: "), HasSubstr("chat_template.jinja: line 1: "),
                             HasSubstr("the template refuses it: Conversation roles must alternate")));
}

// Samples are held out by the seed; tokens with labels have a loss.
TEST_F(ExampleSamples, AreADatasetOfACausalModel) {
  std::string lines;
  for (int i = 0; i < 10; ++i) lines += "{\"prompt\": \"the\", \"completion\": \" the the\"}\n";
  const auto data = file("data.jsonl", lines);
  ModelFolder folder = open_model_folder(folder_);
  const Dataset dataset = load_dataset({.data = data, .test_data = {}, .held_out = 0.2}, {}, folder);
  EXPECT_EQ(dataset.task, Task::causal_language_modeling);
  EXPECT_EQ(folder.config.task, Task::causal_language_modeling);
  EXPECT_EQ(dataset.split.train.size(), 8u);
  EXPECT_EQ(dataset.split.test.size(), 2u);
  const std::vector<int> first{0};
  const Ids ids = with_end(ids_of("the the the"));
  const MicroBatch batch = dataset.samples->load({}, first, at::kFloat, /*with_input=*/true);
  EXPECT_TRUE(batch.labels.equal(at::tensor({kIgnored, std::int64_t{ids[1]}, std::int64_t{ids[2]}, 0L}, at::kLong)));
  const auto one = file("one.json", R"([{"text": "a b c"}])");
  EXPECT_EQ(
      message_of([&] { load_dataset({.data = one, .test_data = {}}, {}, folder); }),
      "one.json: must have at least two samples, one to train on and one to test on (or give --test-data FILE, or "
      "--held-out 0 to test on nothing), is with one");
}

}  // namespace
}  // namespace frostpipe
