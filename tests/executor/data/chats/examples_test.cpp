// Oracle: files written by hand, in the forms of `datasets` and TRL, with the expected results.
#include "executor/data/chats/examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

class Examples : public test::ScratchFolderTest {
 protected:
  std::vector<Example> read(std::string_view content, const std::string& name = "data.jsonl",
                            const ColumnNames& columns = {}) const {
    const std::filesystem::path path = file(name, content);
    EXPECT_EQ(kind_of_records(path, columns), RecordKind::examples);
    std::vector<Example> examples = read_examples(path, columns);
    for (Example& one : examples) one.place = one.place.substr(folder_.string().size() + 1);
    return examples;
  }
  std::string refusal(std::string_view content, const std::string& name = "data.jsonl") const {
    const std::filesystem::path path = file(name, content);
    return message_of([&] {
      kind_of_records(path, {});
      read_examples(path, {});
    });
  }
  RecordKind kind(std::string_view content, const std::string& name = "data.jsonl",
                  const ColumnNames& columns = {}) const {
    return kind_of_records(file(name, content), columns);
  }
};

TEST_F(Examples, AreChatsPromptsInstructionsOrText) {
  EXPECT_EQ(read("{\"messages\": [{\"role\": \"user\", \"content\": \"a\", \"name\": \"n\"},"
                 " {\"role\": \"assistant\", \"content\": \"b\", \"tool_calls\": []}], \"id\": 1}\n"
                 "\n"
                 "{\"prompt\": \"a\", \"completion\": \"b\"}\r\n"
                 "{\"instruction\": \"a\", \"input\": \"\", \"output\": \"b\"}\n"
                 "{\"instruction\": \"a\", \"input\": \"c\", \"output\": \"b\", \"text\": \"all of it\"}\n"
                 "{\"text\": \"ä\\n\"}\n"
                 "{\"sentence\": \"s\"}"),
            (std::vector<Example>{{"data.jsonl:1", Conversation{{{"user", "a"}, {"assistant", "b"}}}},
                                  {"data.jsonl:3", PromptCompletion{"a", "b"}},
                                  {"data.jsonl:4", Instruction{"a", "", "b"}},
                                  {"data.jsonl:5", Instruction{"a", "c", "b"}},
                                  {"data.jsonl:6", PromptCompletion{"", "ä\n"}},
                                  {"data.jsonl:7", PromptCompletion{"", "s"}}}));
  EXPECT_EQ(
      read("[{\"prompt\": \"a\", \"completion\": \"b\"},\n {\"prompt\": \"c\", \"completion\": \"d\"}]", "data.json"),
      (std::vector<Example>{{"data.json: [0]", PromptCompletion{"a", "b"}},
                            {"data.json: [1]", PromptCompletion{"c", "d"}}}));
  EXPECT_EQ(read("{\"prompt\": \"a\", \"completion\": \"b\"}\n", "lines.json"),
            (std::vector<Example>{{"lines.json:1", PromptCompletion{"a", "b"}}}))
      << "JSON Lines are called .json too";
  EXPECT_EQ(read("completion,prompt\n\"b, c\",a\n", "data.csv"),
            (std::vector<Example>{{"data.csv:2", PromptCompletion{"a", "b, c"}}}));
  EXPECT_EQ(read("{\"chat\": [{\"role\": \"assistant\", \"content\": \"b\"}]}\n{\"chat\": \"text\"}\n", "own.jsonl",
                 {.text = "chat", .label = {}}),
            (std::vector<Example>{{"own.jsonl:1", Conversation{{{"assistant", "b"}}}},
                                  {"own.jsonl:2", PromptCompletion{"", "text"}}}));
}

TEST_F(Examples, MayHaveNoAnswerToComplete) {
  const std::filesystem::path path = file("data.jsonl",
                                          "{\"prompt\": \"a\"}\n"
                                          "{\"prompt\": \"a\", \"completion\": \"b\"}\n"
                                          "{\"prompt\": \"a\", \"completion\": null}\n"
                                          "{\"instruction\": \"a\", \"input\": \"c\"}\n"
                                          "{\"prompt\": \"p\", \"instruction\": \"a\", \"output\": \"b\"}\n"
                                          "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n"
                                          "{\"prompt\": \"a\", \"text\": \"t\"}\n");
  EXPECT_EQ(kind_of_records(path, {}), RecordKind::examples);
  const auto place = [&](int line) { return path.string() + ":" + std::to_string(line); };
  EXPECT_EQ(read_examples(path, {}, Answers::optional),
            (std::vector<Example>{{place(1), PromptCompletion{"a", ""}, false},
                                  {place(2), PromptCompletion{"a", "b"}},
                                  {place(3), PromptCompletion{"a", ""}, false},
                                  {place(4), Instruction{"a", "c", ""}, false},
                                  {place(5), Instruction{"a", "", "b"}},
                                  {place(6), Conversation{{{"user", "a"}}}, false},
                                  {place(7), PromptCompletion{"", "t"}}}));
}

