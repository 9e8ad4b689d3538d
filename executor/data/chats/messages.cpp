#include "executor/data/chats/messages.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "executor/data/records_json.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;
using json::Place;

/// The names that roles have in data, and in chat templates.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kRoles{{{"system", "system"},
                                                                               {"user", "user"},
                                                                               {"assistant", "assistant"},
                                                                               {"developer", "system"},
                                                                               {"human", "user"},
                                                                               {"gpt", "assistant"}}};

/// Returns whether a message has ShareGPT's fields.
bool is_of_share_gpt(const Json& message) { return has_field(message, "from") && !has_field(message, "role"); }

std::string role_in(const Json& object, const Place& place) {
  const char* name = is_of_share_gpt(object) ? "from" : "role";
  const std::string& role = text_in(object, place, name);
  for (const auto& [in_data, in_templates] : kRoles)
    if (role == in_data) return std::string(in_templates);
  throw InvalidInput(Place(place, std::string_view(name)).text(),
                     R"(must be "system", "user" or "assistant" (or "developer"; or "human" or "gpt", as in ShareGPT))",
                     in_quotes(role));
}

std::string joined_parts(const Json& parts, const Place& place) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Place at(place, i);
    if (!parts[i].is_object()) throw InvalidInput(at.text(), "must be an object with a type", shown(parts[i]));
    const std::string& type = text_in(parts[i], at, "type");
    if (type != "text")
      throw InvalidInput(Place(at, std::string_view("type")).text(),
                         "must be \"text\": parts of a message that are not text are not supported", in_quotes(type));
    text += text_in(parts[i], at, "text");
  }
  return text;
}

std::string content_in(const Json& object, const Place& place) {
  const std::string name = is_of_share_gpt(object) ? "value" : "content";
  const auto found = object.find(name);
  if (found == object.end() || found->is_string()) return text_in(object, place, name);
  const Place at(place, std::string_view(name));
  if (!found->is_array() || found->empty())
    throw InvalidInput(at.text(), R"(must be a text, or a list of parts {"type": "text", "text": "..."})",
                       shown(*found));
  return joined_parts(*found, at);
}

/// Returns false if the message's "weight", a field of OpenAI's format, is 0.
bool has_loss(const Json& object, const Place& place) {
  if (!has_field(object, "weight")) return true;
  const Json& weight = object.at("weight");
  if (!weight.is_number() || (weight != 0 && weight != 1))
    throw InvalidInput(Place(place, std::string_view("weight")).text(),
                       "must be 0 or 1 (1: the message has a loss, if it is the assistant's)", shown(weight));
  return weight == 1;
}

ChatMessage message_in(const Json& object, const Place& place) {
  if (!object.is_object())
    throw InvalidInput(place.text(), "must be an object with a role and its content", shown(object));
  for (const char* name : {"tool_calls", "tool_call_id", "function_call", "reasoning_content", "thinking"}) {
    const bool is_empty = !has_field(object, name) || object.at(name).empty() || object.at(name) == "";
    if (!is_empty)
      throw InvalidInput(Place(place, std::string_view(name)).text(),
                         "must not be there: messages of a role and a content are known", shown(object.at(name)));
  }
  return {.role = role_in(object, place), .content = content_in(object, place), .has_loss = has_loss(object, place)};
}

}  // namespace

bool has_field(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  return found != object.end() && !found->is_null();
}

const std::string& text_in(const Json& object, const Place& place, const std::string& name, const std::string& hint) {
  const auto found = object.find(name);
  if (found == object.end())
    throw InvalidInput(place.text(), fmt::format("must have the field {}{}", in_quotes(name), hint),
                       "an object with " + shown_fields(object));
  if (!found->is_string())
    throw InvalidInput(Place(place, std::string_view(name)).text(), "must be a text" + (found->is_null() ? hint : ""),
                       shown(*found));
  return found->get_ref<const std::string&>();
}

std::vector<ChatMessage> messages_in(const Json& messages, const Place& place) {
  if (!messages.is_array() || messages.empty())
    throw InvalidInput(place.text(), "must be a list of messages, each with a role and its content", shown(messages));
  std::vector<ChatMessage> found;
  for (std::size_t i = 0; i < messages.size(); ++i) found.push_back(message_in(messages[i], Place(place, i)));
  return found;
}

}  // namespace frostpipe
