#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace frostpipe {

/// What the files of all tokenizers share.

/// Throws InvalidInput that names the file where it is no JSON object or nests too deeply.
nlohmann::json read_json_object(const std::filesystem::path& path);

/// The tokens of `vocabulary`, an object that gives each its id, by id. Throws InvalidInput naming `place` and the
/// token where one is empty, ids are not 0, 1, 2, ..., or there are 2^31 - 1 tokens or more.
std::vector<std::string> tokens_by_id(const std::string& place, const nlohmann::json& vocabulary);

}  // namespace frostpipe
