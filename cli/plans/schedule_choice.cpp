#include "cli/plans/schedule_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/spelling.h"
#include "cli/shared/common_options.h"
#include "cli/shared/report_words.h"
#include "cli/shared/usage_error.h"
#include "plan/schedule_rows.h"
#include "planner/auto_zero_bubble_plan.h"
#include "planner/published/auto_zero_bubble.h"

namespace frostpipe {
namespace {

constexpr int kLargestShape = 4096;  // largest value of an option of the shape; more cannot be shown

}  // namespace

std::string known_schedules() { return fmt::format("{}, {}", fmt::join(schedule_names(), ", "), kAutoZeroBubble); }

void add_shape_options(CLI::App& command, ScheduleChoice& choice) {
  const auto add_size = [&](const std::string& name, int& value, const std::string& meaning) {
    return command.add_option(name, value, meaning)
        ->check(CLI::Range(1, kLargestShape).description(""))
        ->type_name("N");
  };
  add_size("--pp", choice.shape.pipeline_parallel_size, "Pipeline-parallel size, the number of ranks in a row")
      ->capture_default_str();
  add_size("--micro-batches", choice.shape.num_micro_batches, "Number of micro-batches in an iteration")
      ->capture_default_str();
  add_size("--virtual-stages", choice.shape.virtual_stages,
           "Number of stages per rank. Default: what the schedule needs, or 2 if that is free");
  add_size("--token-slices", choice.shape.token_slices,
           "Number of slices of each micro-batch (TeraPipe, Seq1F1B). Default: 4");
  add_size("--max-in-flight", choice.max_in_flight,
           "Largest number of micro-batches that a rank of AutoZeroBubble keeps. Default: twice --pp");
}

bool names_a_file(const std::string& name) {
  return name.ends_with(".csv") || name.find('/') != std::string::npos || std::filesystem::is_regular_file(name);
}

double weight_gradient_share_of(const ScheduleChoice& choice) {
  return equal_ignoring_case(choice.name, kAutoZeroBubble) ? kWeightGradientShare : 1;
}

Schedule chosen_schedule(const ScheduleChoice& choice, const UniformCosts& costs) {
  if (names_a_file(choice.name)) return compute_only(checked_schedule(choice));
  const bool is_auto = equal_ignoring_case(choice.name, kAutoZeroBubble);
  if (choice.max_in_flight > 0 && !is_auto)
    throw UsageError(
        fmt::format("--max-in-flight: must be left out for {}; only {} has it", choice.name, kAutoZeroBubble));
  const std::vector<std::string> names = schedule_names();
  if (!is_auto &&
      std::none_of(names.begin(), names.end(), [&](const auto& one) { return equal_ignoring_case(one, choice.name); }))
    throw UsageError(
        fmt::format("schedule: must be one of {}, or a CSV file, is \"{}\"", known_schedules(), choice.name));
  try {
    if (!is_auto) return build_schedule(choice.name, choice.shape);
    const int limit = choice.max_in_flight > 0 ? choice.max_in_flight : 2 * choice.shape.pipeline_parallel_size;
    return auto_zero_bubble(choice.shape, costs, limit, weight_gradient_share_of(choice));
  } catch (const InvalidInput& error) {
    throw UsageError(error.what());
  }
}

Schedule checked_schedule(const ScheduleChoice& file) {
  if (file.shape != ScheduleChoice{}.shape || file.max_in_flight > 0)
    throw UsageError(fmt::format("{}: says itself how many ranks, micro-batches and stages there are", file.name));
  return valid_schedule_from_csv(read_named_file(file.name), file.name);
}

std::string sizes_text(const Schedule& schedule) {
  return fmt::format("{}, {}, {}", plural(num_pipeline_ranks(schedule), "rank"), plural(num_stages(schedule), "stage"),
                     plural(schedule.num_micro_batches, "micro-batch"));
}

}  // namespace frostpipe
