#include "cli/operators/plan_operators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "cli/operators/operator_plan_text.h"
#include "cli/plans/plan_files.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "operators/planner/machine.h"
#include "operators/planner/make_operator_plan.h"
#include "plan/plan_paths.h"

namespace frostpipe {
namespace {

/// Lists the baselines, such as data parallelism, with their times relative to the plan's.
std::string baselines_text(const OperatorProblem& problem, Nanoseconds planned_ns) {
  std::string text = "\nbaselines in the same simulator:\n";
  for (const OperatorMethod baseline : kOperatorBaselines) {
    const Nanoseconds time_ns = make_operator_plan(problem, baseline).predicted_ns;
    text += fmt::format("  {:<22} {:>10}  {:.2f} x\n", to_string(baseline), format_duration(time_ns),
                        static_cast<double>(time_ns) / static_cast<double>(planned_ns));
  }
  return text;
}

}  // namespace

void add_operator_plan_options(CLI::App& command, OperatorRequest& request) {
  command.add_option("--profile", request.profile, "Profile that `nets profile` has written")
      ->required()
      ->type_name("FILE");
  command.add_option("--cluster", request.cluster, "Devices to place operators on")->required()->type_name("FILE");
  std::vector<std::string> methods = {std::string(to_string(OperatorMethod::mtrain))};
  for (const OperatorMethod baseline : kOperatorBaselines) methods.emplace_back(to_string(baseline));
  command
      .add_option("--method", request.method,
                  fmt::format("mtrain searches for the fastest placement; the others are its baselines: {}",
                              fmt::join(methods, ", ")))
      ->check(CLI::IsMember(methods).description(""))
      ->type_name("METHOD")
      ->capture_default_str();
  command
      .add_option("--freeze", request.frozen_layers, "Number of leading layers to freeze, numbered as in the profile")
      ->check(CLI::Range(0, kLargestCount).description(""))
      ->type_name("N")
      ->capture_default_str();
  command.add_option("-o,--output", request.output, "Plan to write")->required()->type_name("PLAN");
  command.add_flag("--explain", request.explain, "Also show the critical path and what the baselines would take");
  add_format_option(command, request.format);
}

int plan_operators(const OperatorRequest& request) {
  const std::string content = read_named_file(request.profile), cluster_content = read_named_file(request.cluster);
  const OperatorGraph whole = operator_graph_from_json(content, request.profile);
  const Cluster cluster = cluster_from_json(cluster_content, request.cluster);
  require_writable(request.output);
  if (request.frozen_layers >= num_layers(whole))
    throw InvalidInput("--freeze", fmt::format("must leave one of the {} layers", num_layers(whole)),
                       std::to_string(request.frozen_layers));
  const OperatorProblem problem{.graph = frozen(whole, request.frozen_layers), .machine = machine_of(cluster)};
  require_links(problem.machine, request.cluster);
  require_times(problem.graph, problem.machine, request.profile);
  const auto num_devices = static_cast<int>(problem.machine.devices.size());
  const OperatorMethod method = find_operator_method(request.method).value();
  if (method == OperatorMethod::data_parallel && whole.batch < num_devices)
    throw InvalidInput(request.profile + ": batch", fmt::format("must be >= the {} devices that share it", num_devices),
                       std::to_string(whole.batch));
  auto plan = make_operator_plan(problem, method);
  plan.frozen_layers = request.frozen_layers;
  plan.provenance = {.model_name = whole.net,
                     .profile_path = path_for_plan(request.profile, request.output),
                     .profile_fingerprint = fingerprint(content),
                     .cluster_path = path_for_plan(request.cluster, request.output),
                     .cluster_fingerprint = fingerprint(cluster_content),
                     .version = FROSTPIPE_VERSION};
  validate(plan, request.output);
  const std::string json = to_json(plan);
  write_named_file(request.output, json);
  if (request.format == "json")
    print_result(json);
  else
    print_result(operator_plan_text(plan, request.output) +
                 (request.explain
                      ? operator_explanation(plan, request.output) + baselines_text(problem, plan.predicted_ns)
                      : ""));
  return 0;
}

}  // namespace frostpipe
