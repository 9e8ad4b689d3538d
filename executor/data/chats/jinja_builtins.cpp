#include "executor/data/chats/jinja_builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/error.h"
#include "base/error_values.h"
#include "executor/data/chats/jinja_texts.h"

namespace frostpipe::jinja {
namespace {

[[noreturn]] void refuse(const std::string& what, const char* known, const std::string& name) {
  throw InvalidInput(what, fmt::format("must be one that is known here ({})", known), in_quotes(name));
}

List pairs_of(const Members& members) {
  List pairs;
  for (const auto& [name, value] : members) pairs.push_back(list_value({text_of(name), value}));
  return pairs;
}

Value member_or(const Members& members, const Arguments& arguments) {
  const std::vector<const Value*> all = bound("get", arguments, {"", ""});
  const Value* const found = find_member(members, bytes_of(need_text(all[0] ? *all[0] : Value(), "a key")));
  return found ? *found : all[1] ? *all[1] : Value(None{});
}

/// Returns the members of namespace() or dict(): those of an object, then the named arguments.
Members members_in(const Arguments& arguments) {
  const Arguments positional{.values = arguments.values, .named = {}};
  const Value* const given = bound_one("namespace or dict", positional, "");
  const auto* object = given ? given->as<std::shared_ptr<Members>>() : nullptr;
  if (given && !object) throw InvalidInput("what namespace or dict copies", "must be an object", kind_of(*given));
  Members members = object ? **object : Members();
  for (const auto& [name, value] : arguments.named) set_member(members, name, value);
  return members;
}

[[noreturn]] void raise(const Arguments& arguments) {
  const Value* const message = bound_one("raise_exception", arguments, "message");
  throw InvalidInput("the template refuses it: " + (message ? bytes_of(printed(*message)) : std::string()));
}

Value range(const Arguments& arguments) {
  constexpr std::int64_t kMax = 100'000;
  const auto number = [&](std::size_t index) { return need_number(arguments.values[index], "a bound of range"); };
  const std::size_t count = arguments.values.size();
  bound("range", arguments, {"", ""});
  if (count == 0) throw InvalidInput("range", "must have one or two bounds", std::to_string(count));
  const std::int64_t begin = count == 2 ? number(0) : 0, end = number(count - 1);
  if (begin < 0 || end > kMax)
    throw InvalidInput("range", "must be within 0 to 100,000", fmt::format("{} to {}", begin, end));
  List numbers;
  for (std::int64_t i = begin; i < end; ++i) numbers.emplace_back(i);
  return list_value(std::move(numbers));
}

Value joined(const Value& value, const Arguments& arguments) {
  const Value* const given = bound_one("join", arguments, "d");
  Text text, between = given ? need_text(*given, "the separator of join") : Text();
  bool is_first = true;
  for (const Value& one : elements_of(value)) {
    if (!is_first) append(text, between);
    append(text, printed(one));
    is_first = false;
  }
  return text;
}

/// Returns the elements of a list whose member, named by the first argument, passes the test that the second one names,
/// or is true if there is no second one. If not `is_wanted`, returns the other elements.
Value selected(const Value& value, const Arguments& arguments, bool is_wanted) {
  const std::size_t count = arguments.values.size();
  if (count == 1) bound("selectattr or rejectattr", arguments, {""});
  if (count == 0) throw InvalidInput("selectattr or rejectattr", "must name a member", "without one");
  List found;
  for (const Value& one : elements_of(value)) {
    const Value asked = element(one, arguments.values[0]);
    const bool passes =
        count == 1
            ? asked.is_true()
            : passes_test(bytes_of(need_text(arguments.values[1], "the name of a test")), asked,
                          {.values = {arguments.values.begin() + 2, arguments.values.end()}, .named = arguments.named});
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

/// Returns `value | name` for a filter without parameters; nothing for other names.
std::optional<Value> plainly_filtered(const std::string& name, const Value& value) {
  if (name == "length" || name == "count") return static_cast<std::int64_t>(elements_of(value).size());
  if (name == "string") return printed(value);
  if (name == "upper" || name == "lower") return with_case(printed(value), name);
  if (name == "list") return list_value(elements_of(value));
  if (name == "first" || name == "last") {
    const List elements = elements_of(value);
    return elements.empty() ? Value(Undefined{name}) : name == "first" ? elements.front() : elements.back();
  }
  if (name == "items") {
    if (const auto* members = value.as<std::shared_ptr<Members>>()) return list_value(pairs_of(**members));
    throw InvalidInput("the value before `| items`", "must be an object", kind_of(value));
  }
  return std::nullopt;
}

/// Returns whether `value is name` for a test without parameters; nothing for other names.
std::optional<bool> passes_plain_test(const std::string& name, const Value& value) {
  const bool is_text = value.as<Text>(), is_list = value.as<std::shared_ptr<List>>(),
             is_object = value.as<std::shared_ptr<Members>>();
  const auto* truth = value.as<bool>();
  if (name == "defined") return !value.as<Undefined>();
  if (name == "undefined") return value.as<Undefined>() != nullptr;
  if (name == "none") return value.as<None>() != nullptr;
  if (name == "string") return is_text;
  if (name == "mapping") return is_object;
  if (name == "iterable" || name == "sequence") return is_text || is_list || is_object;
  if (name == "number" || name == "integer") return value.as<std::int64_t>() != nullptr;
  if (name == "boolean") return truth != nullptr;
  if (name == "true") return truth && *truth;
  if (name == "false") return truth && !*truth;
  if (name == "odd") return need_number(value, "the value before `is odd`") % 2 != 0;
  if (name == "even") return need_number(value, "the value before `is even`") % 2 == 0;
  return std::nullopt;
}

}  // namespace

Value filtered(const std::string& name, const Value& value, const Arguments& arguments) {
  if (name == "trim") return stripped(printed(value), bound_one(name, arguments, "chars"), true, true);
  if (name == "join") return joined(value, arguments);
  if (name == "selectattr" || name == "rejectattr") return selected(value, arguments, name == "selectattr");
  if (name == "replace") return replaced(printed(value), arguments, {"old", "new", "count"});
  if (name == "default" || name == "d") {
    const std::vector<const Value*> all = bound(name, arguments, {"default_value", "boolean"});
    const bool is_missing = value.as<Undefined>() || (all[1] && all[1]->is_true() && !value.is_true());
    return !is_missing ? value : all[0] ? *all[0] : Value(Text());
  }
  if (const std::optional<Value> found = plainly_filtered(name, value)) {
    bound(name, arguments, {});
    return *found;
  }
  refuse("a filter",
         "trim, length, count, string, upper, lower, join, list, selectattr, rejectattr, replace, first, "
         "last, items, default",
         name);
}

bool passes_test(const std::string& name, const Value& value, const Arguments& arguments) {
  if (name == "equalto" || name == "eq") {
    const Value* const other = bound_one(name, arguments, "");
    return other && equal(value, *other);
  }
  if (const std::optional<bool> found = passes_plain_test(name, value)) {
    bound(name, arguments, {});
    return *found;
  }
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
    if (name == "items" || name == "keys")
      return function_value([object, value, name](const Arguments& arguments) {
        bound(name, arguments, {});
        return list_value(name == "items" ? pairs_of(*object) : elements_of(value));
      });
    const Value* const found = find_member(*object, name);
    return found ? *found : Value(Undefined{name});
  }
  if (const auto* space = value.as<std::shared_ptr<Namespace>>()) {
    const Value* const found = find_member((*space)->members, name);
    return found ? *found : Value(Undefined{name});
  }
  if (const auto* text = value.as<Text>(); text && !is_method_of_texts(name)) return Undefined{name};
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
  if (value.as<std::shared_ptr<Namespace>>()) return attribute(value, bytes_of(need_text(index, "a key")));
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
  const Value* const given = bound_one("strftime_now", arguments, "format");
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
  if (name == "namespace") return function_value([](const Arguments& all) { return namespace_value(members_in(all)); });
  if (name == "dict") return function_value([](const Arguments& all) { return members_value(members_in(all)); });
  if (name == "range") return function_value(range);
  if (name == "strftime_now") return function_value(date);
  return std::nullopt;
}

}  // namespace frostpipe::jinja
