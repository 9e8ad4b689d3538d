#include "profiles/json_nesting.h"

#include <array>
#include <string>

#include "profiles/error.h"

namespace frostpipe {

void require_shallow_json(std::string_view text, std::string_view source, std::size_t most_keys) {
  constexpr int kDeepest = 100;
  std::array<std::size_t, kDeepest + 1> num_keys{};  // of the object that is open at each depth
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;  // whatever follows does not end the string
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest)
        throw InvalidInput(std::string(source), "must nest its lists and objects at most 100 deep",
                           "deeper at byte " + std::to_string(i));
      num_keys[static_cast<std::size_t>(depth)] = 0;
    } else if (c == ':') {
      if (++num_keys[static_cast<std::size_t>(depth)] > most_keys)
        throw InvalidInput(std::string(source), "must have at most " + std::to_string(most_keys) + " keys in an object",
                           "more at byte " + std::to_string(i));
    } else if (c == ']' || c == '}') {
      if (depth > 0) --depth;  // one too many is no JSON
    }
  }
}

}  // namespace frostpipe
