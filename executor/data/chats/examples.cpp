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
#include "executor/data/chats/messages.h"
#include "executor/data/records_json.h"
#include "executor/data/text_file.h"
#include "executor/data/text_rows.h"
#include "executor/data/unused_fields.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;
using json::Place;

/// Says how an example without an answer can be used.
constexpr const char* kWithoutAnswers = "evaluate --predictions completes prompts without one";

/// Reads the chat in `field`. A text in the field "system" becomes its first message.
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

/// Makes an example of a chat, whose last `num_answers` messages were read at `place`. Throws InvalidInput if an answer
/// is needed and none of these messages is the assistant's and has a loss.
Example spoken(Conversation chat, const std::string& where, std::size_t num_answers, const Place& place,
               Answers needed) {
  const std::span<const ChatMessage> answers = std::span(chat.messages).last(num_answers);
  const auto is_assistants = [](const ChatMessage& one) { return one.role == "assistant"; };
  const auto is_learned = [&](const ChatMessage& one) { return is_assistants(one) && one.has_loss; };
  const bool has_answer = std::ranges::any_of(answers, is_learned);
  if (!has_answer && needed == Answers::required)
    throw InvalidInput(
        place.text(),
        fmt::format("must have a message of the role \"assistant\", which is what is learned ({})", kWithoutAnswers),
        fmt::format("a list of {} {}", num_answers,
                    std::ranges::any_of(answers, is_assistants) ? "in which its weight is 0" : "without one"));
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

bool is_spoken(const Json& record, const Pair& pair) { return !pair.is_instruction && record.at(pair.asks).is_array(); }

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
  if (is_spoken(record, pair)) return spoken_pair_in(record, where, pair, needed);
  const Place place(where);
  const bool has_answer = has_field(record, pair.answers);
  const std::string answer = has_answer || needed == Answers::required
                                 ? text_in(record, place, pair.answers, fmt::format(" ({})", kWithoutAnswers))
                                 : "";
  const std::string& asked = text_in(record, place, pair.asks);
  if (!pair.is_instruction) return {where, PromptCompletion{asked, answer}, has_answer};
  const auto optional_text = [&](const char* name) {
    return has_field(record, name) ? text_in(record, place, name) : std::string();
  };
  return {where, Instruction{asked, optional_text("input"), answer, optional_text("system")}, has_answer};
}

/// Returns the name of the field that holds the text; nothing if there is none. A field that the user names may hold a
/// chat instead.
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

/// Returns the pair of fields of a record that has a prompt or an instruction, but neither an answer nor a text; else
/// null.
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

Example example_in(const Json& record, const std::string& where, const ColumnNames& columns, Answers needed,
                   UnusedFields& unused) {
  if (columns.text.empty()) {
    if (const auto field = chat_field(record)) {
      unused.add(record, {*field, "system"});
      return chat_in(record, where, *field, needed);
    }
    const Pair* const answered = answered_pair(record);
    if (const Pair* const pair = answered ? answered : unanswered_pair(record, columns)) {
      std::vector<std::string> used{pair->asks, pair->answers};
      if (pair->is_instruction || is_spoken(record, *pair)) used.push_back("system");
      if (pair->is_instruction) used.push_back("input");
      unused.add(record, used);
      return pair_in(record, where, *pair, needed);
    }
  }
  require_one_text(record, columns, where);
  const std::optional<std::string> field = text_field(record, columns);
  if (!field && columns.text.empty()) refuse_fields(where, record);
  const std::string name = field.value_or(columns.text);
  const bool is_chat = field && record.at(name).is_array();
  unused.add(record, {name, is_chat ? "system" : name});
  if (is_chat) return chat_in(record, where, name, needed);
  return {where, PromptCompletion{.prompt = {}, .completion = text_in(record, Place(where), name)}};
}

/// Returns a record whose fields are the columns of a table, with empty texts as values.
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
  require_one_text(first.record, columns, first.place.in(path));
  const std::optional<std::string> text = text_field(first.record, columns);
  if (!text) refuse_fields(first.place.in(path), first.record);
  const bool is_labelled = !columns.label.empty() || has_field(first.record, "label") ||
                           has_field(first.record, "labels") || has_flags(first.record);
  return is_labelled && !first.record.at(*text).is_array() ? RecordKind::labelled_texts : RecordKind::examples;
}

std::vector<Example> read_examples(const std::filesystem::path& path, const ColumnNames& columns, Answers answers,
                                   std::vector<std::string>& notes) {
  std::vector<Example> examples;
  UnusedFields unused;
  for_each_record(path, [&](const Json& record, const RecordPlace& place) {
    examples.push_back(example_in(record, place.in(path), columns, answers, unused));
    return true;
  });
  for (std::string& note : unused.note(path)) notes.push_back(std::move(note));
  return examples;
}

Conversation as_conversation(const Instruction& given) {
  Conversation chat;
  if (!given.system.empty()) chat.messages.push_back({"system", given.system});
  chat.messages.push_back({"user", given.input.empty() ? given.instruction : given.instruction + "\n\n" + given.input});
  chat.messages.push_back({"assistant", given.output});
  return chat;
}

PromptCompletion as_prompt(const Instruction& given) {
  const char* usual = given.input.empty()
                          ? "Below is an instruction that describes a task. Write a response that appropriately "
                            "completes the request."
                          : "Below is an instruction that describes a task, paired with an input that provides further "
                            "context. Write a response that appropriately completes the request.";
  const std::string input = given.input.empty() ? "" : fmt::format("### Input:\n{}\n\n", given.input);
  return {fmt::format("{}\n\n### Instruction:\n{}\n\n{}### Response:\n",
                      given.system.empty() ? usual : given.system.c_str(), given.instruction, input),
          given.output};
}

}  // namespace frostpipe
