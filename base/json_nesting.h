#pragma once
#include <string_view>

namespace frostpipe {

/// Throws InvalidInput that names `source` if the text nests lists and objects more than 100 deep. Call this before
/// parsing JSON from outside: the JSON library copies, prints and compares values recursively, so a hostile file could
/// overflow the stack. All other errors are left to the parser.
void require_shallow_json(std::string_view text, std::string_view source);

/// Does the same, and also throws if objects have so many keys that comparing each new key with all before it takes
/// more than half a second: more than 20,000 keys in one object, or fewer in each of many.
void require_shallow_json_of_few_keys(std::string_view text, std::string_view source);

/// Throws InvalidInput that names `source` if the text holds more than 5 million values (keys do not count, an empty
/// list or object counts twice). A value takes up to 150 bytes of memory once parsed, so without a bound a small file
/// could fill the memory. A profile of 5,000 layers has 1.2 million.
void require_few_json_values(std::string_view text, std::string_view source);

}  // namespace frostpipe
