#include "executor/data/chats/examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/error_values.h"
#include "base/json_reader.h"
#include "base/read_table.h"
#include "base/separated_values.h"
#include "executor/data/chats/messages.h"
#include "executor/data/records_json.h"
#include "executor/data/text_file.h"
#include "executor/data/text_rows.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;
using json::Place;

/// Says how an example without an answer can be used.
constexpr const char* kWithoutAnswers = "evaluate --predictions completes prompts without one";

/// Reads a chat, which a text in the field "system" may precede.
Conversation conversation_in(const Json& record, const Place& place, const std::string& field) {
  const Place at(place, std::string_view(field));
  std::vector<ChatMessage> messages = messages_in(record.at(field), at);
  if (!has_field(record, "system") || field == "system") return {std::move(messages)};
  const std::string& system = text_in(record, place, "system");
  if (system.empty()) return {std::move(messages)};
  if (messages.front().role == "system")
    throw InvalidInput(Place(place, std::string_view("system")).text(),
                       fmt::format("must be empty, since {} begin with a message of the role system", in_quotes(field)),
                       in_quotes(system));
  messages.insert(messages.begin(), {.role = "system", .content = system});
  return {std::move(messages)};
}

/// Makes an example of a chat. One of its last `num_answers` messages, which are at `place`, must be one to learn if
/// that is needed.
Example spoken(Conversation chat, const std::string& where, std::size_t num_answers, const Place& place,
               Answers needed) {
  const bool has_answer = std::ranges::any_of(std::span(chat.messages).last(num_answers), [](const ChatMessage& one) {
    return one.role == "assistant" && one.has_loss;
  });
  if (!has_answer && needed == Answers::required)
    throw InvalidInput(
        place.text(),
        fmt::format("must have a message of the role \"assistant\", which is what is learned ({})", kWithoutAnswers),
        fmt::format("a list of {} without one", num_answers));
  return {where, std::move(chat), has_answer};
}

Example chat_in(const Json& record, const std::string& where, const std::string& field, Answers needed) {
  const Place whole(where), place(whole, std::string_view(field));
  return spoken(conversation_in(record, whole, field), where, record.at(field).size(), place, needed);
}

/// The fields of a prompt and its completion, or of an instruction and its output.
struct Pair {
  const char *asks, *answers;
  bool is_instruction;
};
constexpr std::array<Pair, 4> kPairs{{{"prompt", "completion", false},
                                      {"prompt", "response", false},
                                      {"instruction", "output", true},
                                      {"question", "answer", true}}};

/// Reads a prompt and its completion that are lists of messages, as in TRL. Only the completion has a loss.
Example spoken_pair_in(const Json& record, const std::string& where, const Pair& pair, Answers needed) {
  static const Json kNone;
  const Place whole(where), place(whole, std::string_view(pair.answers));
  Conversation chat = conversation_in(record, whole, pair.asks);
  if (chat.messages.back().role == "assistant")
    throw InvalidInput(
        Place(whole, std::string_view(pair.asks)).text(),
        fmt::format("must end before the turn of the assistant, which is in {}", in_quotes(pair.answers)),
        "a list that ends with a message of the assistant");
  for (ChatMessage& message : chat.messages) message.has_loss = false;
  std::vector<ChatMessage> said;
  if (has_field(record, pair.answers) || needed == Answers::required)
    said = messages_in(record.contains(pair.answers) ? record.at(pair.answers) : kNone, place);
  chat.messages.insert(chat.messages.end(), said.begin(), said.end());
  return spoken(std::move(chat), where, said.size(), place, needed);
}

Example pair_in(const Json& record, const std::string& where, const Pair& pair, Answers needed) {
  if (record.at(pair.asks).is_array()) return spoken_pair_in(record, where, pair, needed);
  const Place place(where);
  const bool has_answer = has_field(record, pair.answers);
  const std::string answer = has_answer || needed == Answers::required
                                 ? text_in(record, place, pair.answers, fmt::format(" ({})", kWithoutAnswers))
                                 : "";
  const std::string& asked = text_in(record, place, pair.asks);
  if (!pair.is_instruction) return {where, PromptCompletion{asked, answer}, has_answer};
  return {where, Instruction{asked, has_field(record, "input") ? text_in(record, place, "input") : "", answer},
          has_answer};
}

