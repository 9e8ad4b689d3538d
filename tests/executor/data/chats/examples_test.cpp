// Oracle: files written by hand, in the forms of `datasets` and TRL, with the expected results.
#include "executor/data/chats/examples.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

class Examples : public test::ScratchFolderTest {
 protected:
  std::vector<Example> read(std::string_view content, const std::string& name = "data.jsonl",
                            const ColumnNames& columns = {}) {
    const std::filesystem::path path = file(name, content);
    EXPECT_EQ(kind_of_records(path, columns), RecordKind::examples);
    notes_.clear();
    std::vector<Example> examples = read_examples(path, columns, Answers::required, notes_);
    for (Example& one : examples) one.place = one.place.substr(folder_.string().size() + 1);
    return examples;
  }
  std::string refusal(std::string_view content, const std::string& name = "data.jsonl") const {
    const std::filesystem::path path = file(name, content);
    return message_of([&] {
      kind_of_records(path, {});
      std::vector<std::string> notes;
      read_examples(path, {}, Answers::required, notes);
    });
  }
  /// Reads a record alone.
  Example read_one(std::string_view record) { return read(record).at(0); }
  RecordKind kind(std::string_view content, const std::string& name = "data.jsonl",
                  const ColumnNames& columns = {}) const {
    return kind_of_records(file(name, content), columns);
  }
  std::vector<Example> read_to_complete(const std::filesystem::path& path) {
    return read_examples(path, {}, Answers::optional, notes_);
  }

  std::vector<std::string> notes_;
};

