#include "executor/data/chats/jinja_builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/error.h"
#include "base/error_values.h"

namespace frostpipe::jinja {
namespace {

[[noreturn]] void refuse(const std::string& what, const char* known, const std::string& name) {
  throw InvalidInput(what, fmt::format("must be one that is known here ({})", known), in_quotes(name));
}

/// Returns the positional argument `index`; null if there is none.
const Value* argument(const Arguments& arguments, std::size_t index) {
  return index < arguments.values.size() ? &arguments.values[index] : nullptr;
}

Text changed(Text text, int (*change)(int)) {
  for (char16_t& c : text) {
    if (MarkedBytes::byte(c) < 0x80)
      c = static_cast<char16_t>(MarkedBytes::marks(c) | static_cast<char16_t>(change(MarkedBytes::byte(c))));
    else
      throw InvalidInput("a text for upper or lower", "must be ASCII", "other text");
  }
  return text;
}

/// Removes the characters of `wanted` from the left end, the right end or both; white space as Python defines it if
/// `wanted` is null or none.
Text stripped(const Text& text, const Value* wanted, bool left, bool right) {
  // Python also strips Unicode's spaces beyond ASCII.
  static const std::vector<Text> kSpaces = [] {
    std::vector<Text> spaces;
    for (const char* one :
         {" ",      "\t",     "\n",     "\r",     "\v",     "\f",     "\x1C",   "\x1D",   "\x1E",   "\x1F",
          "\u0085", "\u00A0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
          "\u2007", "\u2008", "\u2009", "\u200A", "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"})
      spaces.push_back(text_of(one));
    return spaces;
  }();
  const std::vector<Text> set =
      wanted && !wanted->as<None>() ? characters_of(need_text(*wanted, "the characters to strip")) : kSpaces;
  std::size_t begin = 0, end = text.size();
  const auto at_begin = [&](const Text& one) { return text.compare(begin, one.size(), one) == 0; };
  const auto at_end = [&](const Text& one) {
    return end >= begin + one.size() && text.compare(end - one.size(), one.size(), one) == 0;
  };
  for (auto found = set.begin(); left && begin < end;) {
    found = std::find_if(set.begin(), set.end(), at_begin);
    if (found == set.end()) break;
    begin += found->size();
  }
  for (auto found = set.begin(); right && begin < end;) {
    found = std::find_if(set.begin(), set.end(), at_end);
    if (found == set.end()) break;
    end -= found->size();
  }
  return text.substr(begin, end - begin);
}

Value split(const Text& text, const Arguments& arguments) {
  const Value* const given = argument(arguments, 0);
  if (!given || given->as<None>()) throw InvalidInput("split", "must have a separator", "without it");
  const Text& separator = need_text(*given, "the separator of split");
  if (separator.empty()) throw InvalidInput("the separator of split", "must not be empty", "\"\"");
  const Value* const most = argument(arguments, 1);
  std::int64_t left = most ? need_number(*most, "the number of splits") : -1;
  List parts;
  std::size_t begin = 0;
  for (std::size_t at = 0; left != 0 && (at = text.find(separator, begin)) != Text::npos; --left) {
    parts.emplace_back(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  parts.emplace_back(text.substr(begin));
  return list_value(std::move(parts));
}

Text replaced(Text text, const Text& old, const Text& other) {
  if (old.empty()) throw InvalidInput("the text to replace", "must not be empty", "\"\"");
  for (std::size_t at = 0; (at = text.find(old, at)) != Text::npos; at += other.size())
    text.replace(at, old.size(), other);
  return text;
}

Value method_of_text(const Text& text, const std::string& name, const Arguments& arguments) {
  const Value* const first = argument(arguments, 0);
  const auto needed = [&](std::size_t index) -> Text {
    const Value* const one = argument(arguments, index);
    return need_text(one ? *one : Value(Undefined{"an argument"}), "an argument of " + name);
  };
  if (name == "strip") return stripped(text, first, true, true);
  if (name == "lstrip") return stripped(text, first, true, false);
  if (name == "rstrip") return stripped(text, first, false, true);
  if (name == "split") return split(text, arguments);
  if (name == "startswith") return text.starts_with(needed(0));
  if (name == "endswith") return text.ends_with(needed(0));
  if (name == "replace") return replaced(text, needed(0), needed(1));
  if (name == "upper") return changed(text, std::toupper);
  if (name == "lower") return changed(text, std::tolower);
  refuse("a method of a text", "strip, lstrip, rstrip, split, startswith, endswith, replace, upper, lower", name);
}

List pairs_of(const Members& members) {
  List pairs;
  for (const auto& [name, value] : members) pairs.push_back(list_value({text_of(name), value}));
  return pairs;
}

Value member_or(const Members& members, const Arguments& arguments) {
  const Value* const key = argument(arguments, 0);
  const Value* const found = find_member(members, bytes_of(need_text(key ? *key : Value(), "a key")));
  const Value* const otherwise = argument(arguments, 1);
  return found ? *found : otherwise ? *otherwise : Value(None{});
}

[[noreturn]] void raise(const Arguments& arguments) {
  const Value* const message = argument(arguments, 0);
  throw InvalidInput("the template refuses it: " + (message ? bytes_of(printed(*message)) : std::string()));
}

Value range(const Arguments& arguments) {
  constexpr std::int64_t kMax = 100'000;
  const auto number = [&](std::size_t index) { return need_number(arguments.values[index], "a bound of range"); };
  const std::size_t count = arguments.values.size();
  if (count != 1 && count != 2) throw InvalidInput("range", "must have one or two bounds", std::to_string(count));
  const std::int64_t begin = count == 2 ? number(0) : 0, end = number(count - 1);
  if (begin < 0 || end > kMax)
    throw InvalidInput("range", "must be within 0 to 100,000", fmt::format("{} to {}", begin, end));
  List numbers;
  for (std::int64_t i = begin; i < end; ++i) numbers.emplace_back(i);
  return list_value(std::move(numbers));
}

Value joined(const Value& value, const Arguments& arguments) {
  const Value* const given = argument(arguments, 0);
  Text text, between = given ? need_text(*given, "the separator of join") : Text();
  bool is_first = true;
  for (const Value& one : elements_of(value)) {
    if (!is_first) text += between;
    text += printed(one);
    is_first = false;
  }
  return text;
}

/// Returns the elements of a list whose member, named by the first argument, passes the test that the second one names,
/// or is true if there is no second one. If not `is_wanted`, returns the other elements.
Value selected(const Value& value, const Arguments& arguments, bool is_wanted) {
  const std::size_t count = arguments.values.size();
  if (count == 0) throw InvalidInput("selectattr or rejectattr", "must name a member", "without one");
  List found;
  for (const Value& one : elements_of(value)) {
    const Value asked = element(one, arguments.values[0]);
    const bool passes =
        count == 1 ? asked.is_true()
                   : passes_test(bytes_of(need_text(arguments.values[1], "the name of a test")), asked,
                                 {.values = {arguments.values.begin() + 2, arguments.values.end()}, .named = {}});
    if (passes == is_wanted) found.push_back(one);
  }
  return list_value(std::move(found));
}

/// Returns a slice by Python's rules.
template <class T>
std::vector<T> part_of(const std::vector<T>& all, std::optional<std::int64_t> begin, std::optional<std::int64_t> end,
                       std::int64_t step) {
  const auto size = static_cast<std::int64_t>(all.size());
  const std::int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? size : size - 1;
  const auto bound = [&](std::optional<std::int64_t> given, std::int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + size : *given, lowest, highest);
  };
  const std::int64_t from = bound(begin, step > 0 ? lowest : highest), to = bound(end, step > 0 ? highest : lowest);
  std::vector<T> part;
  for (std::int64_t i = from; step > 0 ? i < to : i > to; i += step) part.push_back(all[static_cast<std::size_t>(i)]);
  return part;
}

}  // namespace

Value filtered(const std::string& name, const Value& value, const Arguments& arguments) {
  if (name == "trim") return stripped(printed(value), argument(arguments, 0), true, true);
  if (name == "length" || name == "count") return static_cast<std::int64_t>(elements_of(value).size());
  if (name == "string") return printed(value);
  if (name == "upper") return changed(printed(value), std::toupper);
  if (name == "lower") return changed(printed(value), std::tolower);
  if (name == "join") return joined(value, arguments);
  if (name == "list") return list_value(elements_of(value));
  if (name == "selectattr" || name == "rejectattr") return selected(value, arguments, name == "selectattr");
  if (name == "replace") return method_of_text(printed(value), name, arguments);
  if (name == "first" || name == "last") {
    const List elements = elements_of(value);
    return elements.empty() ? Value(Undefined{name}) : name == "first" ? elements.front() : elements.back();
  }
  if (name == "items") {
    if (const auto* members = value.as<std::shared_ptr<Members>>()) return list_value(pairs_of(**members));
    throw InvalidInput("the value before `| items`", "must be an object", kind_of(value));
  }
  if (name == "default" || name == "d") {
    const Value* const otherwise = argument(arguments, 0);
    const Value* const also_false = argument(arguments, 1);
    const bool is_missing = value.as<Undefined>() || (also_false && also_false->is_true() && !value.is_true());
    return !is_missing ? value : otherwise ? *otherwise : Value(Text());
  }
  refuse("a filter",
         "trim, length, count, string, upper, lower, join, list, selectattr, rejectattr, replace, first, "
         "last, items, default",
         name);
}

bool passes_test(const std::string& name, const Value& value, const Arguments& arguments) {
  const bool is_text = value.as<Text>(), is_list = value.as<std::shared_ptr<List>>(),
             is_object = value.as<std::shared_ptr<Members>>();
  if (name == "defined") return !value.as<Undefined>();
  if (name == "undefined") return value.as<Undefined>();
  if (name == "none") return value.as<None>();
  if (name == "string") return is_text;
  if (name == "mapping") return is_object;
  if (name == "iterable" || name == "sequence") return is_text || is_list || is_object;
  if (name == "number" || name == "integer") return value.as<std::int64_t>();
  if (name == "boolean") return value.as<bool>();
  if (name == "true") return value.as<bool>() && *value.as<bool>();
  if (name == "false") return value.as<bool>() && !*value.as<bool>();
  if (name == "equalto" || name == "eq") {
    const Value* const other = argument(arguments, 0);
    return other && equal(value, *other);
  }
  if (name == "odd") return need_number(value, "the value before `is odd`") % 2 != 0;
  if (name == "even") return need_number(value, "the value before `is even`") % 2 == 0;
  refuse("a test",
         "defined, undefined, none, string, mapping, iterable, sequence, number, integer, boolean, true, false, "
         "equalto, eq, odd, even",
         name);
}

Value attribute(const Value& value, const std::string& name) {
  if (const auto* members = value.as<std::shared_ptr<Members>>()) {
    const auto object = *members;
    if (name == "get")
      return function_value([object](const Arguments& arguments) { return member_or(*object, arguments); });
    if (name == "items") return function_value([object](const Arguments&) { return list_value(pairs_of(*object)); });
    if (name == "keys") return function_value([value](const Arguments&) { return list_value(elements_of(value)); });
    const Value* const found = find_member(*object, name);
    return found ? *found : Value(Undefined{name});
  }
  if (const auto* text = value.as<Text>())
    return function_value(
        [text = *text, name](const Arguments& arguments) { return method_of_text(text, name, arguments); });
  throw InvalidInput("." + name, "must be of an object or a text", kind_of(value));
}

Value element(const Value& value, const Value& index) {
  if (const auto* members = value.as<std::shared_ptr<Members>>()) {
    const std::string key = bytes_of(need_text(index, "a key"));
    const Value* const found = find_member(**members, key);
    return found ? *found : Value(Undefined{key});
  }
  if (value.as<Undefined>() || value.as<None>())
    throw InvalidInput("the value before `[`", "must be a list, an object or a text", kind_of(value));
  const List elements = elements_of(value);
  const auto size = static_cast<std::int64_t>(elements.size());
  const std::int64_t number = need_number(index, "an index"), at = number < 0 ? number + size : number;
  if (at < 0 || at >= size) return Undefined{fmt::format("element {}", number)};
  return elements[static_cast<std::size_t>(at)];
}

Value slice(const Value& value, std::optional<std::int64_t> begin, std::optional<std::int64_t> end, std::int64_t step) {
  if (step == 0) throw InvalidInput("the step of a slice", "must not be 0", "0");
  if (const auto* list = value.as<std::shared_ptr<List>>()) return list_value(part_of(**list, begin, end, step));
  Text text;
  for (const Text& one : part_of(characters_of(need_text(value, "the value that is sliced")), begin, end, step))
    text += one;
  return text;
}

/// Returns midnight of 26 July 2024 (UTC) as C's strftime formats it. Python's strftime gives the same text, except for
/// %f, %z and %Z.
Value date(const Arguments& arguments) {
  constexpr std::time_t kDate = 1'721'952'000;
  const Value* const given = argument(arguments, 0);
  const std::string format = given ? bytes_of(need_text(*given, "the form of a date")) : "";
  std::tm parts{};
  gmtime_r(&kDate, &parts);
  std::array<char, 256> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), format.c_str(), &parts);
  if (size == 0)
    throw InvalidInput("the form of a date", fmt::format("must give 1 to {} bytes", text.size() - 1),
                       in_quotes(format));
  return text_of({text.data(), size});
}

std::optional<Value> builtin_function(const std::string& name) {
  if (name == "raise_exception") return function_value([](const Arguments& arguments) -> Value { raise(arguments); });
  if (name == "namespace" || name == "dict")
    return function_value([](const Arguments& arguments) { return members_value(arguments.named); });
  if (name == "range") return function_value(range);
  if (name == "strftime_now") return function_value(date);
  return std::nullopt;
}

}  // namespace frostpipe::jinja
