#include "executor/data/chats/jinja_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/error_values.h"

namespace frostpipe::jinja {
namespace {

void require_storable(const Value& value) {
  if (value.as<std::shared_ptr<Function>>() || value.as<std::shared_ptr<Namespace>>())
    throw InvalidInput("an element of a list, an object or a namespace", "must be none of these", kind_of(value));
}

/// Counts `part` as an element of `whole`.
void count(Value& whole, const Value& part) {
  require_storable(part);
  whole.nesting = std::max(whole.nesting, 1 + part.nesting);
  whole.elements += 1 + part.elements;
  if (whole.nesting > kMaxNesting)
    throw InvalidInput("a list or an object", fmt::format("must nest at most {} deep", kMaxNesting), "deeper");
  if (whole.elements > kMaxElements)
    throw InvalidInput("a list or an object", "must have at most 2^20 elements, with those of its elements", "more");
}

}  // namespace

int MarkedBytes::compare(const char16_t* a, const char16_t* b, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    if (!eq(a[i], b[i])) return lt(a[i], b[i]) ? -1 : 1;
  }
  return 0;
}

const char16_t* MarkedBytes::find(const char16_t* text, std::size_t size, const char16_t& wanted) {
  const char16_t* const found = std::find_if(text, text + size, [&](char16_t c) { return eq(c, wanted); });
  return found == text + size ? nullptr : found;
}

Text text_of(std::string_view bytes, char16_t marks) {
  Text text;
  text.reserve(bytes.size());
  for (const char c : bytes) text.push_back(static_cast<char16_t>(static_cast<unsigned char>(c) | marks));
  return text;
}

std::string bytes_of(const Text& text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (const char16_t c : text) bytes.push_back(static_cast<char>(MarkedBytes::byte(c)));
  return bytes;
}

void append(Text& text, const Text& more) {
  if (text.size() + more.size() > kMaxTextBytes)
    throw InvalidInput("a text of a chat", "must have at most 64 MiB", "longer");
  text += more;
}

bool Value::is_true() const {
  if (const auto* value = as<bool>()) return *value;
  if (const auto* value = as<std::int64_t>()) return *value != 0;
  if (const auto* value = as<Text>()) return !value->empty();
  if (const auto* value = as<std::shared_ptr<List>>()) return !(*value)->empty();
  if (const auto* value = as<std::shared_ptr<Members>>()) return !(*value)->empty();
  return as<std::shared_ptr<Function>>() || as<std::shared_ptr<Namespace>>();
}

std::vector<const Value*> bound(const std::string& whose, const Arguments& arguments,
                                const std::vector<std::string>& names) {
  if (arguments.values.size() > names.size())
    throw InvalidInput(whose, fmt::format("must have at most {} arguments here", names.size()),
                       std::to_string(arguments.values.size()));
  std::vector<const Value*> found(names.size());
  for (std::size_t i = 0; i < arguments.values.size(); ++i) found[i] = &arguments.values[i];
  for (const auto& [name, value] : arguments.named) {
    const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (at == names.size() || found[at])
      throw InvalidInput("arguments of " + whose, "must be known here and given once", in_quotes(name));
    found[at] = &value;
  }
  return found;
}

const Value* bound_one(const std::string& whose, const Arguments& arguments, const std::string& name) {
  return bound(whose, arguments, {name}).front();
}

Value list_value(List items) {
  const auto list = std::make_shared<List>(std::move(items));
  Value value = list;
  for (const Value& one : *list) count(value, one);
  return value;
}

Value members_value(Members members) {
  const auto object = std::make_shared<Members>(std::move(members));
  Value value = object;
  for (const auto& [name, member] : *object) count(value, member);
  return value;
}

Value namespace_value(Members members) {
  for (const auto& [name, member] : members) require_storable(member);
  return std::make_shared<Namespace>(Namespace{std::move(members)});
}

void set_member(Namespace& space, const std::string& name, Value value) {
  require_storable(value);
  set_member(space.members, name, std::move(value));
}

Value function_value(Function function) { return std::make_shared<Function>(std::move(function)); }

