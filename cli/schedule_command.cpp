#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/output.h"
#include "plan/schedule.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

constexpr int kLargestShape = 4096;  // positions, micro-batches: more is no picture

struct ScheduleOptions {
  std::string name;
  ScheduleShape shape{.pipeline_parallel_size = 4, .num_micro_batches = 8, .first_trainable_stage = 0};
  std::string actions = "compute_only";
  std::string format;
};

/// A shape that the schedule does not have is a matter of usage.
Schedule built(const ScheduleOptions& options) {
  try {
    return build_schedule(options.name, options.shape);
  } catch (const InvalidInput& error) {
    throw UsageError(error.what());
  }
}

int run_schedule(const ScheduleOptions& options) {
  if (options.format == "grid" && options.actions != "compute_only") {
    throw UsageError("--format grid: shows compute only; use csv or text for --actions compute_comms");
  }
  const Schedule compute = built(options);
  const Schedule shown = options.actions == "compute_comms" ? lower(compute) : compute;
  print_result(options.format == "grid" ? to_grid(shown) : options.format == "csv" ? to_csv(shown) : to_text(shown));
  return 0;
}

}  // namespace

Command add_schedule_command(CLI::App& app) {
  const auto options = std::make_shared<ScheduleOptions>();
  CLI::App* command = app.add_subcommand("schedule", "Show what each rank of a pipeline does, and in which order");
  std::string names;
  for (const std::string& name : schedule_names()) names += (names.empty() ? "" : ", ") + name;
  command->add_option("NAME", options->name, "Schedule: " + names)
      ->required()
      ->type_name("")
      ->check(CLI::IsMember(schedule_names(), CLI::ignore_case).description(""));
  const auto add_size = [&](const std::string& name, int& value, int smallest, const std::string& meaning) {
    command->add_option(name, value, meaning)
        ->check(CLI::Range(smallest, kLargestShape).description(""))
        ->type_name("N")
        ->capture_default_str();
  };
  add_size("--pp", options->shape.pipeline_parallel_size, 1, "Pipeline-parallel size: number of ranks in a row");
  add_size("--micro-batches", options->shape.num_micro_batches, 1, "Micro-batches per iteration");
  command->add_option("--virtual-stages", options->shape.virtual_stages, "Stages per rank; default: what the schedule needs, 2 where that is free")
      ->check(CLI::Range(1, kLargestShape).description(""))
      ->type_name("V");
  add_size("--first-trainable-stage", options->shape.first_trainable_stage, 0,
           "Stages before it are frozen: forward only");
  command->add_option("--actions", options->actions, "compute_only, or compute_comms with what passes between ranks")
      ->check(CLI::IsMember({"compute_only", "compute_comms"}).description(""))
      ->type_name("ACTIONS")
      ->capture_default_str();
  add_format_option(*command, options->format, {"grid", "csv", "text"});
  command->footer(
      "grid: one cell per unit of time, a backward is two. csv: as torch.distributed.pipelining reads it.\n\n"
      "Example:\n  frostpipe schedule 1F1B --pp 4 --micro-batches 8 --format grid");
  return {command, [options] { return run_schedule(*options); }};
}

}  // namespace frostpipe
