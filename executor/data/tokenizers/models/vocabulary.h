#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace frostpipe {

class PipelinePart;

/// The tokens of the field `vocab`, an object that gives each its id, by id. Throws InvalidInput naming the token where
/// one is empty, ids are not 0, 1, 2, ..., or there are 2^31 - 1 tokens or more.
std::vector<std::string> read_vocabulary(PipelinePart& part);

/// That of the field `unk_token`. Throws InvalidInput where it is none of `tokens`.
std::int32_t id_of_unknown(PipelinePart& part, const std::vector<std::string>& tokens);

}  // namespace frostpipe