const Value* find_member(const Members& members, std::string_view name) {
  const auto found = std::find_if(members.begin(), members.end(), [&](const auto& one) { return one.first == name; });
  return found == members.end() ? nullptr : &found->second;
}

void set_member(Members& members, const std::string& name, Value value) {
  const auto found = std::find_if(members.begin(), members.end(), [&](const auto& one) { return one.first == name; });
  if (found != members.end())
    found->second = std::move(value);
  else
    members.emplace_back(name, std::move(value));
}

bool equal(const Value& a, const Value& b) {
  // true equals 1, as in Python.
  const auto number = [](const Value& value) -> std::optional<std::int64_t> {
    if (const auto* truth = value.as<bool>()) return *truth;
    if (const auto* one = value.as<std::int64_t>()) return *one;
    return std::nullopt;
  };
  if (number(a) && number(b)) return *number(a) == *number(b);
  if (a.as<Text>() && b.as<Text>()) return *a.as<Text>() == *b.as<Text>();
  if (const auto* one = a.as<std::shared_ptr<List>>(), *other = b.as<std::shared_ptr<List>>(); one && other)
    return std::equal((*one)->begin(), (*one)->end(), (*other)->begin(), (*other)->end(), equal);
  if (const auto* one = a.as<std::shared_ptr<Members>>(), *other = b.as<std::shared_ptr<Members>>(); one && other) {
    const auto is_in_other = [&](const auto& member) {
      const Value* const found = find_member(**other, member.first);
      return found && equal(member.second, *found);
    };
    return (*one)->size() == (*other)->size() && std::all_of((*one)->begin(), (*one)->end(), is_in_other);
  }
  if (const auto* one = a.as<std::shared_ptr<Namespace>>(), *other = b.as<std::shared_ptr<Namespace>>(); one && other)
    return *one == *other;
  return (a.as<None>() && b.as<None>()) || (a.as<Undefined>() && b.as<Undefined>());
}

std::string kind_of(const Value& value) {
  if (const auto* undefined = value.as<Undefined>()) return fmt::format("not there: {}", undefined->name);
  static constexpr std::array kKinds{"",       "none",      "true or false", "a number",   "a text",
                                     "a list", "an object", "a function",    "a namespace"};
  return kKinds[value.index()];
}

Text printed(const Value& value) {
  if (const auto* text = value.as<Text>()) return *text;
  if (const auto* number = value.as<std::int64_t>()) return text_of(std::to_string(*number));
  if (const auto* truth = value.as<bool>()) return text_of(*truth ? "True" : "False");
  if (value.as<None>()) return text_of("None");
  if (value.as<Undefined>()) return {};
  throw InvalidInput("what is written", "must be a text", kind_of(value));
}

std::vector<Text> characters_of(const Text& text) {
  std::vector<Text> characters;
  for (const char16_t c : text) {
    const bool continues = (c & 0xC0) == 0x80;
    if (!continues || characters.empty()) characters.emplace_back();
    characters.back().push_back(c);
  }
  return characters;
}

List elements_of(const Value& value) {
  if (const auto* list = value.as<std::shared_ptr<List>>()) return **list;
  List elements;
  if (const auto* text = value.as<Text>()) {
    for (Text& character : characters_of(*text)) elements.emplace_back(std::move(character));
  } else if (const auto* members = value.as<std::shared_ptr<Members>>()) {
    for (const auto& [name, member] : **members) elements.emplace_back(text_of(name));
  } else if (!value.as<Undefined>()) {
    throw InvalidInput("the value whose elements are needed", "must be a list, an object or a text", kind_of(value));
  }
  return elements;
}

const Text& need_text(const Value& value, std::string_view whose) {
  if (const auto* text = value.as<Text>()) return *text;
  throw InvalidInput(whose, "must be a text", kind_of(value));
}

std::int64_t need_number(const Value& value, std::string_view whose) {
  if (const auto* number = value.as<std::int64_t>()) return *number;
  throw InvalidInput(whose, "must be a whole number", kind_of(value));
}

}  // namespace frostpipe::jinja
