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

/// Limits for every template, since templates come from untrusted folders.
inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 26;  // of any text
inline constexpr std::size_t kMaxElements = std::size_t{1} << 20;   // of a list, with those of the lists in it
inline constexpr int kMaxNesting = 100;  // of blocks, of brackets in an expression, and of lists and objects
inline constexpr int kMaxCalls = 8;      // of macros within calls of macros

/// Traits of strings whose bytes (UTF-8) may each carry marks. Marks survive all string operations of a template, and
/// comparisons ignore them.
struct MarkedBytes : std::char_traits<char16_t> {
  static constexpr char16_t kAssistant = 0x100;  // marks content of the assistant
  static constexpr char16_t kNoLoss = 0x200;     // marks, with kAssistant, content that the model is not trained on
  static constexpr char16_t marks(char16_t c) { return static_cast<char16_t>(c & ~0xFF); }
  static constexpr char16_t byte(char16_t c) { return static_cast<char16_t>(c & 0xFF); }
  static constexpr bool eq(char16_t a, char16_t b) { return byte(a) == byte(b); }
  static constexpr bool lt(char16_t a, char16_t b) { return byte(a) < byte(b); }
  static int compare(const char16_t* a, const char16_t* b, std::size_t size);
  static const char16_t* find(const char16_t* text, std::size_t size, const char16_t& wanted);
};
using Text = std::basic_string<char16_t, MarkedBytes>;

Text text_of(std::string_view bytes, char16_t marks = 0);
std::string bytes_of(const Text& text);
/// Throws InvalidInput if the text would have more than kMaxTextBytes.
void append(Text& text, const Text& more);

struct Value;
using List = std::vector<Value>;
/// The members of an object, in the order of the source.
using Members = std::vector<std::pair<std::string, Value>>;
/// What namespace() returns: the only value that a template can change. All copies of a Value share it.
struct Namespace;

struct Arguments {
  List values{};
  Members named{};
};
using Function = std::function<Value(const Arguments&)>;

/// Returns the arguments of the parameters `names`, in their order; null for those that are not given. Only positional
/// arguments are taken for an empty name. Throws InvalidInput, with `whose` as the place, for any other argument, and
/// for a parameter that is given twice.
std::vector<const Value*> bound(const std::string& whose, const Arguments& arguments,
                                const std::vector<std::string>& names);
/// Does the same for a single parameter.
const Value* bound_one(const std::string& whose, const Arguments& arguments, const std::string& name);

/// The value of a variable, member or element that is not there.
struct Undefined {
  std::string name;  // for errors
};
struct None {};

/// The value of an expression. Numbers are integers. Lists, objects and namespaces never hold a namespace or a
/// function, so no value holds itself, and the limits of nesting and elements bound every walk through a value.
struct Value : std::variant<Undefined, None, bool, std::int64_t, Text, std::shared_ptr<List>, std::shared_ptr<Members>,
                            std::shared_ptr<Function>, std::shared_ptr<Namespace>> {
  using variant::variant;

  template <class T>
  const T* as() const {
    return std::get_if<T>(this);
  }
  bool is_true() const;

  int nesting = 0;           // of a list or an object: 1 + the largest one of its elements
  std::size_t elements = 0;  // of a list or an object, with those of its elements
};

struct Namespace {
  Members members;
};

/// These throw InvalidInput if an element is a namespace or a function, or if there are more elements or deeper nesting
/// than the limits allow.
Value list_value(List items);
Value members_value(Members members);
Value namespace_value(Members members);
void set_member(Namespace& space, const std::string& name, Value value);

Value function_value(Function function);

/// Returns null if the object lacks the member.
const Value* find_member(const Members& members, std::string_view name);
void set_member(Members& members, const std::string& name, Value value);

/// Compares as Python does; a namespace equals only itself.
bool equal(const Value& a, const Value& b);
/// Returns the output of {{ value }}. Throws InvalidInput for lists, objects, functions and namespaces.
Text printed(const Value& value);
/// Returns the kind of a value for messages: "a text", "a list", ...; "not there: NAME" for Undefined.
std::string kind_of(const Value& value);
/// Splits a text into its UTF-8 characters.
std::vector<Text> characters_of(const Text& text);
/// Returns the elements that a loop iterates over: those of a list, the characters of a text, the names of an object's
/// members, and none of Undefined. Throws InvalidInput for other values.
List elements_of(const Value& value);

/// These return the text or the number that the value is. They throw InvalidInput, with `whose` as the place, for
/// values of other kinds.
const Text& need_text(const Value& value, std::string_view whose);
std::int64_t need_number(const Value& value, std::string_view whose);

}  // namespace frostpipe::jinja
