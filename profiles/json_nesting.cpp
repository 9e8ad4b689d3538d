#include "profiles/json_nesting.h"

#include <string>

#include "profiles/error.h"

namespace frostpipe {

void require_shallow_json(std::string_view text, std::string_view source) {
  constexpr int kDeepest = 100;
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
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

}  // namespace frostpipe
