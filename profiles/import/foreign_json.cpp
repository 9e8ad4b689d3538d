#include "profiles/import/foreign_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/error_values.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/parse_json.h"

namespace frostpipe::foreign {

void Value::fail(std::string_view rule) const {
  const std::string text = json_text(*json_);
  throw InvalidInput(place_, rule, shortened(text, 60));
}

Value Value::operator[](std::string_view key) const {
  const std::string name(key);
  if (!has(key)) fail(fmt::format("must have the member \"{}\"", name));
  return {json_->at(name), fmt::format("{}.{}", place_, name)};
}

Value Value::operator[](int index) const {
  if (!json_->is_array() || index < 0 || static_cast<std::size_t>(index) >= json_->size())
    fail(fmt::format("must be a list with more than {} elements", index));
  return {json_->at(index), fmt::format("{}[{}]", place_, index)};
}

std::vector<std::pair<std::string, Value>> Value::members() const {
  if (!json_->is_object()) fail("must be an object");
  std::vector<std::pair<std::string, Value>> members;
  for (const auto& [key, value] : json_->items())
    members.emplace_back(key, Value(value, fmt::format("{}.{}", place_, key)));
  return members;
}

std::vector<Value> Value::elements() const {
  if (!json_->is_array()) fail("must be a list");
  std::vector<Value> elements;
  for (std::size_t i = 0; i < json_->size(); ++i) elements.emplace_back((*json_)[i], fmt::format("{}[{}]", place_, i));
  return elements;
}

double Value::number() const {
  if (!json_->is_number()) fail("must be a number");
  return json_->get<double>();
}

int Value::integer() const {
  const double value = number();
  if (value != std::floor(value) || std::abs(value) > std::numeric_limits<int>::max()) fail("must be a whole number");
  return static_cast<int>(value);
}

std::string Value::text() const {
  if (!json_->is_string()) fail("must be a text");
  return json_->get<std::string>();
}

File::File(const std::filesystem::path& path) : File(read_text_file(path), path.string()) {}

File::File(std::string_view json, std::string_view source) : place_(source) {
  json_ = std::make_unique<nlohmann::json>(parse_json<nlohmann::json>(json, place_));
}

int number_in(std::string_view key, const Value& value, int least) {
  constexpr int kMax = 1 << 24;
  int number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (error != std::errc() || end != key.data() + key.size() || number < least || number > kMax)
    throw InvalidInput(value.place(), fmt::format("the key must be a whole number from {} to {}", least, kMax),
                       in_quotes(key));
  return number;
}

}  // namespace frostpipe::foreign
