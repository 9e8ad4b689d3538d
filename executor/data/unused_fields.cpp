#include "executor/data/unused_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error_values.h"
#include "base/separated_values.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

/// Returns whether a value is a text with words, or a list whose first element is an object or such a text.
bool holds_text(const Json& value) {
  const Json* first = &value;
  while (first->is_array() && !first->empty()) first = &first->front();
  if (first->is_string()) return holds_words(first->get_ref<const std::string&>());
  return first->is_object() && first != &value;
}

}  // namespace

bool holds_words(std::string_view text) {
  const std::string_view word = trimmed(text);
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return !word.empty() && (error == std::errc::invalid_argument || end != word.data() + word.size());
}

void UnusedFields::add(const Json& record, const std::vector<std::string>& used) {
  for (const auto& [name, value] : record.items()) {
    const bool is_label = (name == "label" || name == "labels") && !value.is_null();
    if ((is_label || holds_text(value)) && std::ranges::find(used, name) == used.end()) names_.insert(name);
  }
}

std::vector<std::string> UnusedFields::note(const std::filesystem::path& path) const {
  if (names_.empty()) return {};
  const std::vector<std::string> names(names_.begin(), names_.end());
  return {names.size() == 1 ? fmt::format("{}: the field {} is not used", path.string(), in_quotes(names))
                            : fmt::format("{}: the fields {} are not used", path.string(), in_quotes(names))};
}

}  // namespace frostpipe
