#include "executor/data/tokenizers/tokenizer_files.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "profiles/error.h"
#include "profiles/error_values.h"
#include "profiles/files.h"
#include "profiles/parse_json.h"

namespace frostpipe {

nlohmann::json read_json_object(const std::filesystem::path& path) {
  const std::string content = read_text_file(path);
  auto object = parse_json<nlohmann::json>(content, path.string());
  if (!object.is_object()) throw InvalidInput(path.string(), "must be a JSON object", object.type_name());
  return object;
}

std::vector<std::string> tokens_by_id(const std::string& place, const nlohmann::json& vocabulary) {
  if (vocabulary.size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw InvalidInput(place, "must have fewer than 2^31 - 1 tokens", std::to_string(vocabulary.size()));
  std::vector<std::string> tokens(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) {
    const bool fits = id.is_number_unsigned() && id.get<std::uint64_t>() < tokens.size();
    if (token.empty() || !fits || !tokens[id.get<std::size_t>()].empty())
      throw InvalidInput(place + ": " + in_quotes(token),
                         "tokens must not be empty and must be numbered 0, 1, 2, ... without gaps or repetition",
                         shown(id));
    tokens[id.get<std::size_t>()] = token;
  }
  return tokens;
}

}  // namespace frostpipe
