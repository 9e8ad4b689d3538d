#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/operators/plan_operators.h"
#include "cli/plans/link_text.h"
#include "cli/plans/plan_answer.h"
#include "cli/plans/plan_files.h"
#include "cli/plans/plan_options.h"
#include "cli/plans/plan_terms.h"
#include "cli/plans/plan_text.h"
#include "cli/plans/replan_text.h"
#include "cli/serving/plan_for_serving.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/report_words.h"
#include "cli/shared/usage_error.h"
#include "plan/plan_kind.h"
#include "plan/run_length.h"
#include "planner/auto_zero_bubble_plan.h"
#include "planner/plan_request.h"
#include "profiles/device_type.h"
#include "profiles/estimates/estimate.h"
#include "profiles/hardware.h"
#include "profiles/join_profiles.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

const Workload& workload_for(const PlanCommandOptions& options, const Profile& profile, const std::string& option) {
  if (profile.workload && profile.workload->num_samples > 0) return *profile.workload;
  throw InvalidInput(fmt::format("{}: workload: must be there unless {} is given; profile with --data, or give {}",
                                 options.profile, option, option));
}

int steps_of(const PlanCommandOptions& options, const Profile& profile) {
  if (options.num_steps > 0) return options.num_steps;
  const std::int64_t steps =
      std::int64_t{options.epochs} *
      steps_per_epoch(workload_for(options, profile, "--steps").num_samples, options.plan.global_batch_size);
  if (steps > kLargestCount)
    throw InvalidInput("--epochs", fmt::format("at most {} steps", kLargestCount), fmt::format("{} steps", steps));
  return static_cast<int>(steps);
}

int tokens_of(const PlanCommandOptions& options, const Profile& profile) {
  if (options.tokens > 0) return options.tokens;
  return static_cast<int>(std::lround(workload_for(options, profile, "--tokens").tokens));
}

/// 0 where the profile does not know its data: nothing can come again then.
int steps_per_epoch_of(const PlanCommandOptions& options, const Profile& profile) {
  if (!profile.workload) return 0;
  return profile.workload->num_samples > 0
             ? steps_per_epoch(profile.workload->num_samples, options.plan.global_batch_size)
             : 0;
}

Provenance provenance_of(const PlanCommandOptions& options, const Profile& profile, const std::string& profile_content,
                         const std::string& cluster_content) {
  return {.model_name = profile.model.name,
          .model_fingerprint = fingerprint(profile.model),
          .model_path = profile.model_path.empty() ? "" : path_for_plan(profile.model_path, options.output),
          .profile_path = path_for_plan(options.profile, options.output),
          .profile_fingerprint = fingerprint(profile_content),
          .cluster_path = path_for_plan(options.cluster, options.output),
          .cluster_fingerprint = fingerprint(cluster_content),
          .version = FROSTPIPE_VERSION};
}

/// A profile from counted operations in place of a file; it is written beside the plan, which names it, when there is
/// one.
std::string estimated_profile(const PlanCommandOptions& options, const Cluster& cluster) {
  const std::string& type = cluster.devices.front().type;
  if (std::any_of(cluster.devices.begin(), cluster.devices.end(),
                  [&](const Device& device) { return device.type != type; }))
    throw InvalidInput(options.cluster + ": devices",
                       "must be of one type for --model, which estimates one device; give a --profile",
                       "several types");
  EstimateOptions estimate_options{.ranks_per_node = static_cast<int>(cluster.devices.size()),
                                   .global_batch_size = options.plan.global_batch_size,
                                   .device_type = type};
  const auto is_theirs = [&](const Hardware& hardware) { return hardware.name == type; };
  const auto known = std::ranges::find_if(known_hardware(), is_theirs);
  if (options.hardware.empty()) {
    if (known != known_hardware().end()) estimate_options.rates = rates_of(*known);
  } else {
    const Hardware hardware = hardware_named(options.hardware);
    if (known != known_hardware().end() && !is_theirs(hardware))
      throw InvalidInput("--hardware",
                         fmt::format("must be {}, what the devices of {} are, or be left out", type, options.cluster),
                         options.hardware);
    estimate_options.rates = rates_of(hardware);
  }
  return to_json(estimate(find_model(options.model, options.tokens), estimate_options).profile);
}

