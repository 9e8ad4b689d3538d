#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace frostpipe {

/// The optimizers whose steps can be planned and run.
enum class Optimizer { kAdamW, kSgd };

/// Returns the name that files use, such as "adamw".
std::string_view to_string(Optimizer optimizer);
/// Returns none if there is no such optimizer.
std::optional<Optimizer> find_optimizer(std::string_view word);
/// Parses such a name. Throws InvalidInput ("PLACE: must be adamw or sgd, is ...").
void parse_text(std::string_view text, const std::string& place, Optimizer& optimizer);

/// Returns the number of state values per parameter: 2 for AdamW, 0 for SGD.
int optimizer_moments(Optimizer optimizer);

}  // namespace frostpipe
