#include "executor/data/chats/examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "base/json_reader.h"
#include "base/read_table.h"
#include "base/separated_values.h"
#include "executor/data/records_json.h"
#include "executor/data/text_file.h"
#include "executor/data/text_rows.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;
using json::Place;

bool has(const Json& record, const std::string& name) {
  const auto found = record.find(name);
  return found != record.end() && !found->is_null();
}

/// Says how an example without an answer can be used.
constexpr const char* kWithoutAnswers = "evaluate --predictions completes prompts without one";

const std::string& text_in(const Json& object, const Place& place, const std::string& name,
                           const std::string& hint = "") {
  if (!has(object, name))
    throw InvalidInput(place.text(), fmt::format("must have the field {}{}", in_quotes(name), hint),
                       "an object with " + shown_fields(object));
  const Json& value = object.at(name);
  if (!value.is_string())
    throw InvalidInput(Place(place, std::string_view(name)).text(), "must be a text", shown(value));
  return value.get_ref<const std::string&>();
}

ChatMessage message_in(const Json& object, const Place& place) {
  if (!object.is_object())
    throw InvalidInput(place.text(), "must be an object with a role and its content", shown(object));
  for (const char* name : {"tool_calls", "tool_call_id", "reasoning_content", "thinking"}) {
    if (has(object, name) && !object.at(name).empty())
      throw InvalidInput(Place(place, std::string_view(name)).text(),
                         "must not be there: messages of a role and a content are known", shown(object.at(name)));
  }
  ChatMessage message{.role = text_in(object, place, "role"), .content = text_in(object, place, "content")};
  if (message.role != "system" && message.role != "user" && message.role != "assistant")
    throw InvalidInput(Place(place, std::string_view("role")).text(), "must be \"system\", \"user\" or \"assistant\"",
                       in_quotes(message.role));
  return message;
}

Conversation conversation_in(const Json& messages, const Place& place) {
  if (!messages.is_array() || messages.empty())
    throw InvalidInput(place.text(), "must be a list of messages, each with a role and its content", shown(messages));
  Conversation conversation;
  for (std::size_t i = 0; i < messages.size(); ++i)
    conversation.messages.push_back(message_in(messages[i], Place(place, i)));
  return conversation;
}

Example chat_in(const Json& messages, const std::string& where, const std::string& field, Answers answers) {
  const Place record(where), place(record, std::string_view(field));
  Conversation chat = conversation_in(messages, place);
  const bool has_answer =
      std::ranges::any_of(chat.messages, [](const ChatMessage& one) { return one.role == "assistant"; });
  if (!has_answer && answers == Answers::required)
    throw InvalidInput(
        place.text(),
        fmt::format("must have a message of the role \"assistant\", which is what is learned ({})", kWithoutAnswers),
        fmt::format("a list of {} without one", chat.messages.size()));
  return {where, std::move(chat), has_answer};
}

/// Returns the field that holds plain text or, if the user names it, possibly a chat.
std::optional<std::string> text_field(const Json& record, const ColumnNames& columns) {
  if (!columns.text.empty()) return has(record, columns.text) ? std::optional(columns.text) : std::nullopt;
  for (const char* name : {"text", "sentence"})
    if (has(record, name)) return name;
  return std::nullopt;
}

bool has_form_of_example(const Json& record) {
  return has(record, "messages") || (has(record, "prompt") && has(record, "completion")) ||
         (has(record, "instruction") && has(record, "output"));
}

/// Returns whether a record has a prompt or an instruction, though no answer to it and no text.
bool is_unanswered(const Json& record, const ColumnNames& columns) {
  return columns.text.empty() && !has_form_of_example(record) && !text_field(record, columns) &&
         (has(record, "prompt") || has(record, "instruction"));
}

bool has_words(const Json& record, const ColumnNames& columns) {
  const auto found = record.find(columns.text.empty() ? "tokens" : columns.text);
  return found != record.end() && found->is_array() && (found->empty() || found->front().is_string());
}