std::string advice_on_memory(double reserve) {
  return fmt::format(
      "{}Try more ranks or a higher memory limit, another --method, or see with --ignore-memory-limit what a larger "
      "device would do.",
      reserve > 0 ? fmt::format("{:g} % of every memory limit is kept free (--memory-reserve). ", 100 * reserve) : "");
}

/// Those asked for, if they were measured, else those that the planner wants to weigh.
std::vector<int> thread_counts(const PlanCommandOptions& options, const Profile& profile, const Cluster& cluster) {
  if (options.threads_per_rank == 0) return threads_to_weigh({profile, cluster, options.plan});
  const std::vector<int> measured = measured_threads(profile, cluster);
  if (std::find(measured.begin(), measured.end(), options.threads_per_rank) == measured.end())
    throw InvalidInput(
        "--threads-per-rank",
        fmt::format("must be a number that {} has measured for the devices of {}: {}", options.profile, options.cluster,
                    measured.empty() ? "none" : fmt::format("{}", fmt::join(measured, ", "))),
        std::to_string(options.threads_per_rank));
  return {options.threads_per_rank};
}

/// Of unequal devices, each in a file of its own; it is written beside the plan, which names it.
std::string joined_profile(const std::vector<std::string>& paths) {
  std::vector<NamedProfile> profiles;
  for (const std::string& path : paths) profiles.push_back({path, profile_from_json(read_named_file(path), path)});
  return to_json(join_profiles(std::move(profiles)));
}

/// Whether the plan's profile is made here, and not read.
bool makes_profile(const PlanCommandOptions& options) { return !options.model.empty() || options.profiles.size() > 1; }

/// What a plan is made from, as read, and the contents of the files.
struct Inputs {
  Cluster whole;    // with all of its memory
  Cluster devices;  // without the reserve
  Profile profile;
  std::string profile_content, cluster_content;
};

/// Also finds out whether the plan can be written, which is better known before the planning than after it.
Inputs read_inputs(PlanCommandOptions& options) {
  Inputs inputs;
  inputs.cluster_content = read_named_file(options.cluster);
  inputs.whole = cluster_from_json(inputs.cluster_content, options.cluster);
  inputs.devices = with_memory_reserve(inputs.whole, options.memory_reserve);
  if (makes_profile(options)) {
    options.profile = std::filesystem::path(options.output).replace_extension(".profile.json").string();
    std::error_code none;  // of what is not there nothing is lost
    for (const std::string& read : options.profiles)
      if (std::filesystem::equivalent(read, options.profile, none))
        throw UsageError(fmt::format("--output {}: its {} is one of --profile's, and would be overwritten",
                                     options.output, options.profile));
  }
  inputs.profile_content = !options.model.empty()        ? estimated_profile(options, inputs.devices)
                           : options.profiles.size() > 1 ? joined_profile(options.profiles)
                                                         : read_named_file(options.profile);
  inputs.profile = profile_from_json(inputs.profile_content, options.profile);
  if (!inputs.profile.measurements.empty()) options.plan.dtype = inputs.profile.measurements.front().key.dtype;
  require_writable(options.output);
  if (makes_profile(options)) require_writable(options.profile);
  return inputs;
}

/// Fills in what follows from the profile and from the text of options.
void complete(PlanCommandOptions& options, const Profile& profile) {
  PlanOptions& plan = options.plan;
  plan.method = find_plan_method(options.method).value();
  parse_text(options.partitioner, "--partitioner", plan.partitioner);
  plan.num_steps = steps_of(options, profile);
  plan.tokens = tokens_of(options, profile);
  plan.steps_per_epoch = steps_per_epoch_of(options, profile);
  plan.use_cache = options.cache == "auto";
  if (!options.recompute.empty()) plan.recompute = find_recompute(options.recompute);
  plan.pins = parse_pins(options.limits.pins, profile.model);
  apply_fixed(options.limits.fixed, plan);
  plan.forecast = parse_forecast(options.limits.forecast, profile.model, plan.num_steps, plan.freeze);
}

