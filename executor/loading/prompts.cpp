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

  Prompt read(const Example& example) const {
    Prompt prompt = std::visit([&](const auto& content) { return prompt_of(content, example.place); }, example.content);
    prompt.place = example.place;
    const std::vector<std::int32_t> ids = tokens_.written(prompt.text).ids;
    prompt.ids.insert(prompt.ids.end(), ids.begin(), ids.end());
    return prompt;
  }

 private:
  Prompt prompt_of(const Conversation& chat, const std::string& place) const {
    std::vector<ChatMessage> messages = chat.messages;
    Prompt prompt;
    if (messages.back().role == "assistant") {
      prompt.expected = std::move(messages.back().content);
      messages.pop_back();
    }
    if (messages.empty())
      throw InvalidInput(place, "must have a message before the assistant's, for the model to answer", "without one");
    const ChatTemplate& chat_template = require_template(template_, place, folder_.path);
    try {
      prompt.text = chat_template.prompt(messages);
    } catch (const InvalidInput& error) {
      throw InvalidInput(fmt::format("{}: {}", place, error.what()));
    }
    return prompt;
  }

  Prompt prompt_of(const PromptCompletion& text, const std::string& place) const {
    if (text.prompt.empty())
      throw InvalidInput(place,
                         "must have a prompt to be completed: \"prompt\" and \"completion\", \"messages\", or "
                         "\"instruction\" and \"output\"",
                         "a text without one");
    return {.text = text.prompt, .ids = tokens_.before_text, .expected = text.completion};
  }

  Prompt prompt_of(const Instruction& instruction, const std::string& place) const {
    return template_ ? prompt_of(as_conversation(instruction), place) : prompt_of(as_prompt(instruction), place);
  }

  const ModelFolder& folder_;
  CausalEncoder tokens_;
  std::optional<ChatTemplate> template_;
};

}  // namespace

std::vector<Prompt> read_prompts(const std::filesystem::path& path, const ColumnNames& columns,
                                 const ModelFolder& folder) {
  const Reader reader(folder);
  std::vector<Prompt> prompts;
  for (const Example& example : read_examples(path, columns)) prompts.push_back(reader.read(example));
  return prompts;
}

}  // namespace frostpipe
