#pragma once
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "executor/data/text_data.h"

namespace frostpipe {

/// These are the training examples of a causal model, in the forms of the libraries `datasets` and TRL.

struct ChatMessage {
  std::string role;  // system, user or assistant
  std::string content;
  bool has_loss = true;  // the model is trained on it, if its role is assistant

  bool operator==(const ChatMessage&) const = default;
};

/// A chat. The model is trained on the assistant's messages that have a loss.
struct Conversation {
  std::vector<ChatMessage> messages;

  bool operator==(const Conversation&) const = default;
};

/// A prompt and its completion. Plain text has an empty prompt.
struct PromptCompletion {
  std::string prompt, completion;

  bool operator==(const PromptCompletion&) const = default;
};

/// An instruction in the form of the Alpaca data, or a question with its answer. For a model with a chat template it
/// becomes a chat (as_conversation), else a prompt (as_prompt).
struct Instruction {
  std::string instruction, input, output;
  std::string system{};  // the chat's system message; "" = none

  bool operator==(const Instruction&) const = default;
};

struct Example {
  std::string place;  // "data.jsonl:7"
  std::variant<Conversation, PromptCompletion, Instruction> content;
  bool has_answer = true;  // false if there is no completion, output or message of the assistant to learn or to score

  bool operator==(const Example&) const = default;
};

/// Says whether every example must have an answer: a completion, an output, or a message of the assistant. Training
/// needs answers; to complete prompts, the model needs none.
enum class Answers { required, optional };

/// The kind of samples in a file of records or a table, by the fields of its first record.
enum class RecordKind { labelled_texts, tagged_words, examples };

/// Returns the kind of the records in a file, as its first record or its header shows it:
///
/// - labelled_texts have a text (`text` or `sentence`) with a `label` (or `labels`, or columns of 0 and 1). A table
///   without examples counts as labelled_texts too.
/// - tagged_words are JSON and have a list of words in `tokens` or in the column that `columns` names.
/// - examples have `messages` or `conversations`; `prompt` and `completion` (or `response`); `instruction` and `output`
///   (and `input`); or `question` and `answer`. A record with a `prompt` or an `instruction` and no text is an example
///   without an answer. These fields are not looked for if `columns` names the text. In JSON, examples may also be a
///   text without a label, or have messages in the column that `columns` names.
///
/// Throws InvalidInput for JSON that has none of these forms, which it lists, and for JSON with pairs of texts of which
/// `columns` names none.
RecordKind kind_of_records(const std::filesystem::path& path, const ColumnNames& columns);

/// Reads the examples of a file; each may have any of these forms. Throws InvalidInput that names file, line, field,
/// rule and value, also for an unknown role, tool calls, and an example without an answer if that is required.
/// Adds a note that names the fields that hold text and are not used.
std::vector<Example> read_examples(const std::filesystem::path& path, const ColumnNames& columns, Answers answers,
                                   std::vector<std::string>& notes);

/// Returns an instruction as a chat: the system message if there is one; the user's message, which is the instruction
/// and, after an empty line, the input; and the assistant's message, which is the output.
Conversation as_conversation(const Instruction& instruction);
/// Returns an instruction as a prompt in Alpaca's format, whose first sentences the system message replaces, and its
/// output as the completion.
PromptCompletion as_prompt(const Instruction& instruction);

}  // namespace frostpipe