PlanRequest request_of(const PlanCommandOptions& options) {
  PlanRequest request{.options = options.plan, .deadline_ns = std::nullopt, .keep_replans = options.explain};
  if (options.deadline.empty()) return request;
  if (!freezes(options.plan.method))
    throw UsageError(
        fmt::format("--deadline: needs a --method that freezes, such as pipetransformer, not {}", options.method));
  request.deadline_ns = parse_duration(options.deadline, "--deadline");
  return request;
}

/// What the ways to group the cores would take; empty for a single one.
std::string groupings_text(const std::vector<GroupedRun>& runs) {
  if (runs.size() < 2) return "";
  std::string text = "predicted with the cores as\n";
  for (const GroupedRun& run : runs) {
    const auto* const fits = std::get_if<AutoPlan>(&run.planned.answer);
    text += fmt::format("  {}: {}\n", ranks_text(static_cast<int>(run.cluster.devices.size()), run.threads_per_rank),
                        fits ? format_duration(predicted_run_ns(fits->plan)) : "does not fit");
  }
  return text;
}

/// What the planner has to say beside the plan that it chose.
std::string explanation_text(const PlanCommandOptions& options, const std::vector<GroupedRun>& runs,
                             const GroupedRun& best, const Profile& profile) {
  std::string text;
  if (best.planned.late) text += deadline_text(*best.planned.late, options.deadline);
  for (const auto& [request, result] : best.planned.replans) text += explanation_of(request, result, profile.model);
  text += groupings_text(runs);
  if (options.plan.method == PlanMethod::timely_freeze) {
    const TrainingPlan& plan = std::get<AutoPlan>(best.planned.answer).plan;
    text += timely_freeze_text(plan.phases.front(), {profile, best.cluster, options.plan});
  }
  return text;
}

/// The planner's answer, completed by what the files and the options say.
AutoPlan complete_answer(AutoPlan answer, const PlanCommandOptions& options, const Inputs& inputs,
                         const Cluster& cluster) {
  if (options.plan.method != PlanMethod::automatic && options.plan.schedule != kAutoZeroBubble)
    answer.lower_bound_ns = iteration_lower_bound_ns({inputs.profile, cluster, options.plan});
  answer.plan.workload = inputs.profile.workload;
  answer.plan.epochs = options.num_steps > 0 ? 0 : options.epochs;
  answer.plan.provenance = provenance_of(options, inputs.profile, inputs.profile_content, inputs.cluster_content);
  return answer;
}

/// What is said of a plan of another kind.
void require_options_of(PlanKind kind, const CLI::App& command) {
  static const std::set<std::string> of_all = {"--help",   "--profile", "--cluster", "--method",
                                               "--output", "--explain", "--format"};
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || of_all.contains(name)) continue;
    if (name == "--tokens" && kind != PlanKind::operators) continue;
    const bool is_serving = option->get_group() == kServingGroup, is_operators = option->get_group() == kOperatorsGroup;
    if (is_operators && kind != PlanKind::operators)
      throw UsageError(name + ": is for a plan of operators (--method mtrain)");
    if (!is_operators && kind == PlanKind::operators)
      throw UsageError(name + ": is for plans of other methods, and this one is of operators");
    if (is_serving && kind == PlanKind::training)
      throw UsageError(name + ": is for a plan of serving (--method ppipe), and this one is for training");
    if (!is_serving && kind == PlanKind::serving)
      throw UsageError(name + ": is for a plan of training, and this one is for serving");
  }
}

/// Refuses a --fix of what an option of the same name fixes.
void require_fixed_once(const CLI::App& command, const std::vector<std::string>& fixed) {
  for (const std::string& text : fixed) {
    const std::string name = "--" + text.substr(0, text.find('='));
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option != nullptr && option->count() > 0)
      throw UsageError(fmt::format("{} {} and --fix {}: fix the same, give one of them", name,
                                   fmt::join(option->results(), " "), text));
  }
}

