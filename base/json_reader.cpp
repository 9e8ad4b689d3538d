#include "base/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error_values.h"
#include "base/json_text.h"
#include "base/parse_json.h"
#include "base/spelling.h"

namespace frostpipe::json {

namespace {

constexpr std::size_t kLineWidth = 120;

/// Appends the text that json_text returns. It formats integers itself: a profile has many, and json_text is slow.
void append_scalar(const Json& json, std::string& out) {
  if (json.is_number_unsigned()) {
    fmt::format_to(std::back_inserter(out), "{}", json.get<std::uint64_t>());
  } else if (json.is_number_integer()) {
    fmt::format_to(std::back_inserter(out), "{}", json.get<std::int64_t>());
  } else {
    out += json_text(json);
  }
}

void append_key(const std::string& key, std::string& out) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (std::all_of(key.begin(), key.end(), is_plain)) {
    out.append(1, '"').append(key).append("\": ");
  } else {
    out.append(json_text(Json(key))).append(": ");
  }
}

/// Appends `json` on one line. Gives up and returns false as soon as `out` is longer than `longest`.
bool append_compact(const Json& json, std::string& out, std::size_t longest) {
  if (!json.is_structured()) {
    append_scalar(json, out);
    return out.size() <= longest;
  }
  out += json.is_object() ? "{" : "[";
  const char* separator = "";
  for (auto it = json.begin(); it != json.end(); ++it) {
    out += separator;
    separator = ", ";
    if (json.is_object()) append_key(it.key(), out);
    if (!append_compact(*it, out, longest)) return false;
  }
  out += json.is_object() ? "}" : "]";
  return out.size() <= longest;
}

void append_filled(const Json& array, std::size_t indent, std::string& out) {
  const std::string margin = fmt::format("\n{:{}}", "", indent + 1);
  out += '[';
  out += margin;
  std::size_t column = indent + 1;
  for (std::size_t i = 0; i < array.size(); ++i) {
    const std::string item = json_text(array[i]) + (i + 1 < array.size() ? "," : "");
    if (column > indent + 1 && column + 1 + item.size() > kLineWidth) {
      out += margin;
      column = indent + 1;
    } else if (column > indent + 1) {
      out += " ";
      ++column;
    }
    out += item;
    column += item.size();
  }
  out += fmt::format("\n{:{}}]", "", indent);
}

/// Appends `json` in the layout of pretty_text. `used` is the number of characters that the line already has.
void append_pretty(const Json& json, std::size_t indent, std::size_t used, std::string& out) {
  std::string line;
  const bool is_root = indent == 0 && used == 0;
  if (!is_root && append_compact(json, line, kLineWidth - std::min(kLineWidth, used + 1))) {
    out += line;
    return;
  }
  if (!json.is_structured()) {
    append_scalar(json, out);
    return;
  }
  const auto is_scalar = [](const Json& element) { return !element.is_structured(); };
  if (json.is_array() && std::all_of(json.begin(), json.end(), is_scalar)) return append_filled(json, indent, out);
  out += json.is_object() ? "{" : "[";
  const char* separator = "\n";
  for (auto it = json.begin(); it != json.end(); ++it) {
    out += separator;
    separator = ",\n";
    std::string start(indent + 1, ' ');
    if (json.is_object()) append_key(it.key(), start);
    out += start;
    append_pretty(*it, indent + 1, start.size(), out);
  }
  out += fmt::format("\n{:{}}{}", "", indent, json.is_object() ? '}' : ']');
}

std::string suggestion(std::string_view key, const std::vector<const char*>& known) {
  if (const auto meant = nearest_spelling(key, {known.begin(), known.end()}))
    return fmt::format("did you mean \"{}\"?", *meant);
  return known.empty() ? "" : fmt::format("known: {}", fmt::join(known, ", "));
}

}  // namespace

std::string Place::path() const {
  if (parent_ == nullptr) return "";
  const std::string before = parent_->path();
  if (index_) return fmt::format("{}[{}]", before, *index_);
  const std::string key = shortened(key_);
  return before.empty() ? key : fmt::format("{}.{}", before, key);
}

