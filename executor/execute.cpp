#include "executor/execute.h"

#include <string_view>

#include "base/error.h"

namespace frostpipe {

const char* to_string(FreezePolicy::Rule rule) {
  static constexpr const char* kNames[] = {"plan", "paper", "cap", "fixed", "adaptive"};
  return kNames[static_cast<int>(rule)];
}

FreezePolicy parse_freeze_policy(const std::string& text, const FreezeOptions& options) {
  FreezePolicy policy{.rule = FreezePolicy::Rule::plan, .options = options, .fixed_layers = {}};
  const std::string
      place = "--freeze",
      rules = "must be plan, paper, cap, adaptive or fixed:N,N,... (frozen blocks after each decision, ascending)";
  for (const FreezePolicy::Rule rule :
       {FreezePolicy::Rule::plan, FreezePolicy::Rule::paper, FreezePolicy::Rule::cap, FreezePolicy::Rule::adaptive}) {
    if (text != to_string(rule)) continue;
    policy.rule = rule;
    return policy;
  }
  if (!text.starts_with("fixed:")) throw InvalidInput(place, rules, text);
  policy.rule = FreezePolicy::Rule::fixed;
  const auto layers = parse_fixed_layers(std::string_view(text).substr(6));
  if (!layers) throw InvalidInput(place, rules, text);
  policy.fixed_layers = *layers;
  return policy;
}

}  // namespace frostpipe