/// Returns the field that holds plain text or, if the user names it, possibly a chat.
std::optional<std::string> text_field(const Json& record, const ColumnNames& columns) {
  if (!columns.text.empty()) return has_field(record, columns.text) ? std::optional(columns.text) : std::nullopt;
  for (const char* name : {"text", "sentence"})
    if (has_field(record, name)) return name;
  return std::nullopt;
}

/// Returns the field that holds a chat, if there is one.
std::optional<std::string> chat_field(const Json& record) {
  if (has_field(record, "messages")) return "messages";
  const auto found = record.find("conversations");
  return found != record.end() && found->is_array() ? std::optional<std::string>("conversations") : std::nullopt;
}

/// Returns the first pair of fields that a record has; null if there is none.
const Pair* answered_pair(const Json& record) {
  const auto found = std::ranges::find_if(
      kPairs, [&](const Pair& pair) { return has_field(record, pair.asks) && has_field(record, pair.answers); });
  return found == kPairs.end() ? nullptr : &*found;
}

bool has_form_of_example(const Json& record) { return chat_field(record) || answered_pair(record); }

/// Returns the pair of a record that has a prompt or an instruction, though no answer to it and no text; else null.
const Pair* unanswered_pair(const Json& record, const ColumnNames& columns) {
  if (!columns.text.empty() || has_form_of_example(record) || text_field(record, columns)) return nullptr;
  for (const Pair& pair : kPairs) {
    const bool may_lack = pair.asks != std::string_view("question");  // questions also have choices, contexts, labels
    if (may_lack && has_field(record, pair.asks)) return &pair;
  }
  return nullptr;
}

bool has_words(const Json& record, const ColumnNames& columns) {
  const auto found = record.find(columns.text.empty() ? "tokens" : columns.text);
  return found != record.end() && found->is_array() && (found->empty() || found->front().is_string());
}

[[noreturn]] void refuse_fields(const std::string& place, const Json& record) {
  throw InvalidInput(place,
                     "must have the fields of a form that is known: \"text\" (or \"sentence\") and \"label\"; "
                     "\"text\" alone; \"tokens\" and \"ner_tags\"; \"prompt\" and \"completion\" (or \"response\"); "
                     "\"instruction\" and \"output\"; \"question\" and \"answer\"; \"messages\" or "
                     "\"conversations\" (--text-column and --label-column name others)",
                     "an object with " + shown_fields(record));
}

Example example_in(const Json& record, const std::string& where, const ColumnNames& columns, Answers needed) {
  if (columns.text.empty()) {
    if (const auto field = chat_field(record)) return chat_in(record, where, *field, needed);
    if (const Pair* const pair = answered_pair(record)) return pair_in(record, where, *pair, needed);
    if (const Pair* const pair = unanswered_pair(record, columns)) return pair_in(record, where, *pair, needed);
  }
  const std::optional<std::string> field = text_field(record, columns);
  if (!field && columns.text.empty()) refuse_fields(where, record);
  if (field && record.at(*field).is_array()) return chat_in(record, where, *field, needed);
  const std::string& text = text_in(record, Place(where), field.value_or(columns.text));
  return {where, PromptCompletion{.prompt = {}, .completion = text}};
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
    const bool are_examples = columns.text.empty() && (has_form_of_example(header) || unanswered_pair(header, columns));
    return are_examples ? RecordKind::examples : RecordKind::labelled_texts;
  }
  const FirstRecord first = first_record(path);
  if (has_words(first.record, columns)) return RecordKind::tagged_words;
  if (columns.text.empty() && has_form_of_example(first.record)) return RecordKind::examples;
  if (unanswered_pair(first.record, columns)) return RecordKind::examples;
  const std::optional<std::string> text = text_field(first.record, columns);
  if (!text) refuse_fields(first.place.in(path), first.record);
  const bool is_labelled = !columns.label.empty() || has_field(first.record, "label") ||
                           has_field(first.record, "labels") || has_flags(first.record);
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
