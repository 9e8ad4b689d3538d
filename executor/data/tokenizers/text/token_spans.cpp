#include "executor/data/tokenizers/text/token_spans.h"

#include <unicode/utf8.h>

namespace frostpipe {

std::vector<std::size_t> code_point_starts(std::string_view utf8) {
  std::vector<std::size_t> starts;
  const auto size = static_cast<std::ptrdiff_t>(utf8.size());
  for (std::ptrdiff_t i = 0; i < size;) {
    starts.push_back(static_cast<std::size_t>(i));
    UChar32 code_point;
    U8_NEXT(utf8.data(), i, size, code_point);
  }
  starts.push_back(utf8.size());
  return starts;
}

}  // namespace frostpipe