TEST_F(Examples, TextsWithLabelsAreNone) {
  EXPECT_EQ(kind("{\"text\": \"a\", \"label\": 0}"), RecordKind::labelled_texts);
  EXPECT_EQ(kind("{\"text\": \"a\", \"stars\": 0}"), RecordKind::examples);
  EXPECT_EQ(kind("{\"text\": \"a\", \"stars\": 0}", "data.jsonl", {.text = {}, .label = "stars"}),
            RecordKind::labelled_texts);
  EXPECT_EQ(kind("text\nno label\n", "data.csv"), RecordKind::labelled_texts) << "as without JSON";
}

TEST_F(Examples, ErrorsNameFileLineFieldAndTheKnownFields) {
  const std::string chat = R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})";
  EXPECT_EQ(refusal(chat + "\n" + R"({"messages": [{"role": "user", "content": "a"}]})"),
            "data.jsonl:2: messages: must have a message of the role \"assistant\", which is what is learned (evaluate "
            "--predictions completes prompts without one), is a list of 1 without one");
  EXPECT_EQ(
      refusal(R"({"prompt": "a"})"),
      "data.jsonl:1: must have the field \"completion\" (evaluate --predictions completes prompts without one), is "
      "an object with \"prompt\"");
  EXPECT_EQ(refusal("instruction,input\na,b\n", "data.csv"),
            "data.csv:2: must have the field \"output\" (evaluate --predictions completes prompts without one), is an "
            "object with \"input\", \"instruction\"");
  EXPECT_EQ(refusal(chat + "\n" + R"({"messages": [{"role": "user", "conte)"),
            "data.jsonl:2: must be a whole object of JSON, in one line (is the file cut, or is it one array? that is a "
            ".json file), is no JSON, and ends in \"{\"messages\": [{\"role\": \"user\", \"conte\"");
  EXPECT_EQ(refusal(R"({"messages": [{"role": "human", "content": "a"}]})"),
            "data.jsonl:1: messages[0].role: must be \"system\", \"user\" or \"assistant\", is \"human\"");
  EXPECT_EQ(refusal(R"({"messages": [{"role": "user", "content": [{"type": "image"}]}]})"),
            "data.jsonl:1: messages[0].content: must be a text, is array");
  EXPECT_EQ(refusal(R"({"messages": [{"role": "assistant", "content": "", "tool_calls": [{"id": 1}]}]})"),
            "data.jsonl:1: messages[0].tool_calls: must not be there: messages of a role and a content are known, is "
            "array");
  EXPECT_EQ(refusal(R"({"messages": []})"),
            "data.jsonl:1: messages: must be a list of messages, each with a role and its content, is an empty array");
  EXPECT_EQ(
      refusal(R"([{"prompt": "a", "completion": "b"}, {"question": "a"}])", "data.json"),
      "data.json: [1]: must have the fields of a form that is known: \"text\" (or \"sentence\") and \"label\"; "
      "\"text\" alone; \"tokens\" and \"ner_tags\"; \"prompt\" and \"completion\"; \"instruction\" and \"output\"; "
      "\"messages\" (--text-column and --label-column name others), is an object with \"question\"");
  EXPECT_EQ(refusal(R"({"instruction": "a", "input": 3, "output": "b"})"), "data.jsonl:1: input: must be a text, is 3");
  EXPECT_EQ(refusal("[1]", "data.json"), "data.json: [0]: must be an object of JSON with the fields of a sample, is 1");
  EXPECT_EQ(refusal("\n\n"), "data.jsonl: must have a line with an object of JSON, is without one");
  EXPECT_EQ(refusal("[]", "data.json"), "data.json: must be an array of objects, is an empty one");
  EXPECT_THAT(
      refusal("PAR1\xFF\xFE", "data.parquet"),
      testing::AllOf(testing::HasSubstr("data.parquet: must be JSON Lines, JSON or a table (of Parquet make JSON "
                                        "Lines by: python3 -c \"import pandas; pandas.read_parquet('"),
                     testing::HasSubstr("lines=True)\"), is Parquet")));
}

TEST_F(Examples, InstructionsAreATurnOfAChatOrAPromptInAlpacasForm) {
  EXPECT_EQ(as_conversation({"a", "", "b"}), (Conversation{{{"user", "a"}, {"assistant", "b"}}}));
  EXPECT_EQ(as_conversation({"a", "c", "b"}), (Conversation{{{"user", "a\n\nc"}, {"assistant", "b"}}}));
  EXPECT_EQ(as_prompt({"a", "", "b"}),
            (PromptCompletion{"Below is an instruction that describes a task. Write a response that appropriately "
                              "completes the request.\n\n### Instruction:\na\n\n### Response:\n",
                              "b"}));
  EXPECT_THAT(as_prompt({"a", "c", "b"}).prompt,
              testing::EndsWith("### Instruction:\na\n\n### Input:\nc\n\n### Response:\n"));
}

}  // namespace
}  // namespace frostpipe
