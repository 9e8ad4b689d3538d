#include "profiles/config_fields.h"

#include "base/error.h"
#include "base/parse_json.h"

namespace frostpipe {
namespace {

using OrderedJson = nlohmann::ordered_json;

bool is_positive_number(const OrderedJson& value) {
  return value.is_number_integer() && value.get<std::int64_t>() > 0 &&
         value.get<std::int64_t>() <= std::int64_t{1} << 31;
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
  if (value.is_null()) return otherwise;
  if (!is_positive_number(value)) throw InvalidInput(place(key), "must be a whole number > 0", value.dump());
  return value.get<std::int64_t>();
}

std::int64_t ConfigFields::non_negative(const char* key, std::int64_t otherwise) const {
  const OrderedJson& value = given(key);
  if (value.is_null()) return otherwise;
  if (value != 0 && !is_positive_number(value))
    throw InvalidInput(place(key), "must be a whole number >= 0", value.dump());
  return value.get<std::int64_t>();
}

std::vector<int> ConfigFields::positives(const char* key, const std::vector<int>& otherwise) const {
  const OrderedJson& value = given(key);
  if (value.is_null()) return otherwise;
  std::vector<int> numbers;
  bool fits = value.is_array() && !value.empty();
  for (const OrderedJson& one : value) {
    fits = fits && is_positive_number(one) && one.get<std::int64_t>() < std::int64_t{1} << 20;
    if (fits) numbers.push_back(one.get<int>());
  }
  if (!fits) throw InvalidInput(place(key), "must be a list of whole numbers > 0", value.dump());
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
  return value.is_string() ? value.get<std::string>() : "";
}

const OrderedJson& ConfigFields::given(const char* key) const {
  static const OrderedJson kNone;
  read_.insert(key);
  const auto found = json_.find(key);
  return found == json_.end() ? kNone : *found;
}

}  // namespace frostpipe
