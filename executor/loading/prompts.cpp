#include "executor/loading/prompts.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <variant>

#include "base/error.h"
#include "executor/data/chats/chat_template.h"
#include "executor/data/chats/examples.h"
#include "executor/loading/text_encoder.h"

namespace frostpipe {
namespace {

class Reader {
 public:
  explicit Reader(const ModelFolder& folder)
      : folder_(folder), tokens_(causal_encoder(folder)), template_(chat_template_in(folder.path)) {}

  /// Returns nothing for an example without a prompt.
  std::optional<Prompt> read(const Example& example) const {
    std::optional<Prompt> prompt =
        std::visit([&](const auto& content) { return prompt_of(content, example.place); }, example.content);
    if (!prompt) return std::nullopt;
    prompt->place = example.place;
    const std::vector<std::int32_t> ids = with_place(example.place, [&] { return tokens_.written(prompt->text).ids; });
    prompt->ids.insert(prompt->ids.end(), ids.begin(), ids.end());
    return prompt;
  }

 private:
  std::optional<Prompt> prompt_of(const Conversation& chat, const std::string& place) const {
    std::vector<ChatMessage> messages = chat.messages;
    Prompt prompt;
    if (messages.back().role == "assistant") {
      prompt.expected = std::move(messages.back().content);
      messages.pop_back();
    }
    if (messages.empty()) return std::nullopt;
    const ChatTemplate& chat_template = require_template(template_, place, folder_.path);
    prompt.text = with_place(place, [&] { return chat_template.prompt(messages); });
    return prompt;
  }

  std::optional<Prompt> prompt_of(const PromptCompletion& text, const std::string&) const {
    if (text.prompt.empty()) return std::nullopt;
    return Prompt{.place = {}, .text = text.prompt, .ids = tokens_.before_text, .expected = text.completion};
  }

  std::optional<Prompt> prompt_of(const Instruction& instruction, const std::string& place) const {
    return template_ ? prompt_of(as_conversation(instruction), place) : prompt_of(as_prompt(instruction), place);
  }

  const ModelFolder& folder_;
  CausalEncoder tokens_;
  std::optional<ChatTemplate> template_;
};

}  // namespace

std::vector<Prompt> read_prompts(const std::filesystem::path& path, const ColumnNames& columns,
                                 const ModelFolder& folder, std::vector<std::string>& notes) {
  const Reader reader(folder);
  std::vector<Prompt> prompts;
  std::vector<std::string> notes_on_fields;  // not reported here: load_to_score() reports the same ones
  const std::vector<Example> examples = read_examples(path, columns, Answers::optional, notes_on_fields);
  for (const Example& example : examples)
    if (std::optional<Prompt> prompt = reader.read(example)) prompts.push_back(*std::move(prompt));
  if (prompts.empty())
    throw InvalidInput(path.string(),
                       "must have a prompt to be completed: \"prompt\", \"instruction\", or \"messages\" with one "
                       "before the assistant's",
                       "without one");
  if (prompts.size() < examples.size())
    notes.push_back(fmt::format("{}: {} of {} samples have no prompt and are not completed", path.string(),
                                examples.size() - prompts.size(), examples.size()));
  return prompts;
}

}  // namespace frostpipe
