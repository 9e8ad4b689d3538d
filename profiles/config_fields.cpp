#include "profiles/config_fields.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/parse_json.h"

namespace frostpipe {
namespace {

using OrderedJson = nlohmann::ordered_json;

bool is_whole_number(const OrderedJson& value, std::int64_t least, std::int64_t most) {
  return value.is_number_integer() && value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most;
}

std::int64_t whole_number(const OrderedJson& value, std::int64_t least, const std::string& place) {
  if (!is_whole_number(value, least, kMaxConfigNumber))
    throw InvalidInput(place, fmt::format("must be a whole number from {} to {}", least, kMaxConfigNumber),
                       value.dump());
  return value.get<std::int64_t>();
}

}  // namespace

ConfigFields::ConfigFields(const std::string& text, const std::string& file, ConfigUse use) : file_(file) {
  require_computed_fields(text, file, use);
  json_ = parse_json<OrderedJson>(text, file);
}

std::int64_t ConfigFields::positive(const char* key) const {
  if (given(key).is_null()) throw InvalidInput(place(key), "must be given", "missing");
  return positive(key, 0);
}

std::int64_t ConfigFields::positive(const char* key, std::int64_t otherwise) const {
  const OrderedJson& value = given(key);
  return value.is_null() ? otherwise : whole_number(value, 1, place(key));
}

std::int64_t ConfigFields::non_negative(const char* key, std::int64_t otherwise) const {
  const OrderedJson& value = given(key);
  return value.is_null() ? otherwise : whole_number(value, 0, place(key));
}

std::vector<int> ConfigFields::positives(const char* key, const std::vector<int>& otherwise) const {
  const OrderedJson& value = given(key);
  if (value.is_null()) return otherwise;
  constexpr int kMost = (1 << 20) - 1;
  std::vector<int> numbers;
  bool fits = value.is_array() && !value.empty();
  for (const OrderedJson& one : value) {
    fits = fits && is_whole_number(one, 1, kMost);
    if (fits) numbers.push_back(one.get<int>());
  }
  if (!fits)
    throw InvalidInput(place(key), fmt::format("must be a list of whole numbers from 1 to {}", kMost), value.dump());
  return numbers;
}

double ConfigFields::number(const char* key, double otherwise) const {
  const OrderedJson& value = given(key);
  if (value.is_null()) return otherwise;
  if (!value.is_number() || !(value.get<double>() > 0))
    throw InvalidInput(place(key), "must be a number > 0", value.dump());
  return value.get<double>();
}

bool ConfigFields::flag(const char* key, bool otherwise) const {
  const OrderedJson& value = given(key);
  if (value.is_null()) return otherwise;
  if (!value.is_boolean()) throw InvalidInput(place(key), "must be true or false", value.dump());
  return value.get<bool>();
}

OrderedJson ConfigFields::object(const char* key) const {
  const OrderedJson& value = given(key);
  if (value.is_null()) return OrderedJson::object();
  if (!value.is_object()) throw InvalidInput(place(key), "must be a JSON object", value.dump());
  return value;
}

std::string ConfigFields::text(const char* key) const {
  const OrderedJson& value = given(key);
  if (value.is_null()) return "";
  if (!value.is_string()) throw InvalidInput(place(key), "must be a text", value.dump());
  return value.get<std::string>();
}

const OrderedJson& ConfigFields::given(const char* key) const {
  static const OrderedJson kNone;
  read_.insert(key);
  const auto found = json_.find(key);
  return found == json_.end() ? kNone : *found;
}

}  // namespace frostpipe
