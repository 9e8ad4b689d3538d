#include "executor/data/chats/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/parse_json.h"
#include "executor/data/text_file.h"

namespace frostpipe {
namespace {

using jinja::MarkedBytes;
using jinja::Text;
using jinja::Value;
using Json = nlohmann::json;

constexpr std::size_t kMaxTemplateBytes = std::size_t{1} << 20;

template <class Call>
auto naming(const std::string& place, Call call) {
  try {
    return call();
  } catch (const InvalidInput& error) {
    throw InvalidInput(
        fmt::format("{}: {} (to replace this template, put another chat_template.jinja into the model's "
                    "folder; data with \"prompt\" and \"completion\" need no template)",
                    place, error.what()));
  }
}

/// Returns the end of the token in angle brackets that begins at `begin`; `begin` if there is none.
std::size_t end_of_token(const std::string& text, std::size_t begin) {
  if (begin >= text.size() || text[begin] != '<') return begin;
  std::size_t end = begin + 1;
  while (end < text.size() && text[end] != '<' && text[end] != '>' &&
         !std::isspace(static_cast<unsigned char>(text[end])))
    ++end;
  return end < text.size() && text[end] == '>' ? end + 1 : begin;
}

/// Returns the end of the token that ends a turn whose content ends at `begin`: a token in angle brackets, or, after
/// white space, the one that ends a text (Llama 2, DeepSeek Coder). Returns `begin` if there is none.
std::size_t end_of_turn(const std::string& text, std::size_t begin, const std::string& end_of_text) {
  const std::size_t next = std::min(text.find_first_not_of(" \t\r\n", begin), text.size());
  if (next > begin && !end_of_text.empty() && text.compare(next, end_of_text.size(), end_of_text) == 0)
    return next + end_of_text.size();
  return end_of_token(text, begin);
}

/// A range of a text that the assistant says.
struct SaidRange {
  TextRange range;
  bool has_loss = true;
};

std::vector<SaidRange> said_ranges(const Text& text) {
  std::vector<SaidRange> ranges;
  char16_t before = 0;  // the marks of the previous byte
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char16_t marks = MarkedBytes::marks(text[i]);
    if ((marks & MarkedBytes::kAssistant) != 0) {
      if (marks != before) ranges.push_back({{i, i}, (marks & MarkedBytes::kNoLoss) == 0});
      ranges.back().range.end = i + 1;
    }
    before = marks;
  }
  return ranges;
}

Json object_in(const std::filesystem::path& path) {
  const std::string text = read_text_if_any(path);
  if (text.empty()) return Json::object();
  Json object = parse_json<Json>(text, path.string());
  return object.is_object() ? object : Json::object();
}

/// Adds the members of `from` whose names end in "_token", unless `tokens` has them. A value is a string, or an object
/// with the string `content`.
void add_special_tokens(const Json& from, std::map<std::string, std::string>& tokens) {
  for (const auto& [name, value] : from.items()) {
    const Json* text = &value;
    if (value.is_object() && value.contains("content")) text = &value["content"];
    if (name.ends_with("_token") && text->is_string()) tokens.emplace(name, *text);
  }
}

/// Returns chat_template of tokenizer_config.json: a string, or the template named "default" in a list; nothing if
/// there is none. Throws InvalidInput for any other value.
std::optional<std::string> template_in(const Json& config, const std::string& place) {
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (found->is_string()) return *found;
  if (found->is_array()) {
    for (const Json& one : *found) {
      const bool is_named = one.is_object() && one.contains("name") && one.contains("template");
      if (is_named && one["name"] == "default" && one["template"].is_string()) return one["template"];
    }
  }
  throw InvalidInput(place, "must be a template, or a list of templates with one named \"default\"",
                     found->is_array() ? "a list without it" : found->type_name());
}

}  // namespace

ChatTemplate::ChatTemplate(const std::string& source, std::string place,
                           std::map<std::string, std::string> special_tokens)
    : place_(std::move(place)),
      special_tokens_(std::move(special_tokens)),
      template_(naming(place_, [&] { return jinja::Template(source); })),
      prompt_(prompt_of_assistant()) {}