std::string Place::text() const {
  const std::string where = path();
  return where.empty() ? std::string(source()) : fmt::format("{}: {}", source(), where);
}

void fail(const Place& place, std::string_view rule, const Json& value) {
  throw InvalidInput(place.text(), rule, shortened(json_text(value), 60));
}

void fail_fields(const Place& place, const Json& object, const std::vector<const char*>& known, const char* missing) {
  for (const auto& [key, value] : object.items()) {
    const auto same = [&key = key](const char* name) { return key == name; };
    if (std::none_of(known.begin(), known.end(), same))
      throw InvalidInput(fmt::format("{}: is not a known field; {}", Place(place, std::string_view(key)).text(),
                                     suggestion(shortened(key), known)));
  }
  FROSTPIPE_CHECK(missing != nullptr, "fields are either unknown or missing");
  throw InvalidInput(fmt::format("{}: has no field \"{}\"", place.text(), missing));
}

std::int64_t read_integer(const Json& json, const Place& place, std::int64_t minimum, std::int64_t maximum) {
  if (!json.is_number_integer()) fail(place, "must be an integer", json);
  const bool above_64_bits =
      json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (above_64_bits || json.get<std::int64_t>() > maximum) fail(place, fmt::format("must be <= {}", maximum), json);
  const auto value = json.get<std::int64_t>();
  if (value < minimum) fail(place, fmt::format("must be >= {}", minimum), json);
  return value;
}

std::uint64_t read_unsigned(const Json& json, const Place& place) {
  if (!json.is_number_integer()) fail(place, "must be an integer", json);
  if (!json.is_number_unsigned()) fail(place, "must be >= 0", json);
  return json.get<std::uint64_t>();
}

double read_number(const Json& json, const Place& place, Bounds bounds) {
  double value = 0;
  if (json == "NaN") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (json == "Infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (json == "-Infinity") {
    value = -std::numeric_limits<double>::infinity();
  } else if (json.is_number()) {
    value = json.get<double>();
  } else {
    fail(place, "must be a number", json);
  }
  if (bounds.minimum != Bounds{}.minimum && !(value >= static_cast<double>(bounds.minimum)))  // or NaN
    fail(place, fmt::format("must be >= {}", bounds.minimum), json);
  if (bounds.maximum != Bounds{}.maximum && !(value <= static_cast<double>(bounds.maximum)))  // or NaN
    fail(place, fmt::format("must be <= {}", bounds.maximum), json);
  return value;
}

const std::string& read_string(const Json& json, const Place& place) {
  if (!json.is_string()) fail(place, "must be a string", json);
  return json.get_ref<const std::string&>();
}

Json write_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Content open_envelope(std::string_view text, std::string_view source, std::string_view format, int newest) {
  require_few_json_values(text, source);
  Json json = parse_json<Json>(text, source);
  const Place place(source);
  if (!json.is_object()) fail(place, "must be an object", json);
  if (!json.contains("format"))
    throw InvalidInput(fmt::format("{}: is not a file of frostpipe: has no field \"format\"", source));
  if (json["format"] != format) fail(Place(place, "format"), fmt::format("must be \"{}\"", format), json["format"]);
  if (!json.contains("version")) throw InvalidInput(fmt::format("{}: has no field \"version\"", source));
  const Place version_place(place, "version");
  const auto version =
      static_cast<int>(read_integer(json["version"], version_place, 1, std::numeric_limits<int>::max()));
  if (version > newest)
    throw InvalidInput(
        fmt::format("{}: was written by a newer frostpipe: this one reads versions up to {}, the file has {}",
                    version_place.text(), newest, version));
  json.erase("format");
  json.erase("version");
  return {.version = version, .json = std::move(json)};
}

std::string pretty_text(const Json& json) {
  std::string out;
  append_pretty(json, 0, 0, out);
  out += "\n";
  return out;
}

}  // namespace frostpipe::json
