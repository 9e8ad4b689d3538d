#pragma once
#include <optional>
#include <string>
#include <vector>

#include "plan/freeze.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// The texts of plan's options --pin, --fix and --forecast.
struct PlanLimits {
  std::vector<std::string> pins, fixed;
  std::string forecast = "cap";
};

/// Parses texts such as "block.3.mlp=1" or "8=1": a layer by name or number, and its stage. Throws UsageError for
/// unknown layers, and for pins that no partition can keep because a later layer would be on an earlier stage.
std::vector<LayerPin> parse_pins(const std::vector<std::string>& texts, const Model& model);

/// Sets the options that texts such as "pp=4", "tp=2", "dp=2" or "m=8" fix. Requires that check_fixed accepts them.
/// Throws UsageError if two of them fix the same option.
void apply_fixed(const std::vector<std::string>& texts, PlanOptions& options);

/// Returns "" if apply_fixed takes the text, else why not.
std::string check_fixed(const std::string& text);

/// Parses --forecast. "cap" is the rule's own forecast, for which it returns nothing. "fixed:3,5,6" has the frozen
/// blocks after each decision. A file, such as a run's executed_plan.json, has the freezes of that plan, which are put
/// at the same fractions of this run. Throws UsageError if the blocks do not ascend, or are more than the model has;
/// InvalidInput if the file is not a plan of this model.
std::optional<std::vector<FreezeEvent>> parse_forecast(const std::string& text, const Model& model, int num_steps,
                                                       const FreezeOptions& options);

}  // namespace frostpipe
