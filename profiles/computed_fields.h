#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>

namespace frostpipe {

/// The purpose for which a config.json is read.
enum class ConfigUse {
  computing,  // to run the model
  counting,   // to count its operations and parameters
};

/// Throws InvalidInput that names file, field, rule and value if `text`, the Hugging Face config.json `file`, gives a
/// field an unsupported value that changes what the model computes or, for ConfigUse::counting, how much it computes;
/// also if it gives different values to two names of one field. Fields that are missing or null have transformers'
/// default, which is supported.
void require_computed_fields(std::string_view text, const std::string& file, ConfigUse use);

using FieldNames = std::set<std::string, std::less<>>;

/// Throws InvalidInput that names the first unknown field of a config.json, since it may change what the model
/// computes. The known fields are those in `read`, those of require_computed_fields, and those that change nothing here
/// (a list in the source file). An unknown field that is null, false or empty is accepted. `file` is the name for
/// messages.
void require_known_fields(const nlohmann::ordered_json& config, const FieldNames& read, const std::string& file);

/// Does the same for an object in such a file, such as rope_parameters. Messages call its fields `place` + name.
void require_known_parameters(const nlohmann::ordered_json& object, const FieldNames& known, const std::string& place);

}  // namespace frostpipe
