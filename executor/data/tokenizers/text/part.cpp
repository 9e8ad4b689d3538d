#include "executor/data/tokenizers/text/part.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/error_values.h"

namespace frostpipe {

PipelinePart::PipelinePart(const Json& json, std::string place, std::string_view separator)
    : json_(&json), place_(std::move(place)), separator_(separator) {
  if (!json.is_object()) throw InvalidInput(place_, "must be an object", shown(json));
}

const PipelinePart::Json& PipelinePart::take(const std::string& key) {
  static const Json kNull;
  taken_.insert(key);
  const auto found = json_->find(key);
  return found == json_->end() ? kNull : *found;
}

bool PipelinePart::flag(const std::string& key) {
  const Json& value = take(key);
  if (!value.is_boolean()) throw InvalidInput(place_of(key), "must be true or false", shown(value));
  return value.get<bool>();
}

bool PipelinePart::flag(const std::string& key, bool otherwise) { return take(key).is_null() ? otherwise : flag(key); }

std::string PipelinePart::text(const std::string& key) {
  const Json& value = take(key);
  if (!value.is_string()) throw InvalidInput(place_of(key), "must be a text", shown(value));
  return value.get<std::string>();
}

std::string PipelinePart::text(const std::string& key, std::string_view otherwise) {
  return take(key).is_null() ? std::string(otherwise) : text(key);
}

int PipelinePart::count(const std::string& key, int otherwise) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 20;
  const Json& value = take(key);
  if (value.is_null()) return otherwise;
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMax)
    throw InvalidInput(place_of(key), fmt::format("must be an integer from 0 to {}", kMax), shown(value));
  return value.get<int>();
}

PipelinePart PipelinePart::part(const std::string& key) { return {take(key), place_of(key)}; }

std::vector<PipelinePart> PipelinePart::parts(const std::string& key) {
  const Json& list = take(key);
  if (!list.is_array()) throw InvalidInput(place_of(key), "must be an array", shown(list));
  std::vector<PipelinePart> result;
  for (std::size_t i = 0; i < list.size(); ++i) result.emplace_back(list[i], fmt::format("{}[{}]", place_of(key), i));
  return result;
}

void PipelinePart::require(const std::string& key, const std::vector<Json>& allowed, std::string_view why) {
  const Json& value = take(key);
  if (!value.is_null() && std::find(allowed.begin(), allowed.end(), value) == allowed.end())
    throw InvalidInput(place_of(key), why, shown(value));
}

void PipelinePart::finish() const {
  for (const auto& [key, value] : json_->items())
    if (!taken_.contains(key))
      throw InvalidInput(place_of(key), fmt::format("must be one of the known fields ({})", fmt::join(taken_, ", ")),
                         in_quotes(key));
}

void refuse_kind(const PipelinePart& part, const std::string& name, const std::vector<std::string_view>& known) {
  throw InvalidInput(part.place_of("type"),
                     fmt::format("must be one of those that are known ({})", fmt::join(known, ", ")), in_quotes(name));
}

}  // namespace frostpipe
