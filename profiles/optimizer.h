#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace frostpipe {

/// Whose steps change the weights.
enum class Optimizer { kAdamW, kSgd };

/// "adamw", as in files.
std::string_view to_string(Optimizer optimizer);
/// None if there is no such optimizer.
std::optional<Optimizer> find_optimizer(std::string_view word);
/// Throws InvalidInput ("PLACE: must be adamw or sgd, is ...").
void parse_text(std::string_view text, const std::string& place, Optimizer& optimizer);

/// Values of state that it keeps per parameter.
int optimizer_moments(Optimizer optimizer);

}  // namespace frostpipe