[[noreturn]] void refuse_fields(const std::string& place, const Json& record) {
  throw InvalidInput(place,
                     "must have the fields of a form that is known: \"text\" (or \"sentence\") and \"label\"; "
                     "\"text\" alone; \"tokens\" and \"ner_tags\"; \"prompt\" and \"completion\"; \"instruction\" and "
                     "\"output\"; \"messages\" "
                     "(--text-column and --label-column name others)",
                     "an object with " + shown_fields(record));
}

Example example_in(const Json& record, const std::string& where, const ColumnNames& columns, Answers answers) {
  const Place place(where);
  const auto text = [&](const char* name) { return text_in(record, place, name); };
  if (!columns.text.empty() || !(has_form_of_example(record) || is_unanswered(record, columns))) {
    const std::optional<std::string> field = text_field(record, columns);
    if (!field && columns.text.empty()) refuse_fields(where, record);
    if (field && record.at(*field).is_array()) return chat_in(record.at(*field), where, *field, answers);
    return {where, PromptCompletion{.prompt = {}, .completion = text_in(record, place, field.value_or(columns.text))}};
  }
  if (has(record, "messages")) return chat_in(record.at("messages"), where, "messages", answers);
  const bool is_instruction = !has(record, "prompt") || (has(record, "output") && !has(record, "completion"));
  const char* name = is_instruction ? "output" : "completion";
  const bool has_answer = has(record, name);
  const std::string answer = has_answer || answers == Answers::required
                                 ? text_in(record, place, name, fmt::format(" ({})", kWithoutAnswers))
                                 : "";
  if (!is_instruction) return {where, PromptCompletion{text("prompt"), answer}, has_answer};
  return {where, Instruction{text("instruction"), has(record, "input") ? text("input") : "", answer}, has_answer};
}

/// Returns a table's columns as a record without values.
Json header_of(const std::filesystem::path& path) {
  const std::string content = read_utf8_file(path);
  const std::string_view line = std::string_view(content).substr(0, content.find('\n'));
  Json header = Json::object();
  for (const TableRow& row : read_table(path, line))
    for (const std::string& name : row.fields) header[name] = "";
  return header;
}

}  // namespace

RecordKind kind_of_records(const std::filesystem::path& path, const ColumnNames& columns) {
  if (!is_json_file(path)) {
    const Json header = header_of(path);
    const bool are_examples = columns.text.empty() && (has_form_of_example(header) || is_unanswered(header, columns));
    return are_examples ? RecordKind::examples : RecordKind::labelled_texts;
  }
  const FirstRecord first = first_record(path);
  if (has_words(first.record, columns)) return RecordKind::tagged_words;
  if (columns.text.empty() && has_form_of_example(first.record)) return RecordKind::examples;
  if (is_unanswered(first.record, columns)) return RecordKind::examples;
  const std::optional<std::string> text = text_field(first.record, columns);
  if (!text) refuse_fields(first.place.in(path), first.record);
  const bool is_labelled =
      !columns.label.empty() || has(first.record, "label") || has(first.record, "labels") || has_flags(first.record);
  return is_labelled && !first.record.at(*text).is_array() ? RecordKind::labelled_texts : RecordKind::examples;
}

std::vector<Example> read_examples(const std::filesystem::path& path, const ColumnNames& columns, Answers answers) {
  std::vector<Example> examples;
  for_each_record(path, [&](const Json& record, const RecordPlace& place) {
    examples.push_back(example_in(record, place.in(path), columns, answers));
    return true;
  });
  return examples;
}

Conversation as_conversation(const Instruction& given) {
  return {{{"user", given.input.empty() ? given.instruction : given.instruction + "\n\n" + given.input},
           {"assistant", given.output}}};
}

PromptCompletion as_prompt(const Instruction& given) {
  const std::string request =
      given.input.empty()
          ? fmt::format(
                "Below is an instruction that describes a task. Write a response that appropriately completes "
                "the request.\n\n### Instruction:\n{}\n\n### Response:\n",
                given.instruction)
          : fmt::format(
                "Below is an instruction that describes a task, paired with an input that provides further "
                "context. Write a response that appropriately completes the request.\n\n### "
                "Instruction:\n{}\n\n### Input:\n{}\n\n### Response:\n",
                given.instruction, given.input);
  return {request, given.output};
}

}  // namespace frostpipe
