#include "executor/data/tokenizers/models/vocabulary.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "base/error.h"
#include "base/error_values.h"
#include "executor/data/tokenizers/text/part.h"

namespace frostpipe {

std::vector<std::string> read_vocabulary(PipelinePart& part) {
  const PipelinePart::Json& vocabulary = part.take("vocab");
  const std::string place = part.place_of("vocab");
  if (!vocabulary.is_object()) throw InvalidInput(place, "must be an object", shown(vocabulary));
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

std::int32_t id_of_unknown(PipelinePart& part, const std::vector<std::string>& tokens) {
  const std::string unknown = part.text("unk_token");
  const auto found = std::find(tokens.begin(), tokens.end(), unknown);
  if (found == tokens.end())
    throw InvalidInput(part.place_of("unk_token"), "must be a token of the vocabulary", in_quotes(unknown));
  return static_cast<std::int32_t>(found - tokens.begin());
}

}  // namespace frostpipe
