#pragma once
// Implementation header: include it from .cpp files only.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "executor/data/chats/examples.h"

namespace frostpipe {

/// Returns whether an object has the field, and it is not null.
bool has_field(const nlohmann::json& object, const std::string& name);

/// Returns the text in a field. Throws InvalidInput that names the place if the object lacks the field or the field is
/// not a text; if it is missing or null, `hint` is appended to the rule.
const std::string& text_in(const nlohmann::json& object, const json::Place& place, const std::string& name,
                           const std::string& hint = "");

/// Reads a list of messages, each with a role and a content as OpenAI has them, or with ShareGPT's "from" and "value".
/// A content is a text, or a list of parts of text, which are joined. The roles "human", "gpt" and "developer" become
/// user, assistant and system. A message whose "weight" is 0 has no loss. Throws InvalidInput that names the place for
/// an empty list, other roles, parts that are not text, tool calls, reasoning in a field of its own
/// ("reasoning_content", "thinking"), and other weights than 0 and 1.
std::vector<ChatMessage> messages_in(const nlohmann::json& messages, const json::Place& place);

}  // namespace frostpipe
