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

/// Bytes of a text, [begin, end).
struct TextRange {
  std::size_t begin = 0, end = 0;

  bool operator==(const TextRange&) const = default;
};

/// A text with special tokens written out, and what of it a model is to say.
struct RenderedText {
  std::string text;
  std::vector<TextRange> said;  // ascending

  bool operator==(const RenderedText&) const = default;
};

/// How a model's chats are written: the template of its folder, in Jinja, as transformers' apply_chat_template renders
/// it without tools and without a prompt for more.
class ChatTemplate {
 public:
  /// `special_tokens`: bos_token, eos_token and so on. Throws InvalidInput that names `place`, line, rule and what is
  /// known where the template says something that is not known here.
  ChatTemplate(const std::string& source, std::string place, std::map<std::string, std::string> special_tokens);

  /// What the assistant says is, of each of its turns, all that stands behind what the template writes to let it speak
  /// (add_generation_prompt): its content with what the template puts before it (Qwen3's <think>), and the token in
  /// angle brackets that ends the turn. A content that the template leaves out is not said.
  ///
  /// Throws InvalidInput that names the template and its line where it raises an exception, or something is not known
  /// here; and what to do.
  RenderedText render(const Conversation& conversation) const;

  /// Messages up to where the assistant is to speak next (add_generation_prompt). Throws as render().
  std::string prompt(const std::vector<ChatMessage>& messages) const;

 private:
  jinja::Text written(const std::vector<ChatMessage>& messages, bool prompts) const;
  std::string prompt_of_assistant() const;

  std::string place_;
  std::map<std::string, std::string> special_tokens_;
  jinja::Template template_;
  std::string prompt_;  // what lets the assistant speak; empty where nothing does
};

/// That of a folder: chat_template.jinja, else chat_template in tokenizer_config.json (of several the one named
/// "default"); nothing where there is none. Special tokens are those of tokenizer_config.json and
/// special_tokens_map.json.
std::optional<ChatTemplate> chat_template_in(const std::filesystem::path& model_folder);

/// For the chat at `place` in the data. Throws InvalidInput where the folder had none.
const ChatTemplate& require_template(const std::optional<ChatTemplate>& found, const std::string& place,
                                     const std::filesystem::path& model_folder);

}  // namespace frostpipe
