#pragma once
#include <cstddef>
#include <limits>
#include <string_view>

namespace frostpipe {

/// Throws InvalidInput naming `source` if the text nests lists and objects more than 100 deep. Every reader of JSON
/// asks before it parses: the JSON library copies, shows and compares values by recursion, which a hostile file could
/// drive beyond the stack. Also where one object has more than `most_keys`. Anything else that is wrong is for the
/// parser to say.
void require_shallow_json(std::string_view text, std::string_view source,
                          std::size_t most_keys = std::numeric_limits<std::size_t>::max());

}  // namespace frostpipe
