#pragma once
#include <optional>
#include <string>
#include <vector>

#include "plan/freeze.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// Text of plan's options --pin, --fix and --forecast.
struct PlanLimits {
  std::vector<std::string> pins, fixed;
  std::string forecast = "cap";
};

/// "block.3.mlp=1" or "8=1" each: a layer by name or number, and its stage. Throws UsageError for layers that are not
/// there, and for pins that no partition can keep because a later layer would be on an earlier stage.
std::vector<LayerPin> parse_pins(const std::vector<std::string>& texts, const Model& model);

/// "pp=4", "tp=2", "dp=2", "m=8" each, into the option that it fixes. Requires that check_fixed accepts them.
void apply_fixed(const std::vector<std::string>& texts, PlanOptions& options);

/// "" if the text is one of these, else why not.
std::string check_fixed(const std::string& text);

/// "cap": none, the rule's. "fixed:3,5,6": frozen blocks after each decision. A file: the freezes of that plan, such as
/// a run's executed_plan.json, at the same fractions of this run. Throws UsageError where the blocks do not ascend or
/// are more than there are.
std::optional<std::vector<FreezeEvent>> parse_forecast(const std::string& text, const Model& model, int num_steps,
                                                       const FreezeOptions& options);

}  // namespace frostpipe
