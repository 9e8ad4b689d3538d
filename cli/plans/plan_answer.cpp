#include "cli/plans/plan_answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "cli/shared/model_figures.h"
#include "cli/shared/shape_text.h"
#include "cli/shared/table.h"
#include "plan/stages.h"
#include "planner/auto_zero_bubble_plan.h"
#include "planner/method_table.h"
#include "simulator/model_flops.h"
#include "simulator/predict_phases.h"

namespace frostpipe {
namespace {

constexpr std::size_t kMaxUnfitLayouts = 5;

/// Returns the predicted iteration time over its bound, minus 1. Requires a bound.
double gap_of(const AutoPlan& answer) {
  const Nanoseconds predicted = answer.plan.phases.front().predicted.iteration_ns;
  return static_cast<double>(predicted) / static_cast<double>(answer.lower_bound_ns) - 1;
}

std::string bound_sentence(const AutoPlan& answer, const std::vector<std::string>& choices) {
  if (answer.lower_bound_ns > 0)
    return fmt::format(
        "no fixed layout that auto looks at{}{} has an iteration below {}; the first phase is {:.1f} % {}\n",
        choices.empty() ? "" : " with ", fmt::join(choices, " "), format_duration(answer.lower_bound_ns),
        100 * std::abs(gap_of(answer)),
        gap_of(answer) < 0 ? "below, by a layout or a schedule that auto does not look at" : "above");
  if (answer.plan.phases.empty() || !schedule_traits(answer.plan.phases.front().schedule).has_slices) return "";
  return fmt::format(
      "plan chose the number and the lengths of the token slices, and no lower bound covers them all; --schedule {} "
      "--fix slices=N plans N equal slices with a bound\n",
      answer.plan.phases.front().schedule);
}

}  // namespace

std::vector<std::string> choices_of_bound(const PlanCommandOptions& options) {
  const bool bounds_all = options.method != "auto" || options.plan.schedule == kAutoZeroBubble;
  std::vector<std::string> choices;
  for (const std::string& fixed : options.limits.fixed)
    if (!bounds_all || fixed.starts_with("slices=")) choices.push_back("--fix " + fixed);
  if (!bounds_all) {
    for (const std::string& pin : options.limits.pins) choices.push_back("--pin " + pin);
    if (!options.plan.schedule.empty()) choices.push_back("--schedule " + options.plan.schedule);
    if (!options.recompute.empty()) choices.push_back("--recompute " + options.recompute);
  }
  if (options.plan.sequence_parallel) choices.emplace_back("--sequence-parallel");
  if (options.plan.max_devices > 0) choices.push_back(fmt::format("--max-devices {}", options.plan.max_devices));
  return choices;
}

std::string plan_answer_text(const AutoPlan& answer, const std::vector<std::string>& choices) {
  std::string text = bound_sentence(answer, choices);
  if (!answer.alternatives.empty()) {
    using enum Table::Align;
    Table table({{"next best", left},
                 {"partition", left},
                 {"micro-batches", right},
                 {"schedule", left},
                 {"recompute", left},
                 {"iteration [ms]", right},
                 {"slower [%]", right}});
    const auto best = static_cast<double>(answer.plan.phases.front().predicted.iteration_ns);
    for (const Phase& phase : answer.alternatives) {
      table.add_row({shape_text(phase), to_brief_string(phase.partition),
                     micro_batches_text(phase, answer.plan.global_batch_size), schedule_text(phase),
                     phase.recompute ? std::string(to_string(*phase.recompute)) : "-",
                     in_milliseconds(phase.predicted.iteration_ns),
                     fmt::format("{:.1f}", 100 * (static_cast<double>(phase.predicted.iteration_ns) / best - 1))});
    }
    text += "\n" + table.to_string();
  }
  for (std::size_t i = 0; i < std::min(answer.unfit_layouts.size(), kMaxUnfitLayouts); ++i)
    text += "does not fit: " + answer.unfit_layouts[i] + "\n";
  if (answer.unfit_layouts.size() > kMaxUnfitLayouts)
    text += fmt::format("{} more layouts do not fit; --format json names them\n",
                        answer.unfit_layouts.size() - kMaxUnfitLayouts);
  return text;
}

std::string plan_answer_json(const AutoPlan& answer, const std::string& plan_json, const Profile& profile,
                             const Cluster& cluster) {
  auto json = nlohmann::ordered_json::parse(plan_json);
  for (std::size_t i = 0; i < answer.plan.phases.size(); ++i)
    if (const auto rate = tokens_per_second(answer.plan.phases[i], answer.plan.global_batch_size, profile))
      json["phases"][i]["tokens_per_second"] = *rate;
  add_model_figures(json, answer.plan, profile, cluster);
  json["objective"] = entry_of(answer.plan.method).objective;
  json["predicted_iteration_ns"] = answer.plan.phases.front().predicted.iteration_ns;
  if (answer.lower_bound_ns > 0) {
    json["lower_bound_ns"] = answer.lower_bound_ns;
    json["gap"] = gap_of(answer);
  } else {
    json["lower_bound_ns"] = json["gap"] = nullptr;
  }
  json["alternatives"] = nlohmann::ordered_json::array();
  for (const Phase& phase : answer.alternatives) {
    json["alternatives"].push_back({{"stages", num_stages(phase)},
                                    {"replicas", phase.layout.data_parallel_size},
                                    {"tensor_parallel_size", phase.layout.tensor_parallel_size},
                                    {"partition", to_string(phase.partition)},
                                    {"num_micro_batches", phase.num_micro_batches},
                                    {"micro_batch_size", micro_batch_size(phase, answer.plan.global_batch_size)},
                                    {"schedule", phase.schedule},
                                    {"recompute", phase.recompute ? to_string(*phase.recompute) : ""},
                                    {"predicted_iteration_ns", phase.predicted.iteration_ns}});
    if (phase.virtual_stages > 1) json["alternatives"].back()["virtual_stages"] = phase.virtual_stages;
    if (!phase.token_slices.empty()) json["alternatives"].back()["token_slices"] = phase.token_slices;
  }
  json["misses"] = answer.unfit_layouts;
  return json_text(json, 2) + "\n";
}

}  // namespace frostpipe
