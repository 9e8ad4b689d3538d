#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/plans/schedule_choice.h"
#include "cli/report/schedule_svg.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/usage_error.h"
#include "plan/messages.h"
#include "plan/schedule.h"
#include "profiles/error.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

constexpr Nanoseconds kOneUnit = 1000;
constexpr UniformCosts kUnitCosts{
    .forward_ns = kOneUnit, .input_gradient_ns = kOneUnit, .weight_gradient_ns = kOneUnit};
constexpr int kShownIterations = 3;  // where they overlap

struct ScheduleOptions {
  ScheduleChoice choice;
  std::string file_to_check;
  std::string actions = "compute_only";
  std::string format;
};

std::string in_format(const Schedule& compute, const ScheduleOptions& options) {
  if (options.format == "grid") return to_grid(compute);
  if (options.format == "text") return to_text(options.actions == "compute_comms" ? lower(compute) : compute);
  // PyTorch and pictures know no iterations: what overlaps is written out.
  const Schedule flat = compute.epilogue.empty() ? compute : unrolled(compute, kShownIterations);
  if (options.format == "csv")
    return to_csv(options.actions == "compute_comms" ? with_receives_in_send_order(lower(flat)) : flat);
  const Trace trace =
      simulate(lower(flat), {.pipeline_parallel_size = num_pipeline_ranks(flat)}, UniformCostModel(kUnitCosts), 1);
  return schedule_svg(flat, trace, kOneUnit);
}

std::string check_verdict(const std::string& file) {
  const Schedule checked = checked_schedule(file);
  std::string text = fmt::format("{}: valid {} with {} ranks, {} stages, {} micro-batches", file,
                                 has_messages(checked) ? "compute_comms" : "compute_only", num_pipeline_ranks(checked),
                                 num_stages(checked), checked.num_micro_batches);
  if (checked.num_slices > 1) text += fmt::format(" of {} token slices", checked.num_slices);
  if (checked.first_trainable_stage > 0)
    text += fmt::format(", the first {} stages frozen", checked.first_trainable_stage);
  return text + "\n";
}

int run_schedule(const ScheduleOptions& options) {
  if (!options.file_to_check.empty()) {
    if (!options.choice.name.empty()) throw UsageError("--check FILE: takes no NAME beside it");
    print_result(check_verdict(options.file_to_check));
    return 0;
  }
  if (options.choice.name.empty())
    throw UsageError("schedule: needs a NAME (such as 1F1B), a CSV file, or --check FILE");
  if ((options.format == "grid" || options.format == "svg") && options.actions != "compute_only") {
    throw UsageError(
        fmt::format("--format {}: shows compute only; use csv or text for --actions compute_comms", options.format));
  }
  print_result(in_format(chosen_schedule(options.choice, kUnitCosts), options));
  return 0;
}

}  // namespace

Command add_schedule_command(CLI::App& app) {
  const auto options = std::make_shared<ScheduleOptions>();
  CLI::App* command = app.add_subcommand("schedule", "Show what each rank of a pipeline does, and in which order");
  command->add_option("NAME", options->choice.name, "Schedule: " + known_schedules() + "; or a CSV file")
      ->type_name("");
  command
      ->add_option("--check", options->file_to_check,
                   "Say whether a CSV file is a schedule that can run, and if not why")
      ->type_name("FILE");
  add_shape_options(*command, options->choice);
  command
      ->add_option("--first-trainable-stage", options->choice.shape.first_trainable_stage,
                   "Stages before it are frozen: forward only")
      ->check(CLI::Range(0, kLargestCount).description(""))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--actions", options->actions, "compute_only, or compute_comms with what passes between ranks")
      ->check(CLI::IsMember({"compute_only", "compute_comms"}).description(""))
      ->type_name("ACTIONS")
      ->capture_default_str();
  add_format_option(*command, options->format, {"grid", "csv", "svg", "text"});
  command->footer(
      "grid and svg: every F, I and W takes one unit of time, a B two. csv: as torch.distributed.pipelining reads "
      "it.\n\n"
      "Example:\n  frostpipe schedule 1F1B --pp 4 --micro-batches 8 --format grid\n"
      "  frostpipe schedule ZBVZeroBubble --actions compute_comms --format csv > zbv.csv\n  frostpipe schedule --check "
      "zbv.csv");
  return {command, [options] { return run_schedule(*options); }};
}

}  // namespace frostpipe
