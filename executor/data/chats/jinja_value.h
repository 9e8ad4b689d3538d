#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace frostpipe::jinja {

/// What a template is held to, whoever wrote it.
inline constexpr std::size_t kMostTextBytes = std::size_t{1} << 26;
inline constexpr int kMostNesting = 100;

/// Bytes of UTF-8, each of which may carry a mark. Marks travel with their bytes through all that a template does with
/// a text, and no comparison sees them.
struct MarkedBytes : std::char_traits<char16_t> {
  static constexpr char16_t kMark = 0x100;
  static constexpr char16_t byte(char16_t c) { return static_cast<char16_t>(c & 0xFF); }
  static constexpr bool eq(char16_t a, char16_t b) { return byte(a) == byte(b); }
  static constexpr bool lt(char16_t a, char16_t b) { return byte(a) < byte(b); }
  static int compare(const char16_t* a, const char16_t* b, std::size_t size);
  static const char16_t* find(const char16_t* text, std::size_t size, const char16_t& wanted);
};
using Text = std::basic_string<char16_t, MarkedBytes>;

Text text_of(std::string_view bytes, bool is_marked = false);
std::string bytes_of(const Text& text);

struct Value;
using List = std::vector<Value>;
/// In the order of their keys in the source; shared, so that what a namespace() holds can be set.
using Members = std::vector<std::pair<std::string, Value>>;

struct Arguments {
  List values{};
  Members named{};
};
using Function = std::function<Value(const Arguments&)>;

/// A name that nobody has set.
struct Undefined {
  std::string name;
};
struct None {};

/// What an expression of a template is worth. Numbers are whole ones.
struct Value : std::variant<Undefined, None, bool, std::int64_t, Text, std::shared_ptr<List>, std::shared_ptr<Members>,
                            std::shared_ptr<Function>> {
  using variant::variant;

  template <class T>
  const T* as() const {
    return std::get_if<T>(this);
  }
  bool is_true() const;
};

Value list_value(List items);
Value members_value(Members members);
Value function_value(Function function);

/// Nothing where the object lacks it.
const Value* find_member(const Members& members, std::string_view name);
void set_member(Members& members, const std::string& name, Value value);

bool equal(const Value& a, const Value& b);
/// What {{ value }} writes. Throws InvalidInput for lists and objects.
Text printed(const Value& value);
/// "a text", "a list", ...
std::string kind_of(const Value& value);
/// Characters of UTF-8, one after another.
std::vector<Text> characters_of(const Text& text);
/// What a loop runs over. Throws InvalidInput for what has no elements.
List elements_of(const Value& value);

/// The text that an argument or operand must be. Throws InvalidInput naming `whose`.
const Text& need_text(const Value& value, std::string_view whose);
std::int64_t need_number(const Value& value, std::string_view whose);

}  // namespace frostpipe::jinja
