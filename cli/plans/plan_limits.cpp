#include "cli/plans/plan_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/error.h"
#include "cli/plans/plan_files.h"
#include "cli/shared/common_options.h"
#include "cli/shared/usage_error.h"
#include "planner/recorded_forecast.h"

namespace frostpipe {
namespace {

/// Parses a text that is a number and nothing else.
std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

LayerPin parse_pin(const std::string& text, const Model& model) {
  const std::size_t equals = text.rfind('=');
  const std::string name = text.substr(0, std::min(equals, text.size()));
  const auto stage = equals == std::string::npos ? std::nullopt : number_of(std::string_view(text).substr(equals + 1));
  if (!stage) throw UsageError("--pin", "must be LAYER=STAGE, such as block.3.mlp=1", text);
  const auto layer =
      std::find_if(model.layers.begin(), model.layers.end(), [&](const Layer& one) { return one.name == name; });
  if (layer != model.layers.end()) return {static_cast<int>(layer - model.layers.begin()), *stage};
  const auto number = number_of(name);
  const int layers = static_cast<int>(model.layers.size());
  if (!number || *number >= layers)
    throw UsageError("--pin",
                     fmt::format("must name one of the model's layers, {} to {}, or 0 to {}", model.layers.front().name,
                                 model.layers.back().name, layers - 1),
                     name);
  return {*number, *stage};
}

struct Fixed {
  int PlanOptions::*setting = nullptr;
  int number = 0;
};

/// Returns nothing if apply_fixed does not take the text.
std::optional<Fixed> parse_fixed(const std::string& text) {
  static const std::map<std::string, int PlanOptions::*> settings = {
      {"pp", &PlanOptions::pipeline_parallel_size}, {"tp", &PlanOptions::tensor_parallel_size},
      {"dp", &PlanOptions::data_parallel_size},     {"m", &PlanOptions::num_micro_batches},
      {"v", &PlanOptions::virtual_stages},          {"slices", &PlanOptions::token_slices}};
  const std::size_t equals = std::min(text.find('='), text.size());
  const auto setting = settings.find(text.substr(0, equals));
  const auto number = equals < text.size() ? number_of(std::string_view(text).substr(equals + 1)) : std::nullopt;
  if (setting == settings.end() || !number || *number < 1 || *number > kLargestCount) return std::nullopt;
  return Fixed{.setting = setting->second, .number = *number};
}

}  // namespace

std::vector<LayerPin> parse_pins(const std::vector<std::string>& texts, const Model& model) {
  std::vector<std::pair<LayerPin, std::string>> pins;
  for (const std::string& text : texts) pins.emplace_back(parse_pin(text, model), text);
  std::sort(pins.begin(), pins.end(), [](const auto& a, const auto& b) { return a.first.layer < b.first.layer; });
  for (std::size_t i = 1; i < pins.size(); ++i) {
    const auto& [before, first] = pins[i - 1];
    const auto& [after, second] = pins[i];
    if (after.stage < before.stage || after.stage - before.stage > after.layer - before.layer)
      throw UsageError("--pin", fmt::format("must leave a layer for every stage, in order, after {}", first), second);
  }
  std::vector<LayerPin> result;
  for (const auto& [pin, text] : pins) result.push_back(pin);
  return result;
}

void apply_fixed(const std::vector<std::string>& texts, PlanOptions& options) {
  std::map<std::string, std::string> given;  // by part
  for (const std::string& text : texts) {
    const auto fixed = parse_fixed(text);
    FROSTPIPE_CHECK(fixed, "check_fixed accepts it");
    const auto [before, is_new] = given.try_emplace(text.substr(0, text.find('=')), text);
    if (!is_new)
      throw UsageError("--fix", fmt::format("must give {} once", before->first),
                       fmt::format("{} and {}", before->second, text));
    options.*fixed->setting = fixed->number;
    if (fixed->setting == &PlanOptions::tensor_parallel_size) options.any_tensor_parallel_size = false;
  }
}

std::string check_fixed(const std::string& text) {
  if (parse_fixed(text)) return "";
  return fmt::format(
      "must be pp=P (stages), tp=T (tensor ranks), dp=D (replicas), m=M (micro-batches per replica), v=V (stages per "
      "rank) or slices=N (token slices per micro-batch), is {}",
      text);
}

std::optional<std::vector<FreezeEvent>> parse_forecast(const std::string& text, const Model& model, int num_steps,
                                                       const FreezeOptions& options) {
  if (text == "cap") return std::nullopt;
  if (!text.starts_with("fixed:")) {
    const std::string file = file_in(text, "executed_plan.json");
    const TrainingPlan recorded = load_plan(file);
    require_same_model(recorded, model, file);
    return recorded_forecast(recorded, model, num_steps);
  }
  const auto layers = parse_fixed_layers(std::string_view(text).substr(std::string_view("fixed:").size()));
  if (!layers || layers->back() > num_blocks(model))
    throw UsageError("--forecast",
                     fmt::format("must be fixed:N,N,... with frozen blocks after each decision, ascending, at most {}",
                                 num_blocks(model)),
                     text);
  return forecast_fixed(*layers, num_steps, options);
}

}  // namespace frostpipe
