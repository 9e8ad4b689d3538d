#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/program/command_group.h"
#include "cli/serving/plan_for_serving.h"
#include "cli/serving/serve_plan.h"
#include "cli/serving/serving_plan_text.h"
#include "cli/serving/simulate_serving_plan.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "serving/server/worker/run_worker.h"

namespace frostpipe {
namespace {

Command add_serving_plan(CLI::App& group) {
  const auto request = std::make_shared<ServingRequest>();
  CLI::App* command = group.add_subcommand("plan", "Choose pipelines over pools of devices that answer in time");
  add_serving_plan_options(*command, *request);
  command->footer(
      "The exit code is 1 if no plan fits.\n\n"
      "Example:\n  frostpipe serving plan --profile a100.json --profile v100.json --cluster mixed.json --slo 100ms "
      "-o serving.json");
  return {command, [request] { return plan_for_serving(*request); }};
}

Command add_serving_simulate(CLI::App& group) {
  const auto options = std::make_shared<SimulateServingOptions>();
  CLI::App* command = group.add_subcommand("simulate", "Predict how a plan serves requests: attainment, latencies");
  add_simulate_serving_options(*command, *options);
  command->footer("Example:\n  frostpipe serving simulate serving.json --rate x0.9");
  return {command, [options] {
            print_result(simulate_serving_plan(*options));
            return 0;
          }};
}

Command add_serving_run(CLI::App& group) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* command = group.add_subcommand("run", "Answer requests by a plan's pipelines, on this machine");
  add_serve_options(*command, *options);
  command->footer(
      "Examples:\n"
      "  frostpipe serving run serving.json --model runs/elastic/model\n"
      "  frostpipe serving run heads.json --model topic=runs/topic/model --model tone=runs/tone/model\n"
      "  frostpipe serving run serving.json --device emulated --rate x0.9 --seconds 30");
  return {command, [options] {
            if (is_serving_worker()) return run_serving_worker(load_partition);
            print_result(serve_plan(*options, open_servable_model));
            return 0;
          }};
}

struct InspectServingOptions {
  std::string plan, format;
};

Command add_serving_inspect(CLI::App& group) {
  const auto options = std::make_shared<InspectServingOptions>();
  CLI::App* command = group.add_subcommand("inspect", "Show a plan again, and what binds it");
  command->add_option("PLAN", options->plan, "Plan to show")->required()->type_name("");
  add_format_option(*command, options->format);
  command->footer("Example:\n  frostpipe serving inspect serving.json");
  return {command, [options] {
            const ServingPlan plan = load_serving_plan(options->plan);
            print_result(options->format == "json"
                             ? to_json(plan)
                             : serving_plan_text(plan, options->plan) + serving_explanation(plan));
            return 0;
          }};
}

}  // namespace

Command add_serving_commands(CLI::App& app) {
  return add_group(app, "serving", kServingDescription,
                   {add_serving_plan, add_serving_simulate, add_serving_run, add_serving_inspect});
}

}  // namespace frostpipe
