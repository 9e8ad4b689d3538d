#include "executor/loading/prompts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/data/tokenizers/tokenizer.h"
#include "tests/executor/models/recorded_model.h"
#include "tests/support/reference_data.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

class Prompts : public test::RecordedModelTest {
 protected:
  Prompts() {
    for (const Json& one : test::reference_data("models_reference.json")["models"]) {
      Json config = one["config"];
      config["vocab_size"] = 600;
      if (config["model_type"] == "gpt2") write_config(config);
    }
    test::write_small_byte_level_vocabulary(folder_);
  }
  void write_chat_template() {
    file("chat_template.jinja",
         "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"
         "{% if add_generation_prompt %}<assistant>{% endif %}");
  }
  std::vector<Prompt> read(const std::string& records) {
    return read_prompts(file("data.jsonl", records), {}, open_model_folder(folder_), notes_);
  }

  std::vector<std::string> notes_;
};

TEST_F(Prompts, AreWhatStandsBeforeCompletions) {
  const std::vector<Prompt> found = read(
      "{\"prompt\": \"The pipeline\", \"completion\": \" trains\"}\n"
      "{\"instruction\": \"a\", \"output\": \"b\"}\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].text, "The pipeline");
  EXPECT_EQ(found[0].ids, Tokenizer(folder_).encode("The pipeline"));
  EXPECT_EQ(found[0].expected, " trains");
  EXPECT_TRUE(found[1].text.ends_with("### Instruction:\na\n\n### Response:\n"));
  EXPECT_EQ(found[1].expected, "b");
}

TEST_F(Prompts, OfChatsEndWhereTheAssistantIsToSpeak) {
  write_chat_template();
  const std::string asked = R"({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"})";
  const std::vector<Prompt> found =
      read("{\"messages\": [" + asked + "]}\n" +                                            //
           "{\"messages\": [" + asked + ", {\"role\": \"user\", \"content\": \"c\"}]}\n" +  //
           "{\"instruction\": \"d\", \"output\": \"e\"}\n");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].text, "<user>a<assistant>");
  EXPECT_EQ(found[0].expected, "b");
  EXPECT_EQ(found[1].text, "<user>a<assistant>b<user>c<assistant>");
  EXPECT_EQ(found[1].expected, "");
  EXPECT_EQ(found[2].text, "<user>d<assistant>");
  EXPECT_EQ(found[2].expected, "e");
}

TEST_F(Prompts, NeedNoAnswer) {
  write_chat_template();
  const std::vector<Prompt> found = read(
      "{\"prompt\": \"a\"}\n{\"instruction\": \"b\"}\n"
      "{\"messages\": [{\"role\": \"user\", \"content\": \"c\"}]}\n");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].text, "a");
  EXPECT_EQ(found[1].text, "<user>b<assistant>");
  EXPECT_EQ(found[2].text, "<user>c<assistant>");
  for (const Prompt& one : found) EXPECT_EQ(one.expected, "");
  EXPECT_TRUE(notes_.empty());
}

TEST_F(Prompts, TextAloneAndChatsWithoutAQuestionAreLeftOut) {
  write_chat_template();
  const std::string without = "{\"text\": \"a\"}\n{\"messages\": [{\"role\": \"assistant\", \"content\": \"b\"}]}\n";
  EXPECT_EQ(read("{\"prompt\": \"a\", \"completion\": \"b\"}\n" + without).size(), 1u);
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_TRUE(notes_[0].ends_with("data.jsonl: 2 of 3 samples have no prompt and are not completed"));
  EXPECT_EQ(message_of([&] { read(without); }),
            "data.jsonl: must have a prompt to be completed: \"prompt\", \"instruction\", or \"messages\" with one "
            "before the assistant's, is without one");
}

}  // namespace
}  // namespace frostpipe
