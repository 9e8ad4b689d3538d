#pragma once
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/data/chats/examples.h"
#include "executor/data/chats/jinja_template.h"

namespace frostpipe {

/// A range of bytes of a text, [begin, end).
struct TextRange {
  std::size_t begin = 0, end = 0;

  bool operator==(const TextRange&) const = default;
};

/// A text with special tokens written out, and the ranges that the model is trained to generate.
struct RenderedText {
  std::string text;
  std::vector<TextRange> said;  // ranges that have a loss; ascending

  bool operator==(const RenderedText&) const = default;
};

/// The chat template of a model's folder, in Jinja. It is rendered as by transformers' apply_chat_template without
/// tools.
class ChatTemplate {
 public:
  /// `special_tokens` are bos_token, eos_token and so on. Throws InvalidInput that names `place`, line, rule and the
  /// supported features if the template uses an unsupported one.
  ChatTemplate(const std::string& source, std::string place, std::map<std::string, std::string> special_tokens);

  /// Renders a chat without a generation prompt (add_generation_prompt) at its end. The model is trained on each of the
  /// assistant's turns that has a loss, from the end of its generation prompt, or from its content if the template has
  /// no such prompt. The turn thus includes the text that the template puts before the content (Qwen3's <think>), and
  /// the token that ends the turn: one in angle brackets right after the content, or eos_token after white space.
  /// Content that the template omits is not trained on.
  ///
  /// Throws InvalidInput that names the template, its line and a remedy if the template raises an exception or uses an
  /// unsupported feature.
  RenderedText render(const Conversation& conversation) const;

  /// Renders messages with the generation prompt of the assistant's next turn (add_generation_prompt). Throws as
  /// render() does.
  std::string prompt(const std::vector<ChatMessage>& messages) const;

 private:
  jinja::Text written(const std::vector<ChatMessage>& messages, bool prompts) const;
  std::string prompt_of_assistant() const;

  std::string place_;
  std::map<std::string, std::string> special_tokens_;
  jinja::Template template_;
  std::string prompt_;  // the generation prompt; empty if the template has none
};

/// Returns the template of a folder: chat_template.jinja, else chat_template in tokenizer_config.json (if that is a
/// list, the template named "default"); nothing if there is none. Special tokens are taken from tokenizer_config.json
/// and special_tokens_map.json. Throws InvalidInput for a damaged file, and as the constructor does.
std::optional<ChatTemplate> chat_template_in(const std::filesystem::path& model_folder);

/// Returns the template for the chat at `place` in the data. Throws InvalidInput if the folder has none.
const ChatTemplate& require_template(const std::optional<ChatTemplate>& found, const std::string& place,
                                     const std::filesystem::path& model_folder);

}  // namespace frostpipe
