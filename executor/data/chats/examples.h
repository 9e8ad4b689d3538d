#pragma once
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "executor/data/text_data.h"

namespace frostpipe {

/// What a causal model learns from, as `datasets` and TRL have it.

struct ChatMessage {
  std::string role;  // system, user or assistant
  std::string content;

  bool operator==(const ChatMessage&) const = default;
};

/// A chat; the model is to say what the assistant says in it.
struct Conversation {
  std::vector<ChatMessage> messages;

  bool operator==(const Conversation&) const = default;
};

/// A text, and how it goes on; text alone has no prompt.
struct PromptCompletion {
  std::string prompt, completion;

  bool operator==(const PromptCompletion&) const = default;
};

/// A task in words, as in the data of Alpaca: a turn of a chat for a model that chats, else a prompt.
struct Instruction {
  std::string instruction, input, output;

  bool operator==(const Instruction&) const = default;
};

struct Example {
  std::string place;  // "data.jsonl:7"
  std::variant<Conversation, PromptCompletion, Instruction> content;

  bool operator==(const Example&) const = default;
};

/// What a file of records or a table gives to learn, by the fields of its first record.
enum class RecordKind { labelled_texts, tagged_words, examples };

/// - labelled_texts: a text (`text` or `sentence`) with a `label` (or `labels`, or columns of 0 and 1); of a table also
/// whatever is no example.
/// - tagged_words: of JSON, a list of words in `tokens` or in the column that `columns` names.
/// - examples: `messages`; `prompt` and `completion`; `instruction` and `output` (and `input`); of JSON also a text
///   without a label, or messages in the column that `columns` names.
///
/// Throws InvalidInput for JSON that is none of them, with what is known.
RecordKind kind_of_records(const std::filesystem::path& path, const ColumnNames& columns);

/// Reads the examples of a file, each of any of these forms. Throws InvalidInput that names file, line, field, rule and
/// value: also for a role that is not known, a chat in which no assistant speaks, and calls of tools.
std::vector<Example> read_examples(const std::filesystem::path& path, const ColumnNames& columns);

/// An instruction as a turn of a chat: the instruction, and behind an empty line its input.
Conversation as_conversation(const Instruction& instruction);
/// And in the form of Alpaca.
PromptCompletion as_prompt(const Instruction& instruction);

}  // namespace frostpipe
