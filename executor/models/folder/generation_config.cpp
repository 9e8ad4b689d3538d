#include "executor/models/folder/generation_config.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/parse_json.h"

namespace frostpipe {
namespace {

constexpr const char* kField = "eos_token_id";

bool is_token(const nlohmann::json& id) {
  return id.is_number_unsigned() && id.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max();
}

}  // namespace

std::vector<std::int32_t> end_tokens_in(const std::filesystem::path& model_folder) {
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::filesystem::path path = model_folder / name;
    if (!std::filesystem::exists(path)) continue;
    const auto json = parse_json<nlohmann::json>(read_text_file(path), path.string());
    if (!json.is_object() || !json.contains(kField) || json[kField].is_null()) continue;
    const nlohmann::json ids = json[kField].is_array() ? json[kField] : nlohmann::json::array({json[kField]});
    std::vector<std::int32_t> tokens;
    for (const nlohmann::json& id : ids) {
      if (!is_token(id))
        throw InvalidInput(path.string() + ": " + kField, "must be a token's id, or a list of those",
                           json[kField].dump().substr(0, 80));
      tokens.push_back(id.get<std::int32_t>());
    }
    return tokens;
  }
  return {};
}

}  // namespace frostpipe