Text ChatTemplate::written(const std::vector<ChatMessage>& messages, bool prompts) const {
  jinja::List list;
  for (const ChatMessage& message : messages) {
    const char16_t marks = message.role != "assistant" ? 0
                           : message.has_loss          ? MarkedBytes::kAssistant
                                                       : MarkedBytes::kAssistant | MarkedBytes::kNoLoss;
    list.push_back(jinja::members_value(
        {{"role", jinja::text_of(message.role)}, {"content", jinja::text_of(message.content, marks)}}));
  }
  std::map<std::string, Value> names{{"messages", jinja::list_value(std::move(list))},
                                     {"tools", jinja::None{}},
                                     {"documents", jinja::None{}},
                                     {"add_generation_prompt", prompts}};
  for (const auto& [name, token] : special_tokens_) names.emplace(name, jinja::text_of(token));
  return template_.render(names);
}

std::string ChatTemplate::prompt_of_assistant() const {
  const std::vector<ChatMessage> one{{"user", "."}};
  try {
    const std::string without = bytes_of(written(one, false)), with = bytes_of(written(one, true));
    return with.starts_with(without) ? with.substr(without.size()) : std::string();
  } catch (const InvalidInput&) {
    return {};  // the template rejects this probe; errors of real chats are reported when they are rendered
  }
}

RenderedText ChatTemplate::render(const Conversation& conversation) const {
  const Text marked = naming(place_, [&] { return written(conversation.messages, false); });
  RenderedText rendered{.text = bytes_of(marked), .said = {}};
  std::vector<SaidRange> turns;                   // the assistant's turns, also those without a loss
  std::size_t prompt_before = std::string::npos;  // position of the previous turn's prompt
  const std::vector<SaidRange> all = said_ranges(marked);
  const auto eos = special_tokens_.find("eos_token");
  const std::string end_of_text = eos == special_tokens_.end() ? "" : eos->second;
  for (std::size_t i = 0; i < all.size(); ++i) {
    SaidRange said = all[i];
    TextRange& range = said.range;
    const std::size_t next = i + 1 < all.size() ? all[i + 1].range.begin : rendered.text.size();
    range.end = std::min(end_of_turn(rendered.text, range.end, end_of_text), next);
    const std::size_t prompt = prompt_.empty() ? std::string::npos : rendered.text.rfind(prompt_, range.begin);
    const bool is_same_turn = prompt != std::string::npos && prompt == prompt_before && !turns.empty();
    if (is_same_turn && said.has_loss == turns.back().has_loss) {
      turns.back().range.end = range.end;
      continue;
    }
    const std::size_t last_end = turns.empty() ? 0 : turns.back().range.end;
    if (!is_same_turn && prompt != std::string::npos && prompt >= last_end && prompt + prompt_.size() <= range.begin)
      range.begin = prompt + prompt_.size();
    turns.push_back(said);
    prompt_before = prompt;
  }
  for (const SaidRange& said : turns)
    if (said.has_loss) rendered.said.push_back(said.range);
  return rendered;
}

std::string ChatTemplate::prompt(const std::vector<ChatMessage>& messages) const {
  return naming(place_, [&] { return bytes_of(written(messages, true)); });
}

std::optional<ChatTemplate> chat_template_in(const std::filesystem::path& model_folder) {
  const std::filesystem::path file = model_folder / "chat_template.jinja",
                              settings = model_folder / "tokenizer_config.json";
  const Json config = object_in(settings);
  std::string place = file.string();
  std::optional<std::string> source;
  if (std::filesystem::exists(file)) {
    source = read_utf8_file(file, kMaxTemplateBytes);
  } else {
    place = settings.string() + ": chat_template";
    source = template_in(config, place);
  }
  if (!source) return std::nullopt;
  std::map<std::string, std::string> tokens;
  add_special_tokens(config, tokens);
  add_special_tokens(object_in(model_folder / "special_tokens_map.json"), tokens);
  return ChatTemplate(*source, place, std::move(tokens));
}

const ChatTemplate& require_template(const std::optional<ChatTemplate>& found, const std::string& place,
                                     const std::filesystem::path& model_folder) {
  if (!found)
    throw InvalidInput(place,
                       "chats need a model with a template for them: chat_template.jinja in its folder, or "
                       "chat_template in its tokenizer_config.json (copy that of the model's chat variant)",
                       fmt::format("a chat, and {} has none", model_folder.string()));
  return *found;
}

}  // namespace frostpipe