TEST_F(Examples, AreChatsPromptsInstructionsOrText) {
  EXPECT_EQ(read("{\"messages\": [{\"role\": \"user\", \"content\": \"a\", \"name\": \"n\"},"
                 " {\"role\": \"assistant\", \"content\": \"b\", \"tool_calls\": [], \"reasoning_content\": \"\"}], "
                 "\"id\": 1}\n"
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

/// Messages as OpenAI writes them and as ShareGPT does.
std::string openai(const std::string& role, const std::string& content) {
  return R"({"role": ")" + role + R"(", "content": ")" + content + "\"}";
}
std::string share_gpt(const std::string& from, const std::string& value) {
  return R"({"from": ")" + from + R"(", "value": ")" + value + "\"}";
}
std::string chat(const std::string& field, const std::vector<std::string>& messages, const std::string& more = "") {
  return fmt::format("{{\"{}\": [{}]{}}}", field, fmt::join(messages, ", "), more);
}

// The same conversation in OpenAI's form and in ShareGPT's.
TEST_F(Examples, ChatsOfShareGptAreThoseOfOpenAi) {
  const std::string user = openai("user", "a"), assistant = openai("assistant", "b"), system = openai("system", "s"),
                    human = share_gpt("human", "a"), gpt = share_gpt("gpt", "b");
  for (const std::string& record :
       {chat("conversations", {human, gpt}), chat("conversations", {human, gpt}, ", \"id\": 1, \"system\": \"\""),
        chat("messages", {share_gpt("user", "a"), share_gpt("assistant", "b")}),
        chat("conversations", {user, assistant})})
    EXPECT_EQ(read_one(record), read_one(chat("messages", {user, assistant}))) << record;
  for (const std::string& record : {chat("conversations", {share_gpt("system", "s"), human, gpt}),
                                    chat("conversations", {human, gpt}, ", \"system\": \"s\""),
                                    chat("messages", {user, assistant}, ", \"system\": \"s\""),
                                    chat("messages", {openai("developer", "s"), user, assistant})})
    EXPECT_EQ(read_one(record), read_one(chat("messages", {system, user, assistant}))) << record;
  EXPECT_EQ(kind(R"({"text": "a", "label": 0, "conversations": 3})"), RecordKind::labelled_texts);
  EXPECT_EQ(refusal(chat("conversations", {share_gpt("system", "s"), gpt}, ", \"system\": \"t\"")),
            "data.jsonl:1: system: must be empty, since \"conversations\" begin with a message of the role system, is "
            "\"t\"");
  EXPECT_EQ(refusal(chat("conversations", {human, share_gpt("observation", "b")})),
            "data.jsonl:1: conversations[1].from: must be \"system\", \"user\" or \"assistant\" (or \"developer\"; or "
            "\"human\" or \"gpt\", as in ShareGPT), is \"observation\"");
  EXPECT_EQ(refusal(R"({"conversations": [{"from": "human"}]})"),
            "data.jsonl:1: conversations[0]: must have the field \"value\", is an object with \"from\"");
}

// The same conversation with contents as texts.
TEST_F(Examples, PartsOfTextAreJoined) {
  const auto asked = [](const std::string& content) {
    return chat("messages", {"{\"role\": \"user\", \"content\": " + content + "}", openai("assistant", "c")});
  };
  EXPECT_EQ(read_one(asked(R"([{"type": "text", "text": "a "}, {"type": "text", "text": "b"}])")),
            read_one(asked("\"a b\"")));
  EXPECT_EQ(refusal(asked(R"([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "b"}}])")),
            "data.jsonl:1: messages[0].content[1].type: must be \"text\": parts of a message that are not text are not "
            "supported, is \"image_url\"");
  EXPECT_EQ(refusal(asked("[\"a\"]")), "data.jsonl:1: messages[0].content[0]: must be an object with a type, is \"a\"");
  for (const auto& [content, value] : {std::pair{"null", "null"}, {"[]", "an empty array"}, {"3", "3"}})
    EXPECT_EQ(refusal(asked(content)),
              std::string("data.jsonl:1: messages[0].content: must be a text, or a list of parts {\"type\": \"text\", "
                          "\"text\": \"...\"}, is ") +
                  value);
}

TEST_F(Examples, MessagesOfTheWeightZeroHaveNoLoss) {
  const auto weighed = [&](const std::string& weight, const std::string& role = "assistant") {
    return chat("messages", {"{\"role\": \"" + role + "\", \"content\": \"a\", \"weight\": " + weight + "}",
                             openai("user", "b"), openai("assistant", "c")});
  };
  EXPECT_EQ(read_one(weighed("0")),
            (Example{"data.jsonl:1", Conversation{{{"assistant", "a", false}, {"user", "b"}, {"assistant", "c"}}}}));
  for (const char* weight : {"1", "1.0", "null"})
    EXPECT_EQ(read_one(weighed(weight)),
              read_one(chat("messages", {openai("assistant", "a"), openai("user", "b"), openai("assistant", "c")})));
  for (const auto& [weight, value] : {std::pair{"0.5", "0.5"}, {"2", "2"}, {"\"0\"", "\"0\""}, {"false", "false"}})
    EXPECT_EQ(refusal(weighed(weight)),
              std::string("data.jsonl:1: messages[0].weight: must be 0 or 1 (1: the message has a loss, if it is the "
                          "assistant's), is ") +
                  value);
  EXPECT_EQ(refusal(R"({"messages": [{"role": "assistant", "content": "b", "weight": 0}]})"),
            "data.jsonl:1: messages: must have a message of the role \"assistant\", which is what is learned (evaluate "
            "--predictions completes prompts without one), is a list of 1 in which its weight is 0");
}

// The same conversation as a list of messages, with a loss on the completion only.
TEST_F(Examples, PromptsAndCompletionsMayBeMessages) {
  const std::string user = openai("user", "a"), assistant = openai("assistant", "b"), again = openai("user", "c");
  const auto pair = [&](const std::vector<std::string>& prompt, const std::string& completion) {
    return fmt::format(R"({{"prompt": [{}], "completion": {}}})", fmt::join(prompt, ", "), completion);
  };
  EXPECT_EQ(
      read_one(pair({user, assistant, again}, "[" + assistant + "]")),
      (Example{
          "data.jsonl:1",
          Conversation{{{"user", "a", false}, {"assistant", "b", false}, {"user", "c", false}, {"assistant", "b"}}}}));
  const std::filesystem::path path = file("data.jsonl", "{\"prompt\": [" + user + "]}");
  EXPECT_EQ(read_to_complete(path),
            (std::vector<Example>{{path.string() + ":1", Conversation{{{"user", "a", false}}}, false}}));
  EXPECT_EQ(refusal("{\"prompt\": [" + user + "]}"),
            "data.jsonl:1: completion: must be a list of messages, each with a role and its content, is null");
  EXPECT_EQ(refusal(pair({user}, "\"b\"")),
            "data.jsonl:1: completion: must be a list of messages, each with a role and its content, is \"b\"");
  EXPECT_EQ(refusal(pair({user, assistant, user}, "[" + user + "]")),
            "data.jsonl:1: completion: must have a message of the role \"assistant\", which is what is learned "
            "(evaluate --predictions completes prompts without one), is a list of 1 without one");
  EXPECT_EQ(
      refusal(pair({user, assistant}, "[" + assistant + "]")),
      "data.jsonl:1: prompt: must end before the turn of the assistant, which is in \"completion\", is a list that "
      "ends with a message of the assistant");
  EXPECT_EQ(refusal("{\"prompt\": \"a\", \"completion\": [" + assistant + "]}"),
            "data.jsonl:1: completion: must be a text, is array");
}

// The same pair under the names that are best known.
TEST_F(Examples, PairsHaveOtherNamesToo) {
  EXPECT_EQ(read_one(R"({"prompt": "a", "response": "b"})"), read_one(R"({"prompt": "a", "completion": "b"})"));
  EXPECT_EQ(read_one(R"({"question": "a", "answer": "b"})"), read_one(R"({"instruction": "a", "output": "b"})"));
  EXPECT_EQ(read("question,answer\na,b\n", "data.csv"),
            (std::vector<Example>{{"data.csv:2", Instruction{"a", "", "b"}}}));
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
  EXPECT_EQ(read_to_complete(path), (std::vector<Example>{{place(1), PromptCompletion{"a", ""}, false},
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

// A field counts if it has words, objects or a label.
TEST_F(Examples, FieldsThatHoldTextAndAreNotUsedAreNamed) {
  const auto notes_on = [&](std::string_view content, const std::string& name = "data.jsonl") {
    read(content, name);
    for (std::string& note : notes_) note = note.substr(folder_.string().size() + 1);
    return notes_;
  };
  using Notes = std::vector<std::string>;
  const std::string asked = chat("messages", {openai("user", "a"), openai("assistant", "b")});
  EXPECT_EQ(notes_on(asked), Notes{});
  EXPECT_EQ(notes_on(asked.substr(0, asked.size() - 1) + R"(, "tools": [{"type": "function"}]})"),
            (Notes{"data.jsonl: the field \"tools\" is not used"}));
  EXPECT_EQ(notes_on("{\"text\": \"a\", \"title\": \"b\"}\n"
                     "{\"instruction\": \"a\", \"output\": \"b\", \"history\": [[\"c\", \"d\"]], \"system\": \"s\"}\n"
                     "{\"prompt\": \"a\", \"completion\": \"b\", \"text\": \"ab\", \"label\": 1, \"system\": \"s\"}\n"),
            (Notes{"data.jsonl: the fields \"history\", \"label\", \"system\", \"text\", \"title\" are not used"}));
  EXPECT_EQ(
      notes_on(
          "{\"text\": \"a\", \"id\": 7, \"idx\": \" -7.5e3\", \"tools\": [], \"history\": [[]], \"vector\": [[0.5]],"
          " \"meta\": {\"source\": \"b\"}, \"title\": \" \", \"license\": null}"),
      Notes{});
  EXPECT_EQ(notes_on("prompt,completion,id,source\na,b,1,\nc,d,2,web\n", "data.csv"),
            (Notes{"data.csv: the field \"source\" is not used"}));
}

TEST_F(Examples, PairsOfTextsAreRefused) {
  const char* refused =
      "must have one text: pairs of texts are not supported (--text-column NAME trains on one of them), "
      "is an object with ";
  EXPECT_EQ(refusal(R"({"text": "a", "text_pair": "b", "label": 0})"),
            std::string("data.jsonl:1: ") + refused + "\"label\", \"text\", \"text_pair\"");
  EXPECT_EQ(refusal(R"({"sentence1": "a", "sentence2": "b", "label": 0})"),
            std::string("data.jsonl:1: ") + refused + "\"label\", \"sentence1\", \"sentence2\"");
  EXPECT_EQ(refusal("{\"text\": \"a\"}\n{\"text\": \"a\", \"text_pair\": \"b\"}"),
            std::string("data.jsonl:2: ") + refused + "\"text\", \"text_pair\"");
  EXPECT_EQ(read(R"({"text": "a", "text_pair": null})"),
            (std::vector<Example>{{"data.jsonl:1", PromptCompletion{"", "a"}}}));
  EXPECT_EQ(kind(R"({"text": "a", "text_pair": "b", "label": 0})", "data.jsonl", {.text = "text", .label = {}}),
            RecordKind::labelled_texts);
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
  EXPECT_EQ(refusal(R"({"messages": [{"role": "tool", "content": "a"}]})"),
            "data.jsonl:1: messages[0].role: must be \"system\", \"user\" or \"assistant\" (or \"developer\"; or "
            "\"human\" or \"gpt\", as in ShareGPT), is \"tool\"");
  EXPECT_EQ(refusal(R"({"prompt": "a", "completion": null})"),
            "data.jsonl:1: completion: must be a text (evaluate --predictions completes prompts without one), is null");
  EXPECT_EQ(refusal(R"({"messages": [{"role": "assistant", "content": "", "tool_calls": [{"id": 1}]}]})"),
            "data.jsonl:1: messages[0].tool_calls: must not be there: messages of a role and a content are known, is "
            "array");
  EXPECT_EQ(refusal(R"({"messages": []})"),
            "data.jsonl:1: messages: must be a list of messages, each with a role and its content, is an empty array");
  EXPECT_EQ(refusal(R"([{"prompt": "a", "completion": "b"}, {"question": "a"}])", "data.json"),
            "data.json: [1]: must have the fields of a form that is known: \"text\" (or \"sentence\") and \"label\"; "
            "\"text\" alone; \"tokens\" and \"ner_tags\"; \"prompt\" and \"completion\" (or \"response\"); "
            "\"instruction\" and "
            "\"output\"; \"question\" and \"answer\"; \"messages\" or \"conversations\" (--text-column and "
            "--label-column name others), is an object with "
            "\"question\"");
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
  EXPECT_EQ(as_conversation({"a", "", "b", "s"}), (Conversation{{{"system", "s"}, {"user", "a"}, {"assistant", "b"}}}));
  EXPECT_EQ(as_prompt({"a", "", "b", "s"}).prompt, "s\n\n### Instruction:\na\n\n### Response:\n");
  EXPECT_EQ(as_prompt({"a", "c", "b", "s"}).prompt, "s\n\n### Instruction:\na\n\n### Input:\nc\n\n### Response:\n");
  EXPECT_EQ(read_one(R"({"instruction": "a", "input": "c", "output": "b", "system": "s"})").content,
            (decltype(Example::content){Instruction{"a", "c", "b", "s"}}));
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