int run_serving_plan(const PlanCommandOptions& options, const ServingOptions& serving, ServingMethod method) {
  if (options.profiles.empty()) throw UsageError(fmt::format("plan: --method {} needs --profile FILE", options.method));
  return plan_for_serving({.method = method,
                           .profiles = options.profiles,
                           .cluster = options.cluster,
                           .output = options.output,
                           .tokens = options.tokens,
                           .options = serving,
                           .explain = options.explain,
                           .format = options.format});
}

int run_operator_plan(const PlanCommandOptions& options, int frozen_layers, OperatorMethod method) {
  if (options.profiles.size() != 1)
    throw UsageError(fmt::format("plan: --method {} needs one --profile FILE", options.method));
  return plan_operators({.method = method,
                         .profile = options.profiles.front(),
                         .cluster = options.cluster,
                         .output = options.output,
                         .frozen_layers = frozen_layers,
                         .explain = options.explain,
                         .format = options.format});
}

int run_plan(PlanCommandOptions& options) {
  if (options.profiles.empty() && options.model.empty()) throw UsageError("plan: needs --profile FILE or --model NAME");
  if (options.plan.global_batch_size == 0) throw UsageError("plan: needs --global-batch N");
  if (options.profiles.size() == 1) options.profile = options.profiles.front();
  const Inputs inputs = read_inputs(options);
  const Profile& profile = inputs.profile;
  complete(options, profile);
  const std::vector<int> threads = thread_counts(options, profile, inputs.devices);
  const std::vector<GroupedRun> runs = plan_groupings(profile, inputs.devices, request_of(options), threads);
  const GroupedRun& best = best_grouping(runs);
  if (const auto* const none = std::get_if<Infeasible>(&best.planned.answer)) {
    print_note(fmt::format("no {} plan fits: {}{}", options.method, none->reason,
                           none->lacks_memory ? "\n" + advice_on_memory(options.memory_reserve) : ""));
    return 1;
  }
  const std::string explanation = explanation_text(options, runs, best, profile);
  const AutoPlan answer = complete_answer(std::get<AutoPlan>(best.planned.answer), options, inputs, best.cluster);
  const std::string json = to_json(answer.plan);
  if (makes_profile(options)) write_named_file(options.profile, inputs.profile_content);
  write_named_file(options.output, json);
  if (options.format == "json") {
    print_result(plan_answer_json(answer, json));
    return 0;
  }
  const bool is_fastest = runs.size() > 1 && options.deadline.empty();  // a deadline asks for another
  const Cluster grouped = with_threads_per_rank(inputs.whole, best.threads_per_rank);
  const Phase& first = answer.plan.phases.front();
  print_result(
      plan_text(answer.plan, profile, grouped, options.output, is_fastest) + plan_answer_text(answer) + explanation +
      (options.explain
           ? stage_terms_text(first, {profile, best.cluster, options.plan}) + placement_text(first, best.cluster)
           : ""));
  return 0;
}

}  // namespace

Command add_plan_command(CLI::App& app) {
  const auto options = std::make_shared<PlanCommandOptions>();
  CLI::App* command =
      app.add_subcommand("plan", "Choose a layout for each part of a run, from a profile and a cluster");
  const auto serving = std::make_shared<ServingOptions>();
  add_plan_options(*command, *options);
  add_serving_options(*command, *serving);
  const auto frozen_layers = std::make_shared<int>(0);
  add_operator_options(*command, *frozen_layers);
  return {command, [options, serving, frozen_layers, command] {
            const auto method = find_serving_method(options->method);
            const auto of_operators = find_operator_method(options->method);
            require_options_of(method         ? PlanKind::serving
                               : of_operators ? PlanKind::operators
                                              : PlanKind::training,
                               *command);
            require_fixed_once(*command, options->limits.fixed);
            if (of_operators) return run_operator_plan(*options, *frozen_layers, *of_operators);
            return method ? run_serving_plan(*options, *serving, *method) : run_plan(*options);
          }};
}

}  // namespace frostpipe
