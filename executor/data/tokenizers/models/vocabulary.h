#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace frostpipe {

class PipelinePart;

/// Reads the field `vocab`, an object of token ids, and returns the tokens by id. Throws InvalidInput that names the
/// token if one is empty, if ids are not 0, 1, 2, ..., or if there are 2^31 - 1 tokens or more.
std::vector<std::string> read_vocabulary(PipelinePart& part);

/// Returns the id of the token that the field `unk_token` names. Throws InvalidInput if it is not among `tokens`.
std::int32_t id_of_unknown(PipelinePart& part, const std::vector<std::string>& tokens);

}  // namespace frostpipe
