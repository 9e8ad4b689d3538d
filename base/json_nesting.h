#pragma once
#include <string_view>

namespace frostpipe {

/// Throws InvalidInput naming `source` if the text nests lists and objects more than 100 deep. Every reader of JSON
/// asks before it parses: the JSON library copies, shows and compares values by recursion, which a hostile file could
/// drive beyond the stack. Anything else that is wrong is for the parser to say.
void require_shallow_json(std::string_view text, std::string_view source);

/// Also where objects have so many keys that comparing each new one with all before it in its object takes more than
/// half a second: 20,000 in one, or thousands in each of many.
void require_shallow_json_of_few_keys(std::string_view text, std::string_view source);

}  // namespace frostpipe
