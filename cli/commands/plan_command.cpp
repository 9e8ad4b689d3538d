#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/plans/link_text.h"
#include "cli/plans/plan_answer.h"
#include "cli/plans/plan_files.h"
#include "cli/plans/plan_options.h"
#include "cli/plans/plan_terms.h"
#include "cli/plans/plan_text.h"
#include "cli/plans/replan_text.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/report_words.h"
#include "cli/shared/usage_error.h"
#include "plan/plan_paths.h"
#include "plan/run_length.h"
#include "planner/auto_zero_bubble_plan.h"
#include "planner/memory_reserve.h"
#include "planner/plan_request.h"
#include "profiles/device_type.h"
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

/// Returns the optimizer steps of an epoch, or 0 if the profile has no workload: then no sample is known to come again,
/// and the cache cannot pay.
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
          .model_path = path_for_plan(profile.model_path, options.output),
          .profile_path = path_for_plan(options.profile, options.output),
          .profile_fingerprint = fingerprint(profile_content),
          .cluster_path = path_for_plan(options.cluster, options.output),
          .cluster_fingerprint = fingerprint(cluster_content),
          .version = FROSTPIPE_VERSION};
}

/// Says that all devices together have less memory than the model's weights, gradients and optimizer state need; empty
/// if they have enough.
std::string shortage_of_all_devices(const Profile& profile, const Cluster& cluster, const PlanOptions& options) {
  double parameters = 0;  // of the replicas that share the experts
  for (std::size_t layer = 0; layer < profile.model.layers.size(); ++layer)
    parameters += static_cast<double>(profile.model.expert_parallel_size *
                                      held_parameter_count(profile.model, static_cast<int>(layer)));
  const Bytes kept = kept_bytes_per_value(options.dtype), computed = bytes_per_value(options.dtype);
  const auto bytes_per_parameter =
      static_cast<double>(kept * (2 + optimizer_moments(options.optimizer)) + (computed < kept ? computed : 0));
  double memory = 0;
  for (const Device& device : cluster.devices) {
    if (!device.memory_limit_bytes) return {};
    memory += static_cast<double>(*device.memory_limit_bytes);
  }
  if (parameters * bytes_per_parameter <= memory) return {};
  return fmt::format(
      "Weights, gradients and optimizer state need about {}, {:g} bytes for each of {:.3g} billion parameters; all {} "
      "have "
      "{}.\n",
      format_bytes(static_cast<Bytes>(parameters * bytes_per_parameter)), bytes_per_parameter, parameters / 1e9,
      plural(std::ssize(cluster.devices), "device"), format_bytes(static_cast<Bytes>(memory)));
}

std::string advice_on_memory(double reserve) {
  return fmt::format(
      "{}Try more ranks or a higher memory limit, another --method, or see with --ignore-memory-limit what a larger "
      "device would do.",
      reserve > 0 ? fmt::format("{:g} % of every memory limit is kept free (--memory-reserve). ", 100 * reserve) : "");
}

/// Returns the number of threads that --threads-per-rank gives, or else the numbers among which the planner chooses.
/// Throws InvalidInput if the profile has not measured the given one.
std::vector<int> thread_counts(const PlanCommandOptions& options, const Profile& profile, const Cluster& cluster) {
  if (options.threads_per_rank == 0) return threads_to_weigh({profile, cluster, options.plan});
  const std::vector<int> measured = measured_threads(profile, cluster);
  const std::string source =  // the profile has no name if it is estimated or joined, and no plan is written
      options.profile.empty() ? "the profile has for all devices"
                              : fmt::format("{} has measured for the devices of {}", options.profile, options.cluster);
  if (std::find(measured.begin(), measured.end(), options.threads_per_rank) == measured.end())
    throw InvalidInput("--threads-per-rank",
                       fmt::format("must be a number that {}: {}", source,
                                   measured.empty() ? "none" : fmt::format("{}", fmt::join(measured, ", "))),
                       std::to_string(options.threads_per_rank));
  return {options.threads_per_rank};
}

/// Joins the profiles of unequal devices into one, which is written beside the plan that names it.
std::string joined_profile(const std::vector<std::string>& paths) {
  std::vector<NamedProfile> profiles;
  for (const std::string& path : paths) profiles.push_back({path, profile_from_json(read_named_file(path), path)});
  return to_json(join_profiles(std::move(profiles)));
}

constexpr int kEstimatedBatch = 128;  // samples of a mini-batch with --model and without --global-batch

bool is_estimated(const PlanCommandOptions& options) { return !options.estimated.model.empty(); }

/// Returns whether the plan's profile is estimated or joined from several files, not read from one.
bool makes_profile(const PlanCommandOptions& options) { return is_estimated(options) || options.profiles.size() > 1; }

std::string beside(const std::string& plan, const char* extension) {
  return plan.empty() ? "" : std::filesystem::path(plan).replace_extension(extension).string();
}

/// Names the files that the command writes.
std::vector<std::string> written_files(const PlanCommandOptions& options) {
  if (options.output.empty()) return {};
  std::vector<std::string> files{options.output};
  if (makes_profile(options)) files.push_back(options.profile);
  if (is_estimated(options)) files.push_back(options.cluster);
  return files;
}

/// The files that a plan is made from.
struct Inputs {
  Cluster whole;    // with full memory limits
  Cluster devices;  // with memory limits less the reserve
  Profile profile;
  std::string profile_content, cluster_content;
};

/// Reads the cluster, and reads, joins or estimates the profile; sets their paths and the dtype in `options`. Throws
/// before the planning, not after it, if the plan cannot be written.
Inputs read_inputs(PlanCommandOptions& options) {
  Inputs inputs;
  if (makes_profile(options)) options.profile = beside(options.output, ".profile.json");
  if (is_estimated(options)) {
    Estimate made =
        estimate_of(options.estimated, options.tokens, options.plan.global_batch_size, options.plan.sequence_parallel);
    options.cluster = beside(options.output, ".cluster.json");
    inputs.cluster_content = to_json(made.cluster);
    inputs.profile_content = to_json(made.profile);
    inputs.profile = std::move(made.profile);  // parsing profile_content would give the same
  } else {
    inputs.cluster_content = read_named_file(options.cluster);
  }
  inputs.whole = cluster_from_json(inputs.cluster_content, options.cluster);
  inputs.devices = with_memory_reserve(inputs.whole, options.memory_reserve);
  if (options.profiles.size() > 1) {
    std::error_code none;  // a file that does not exist cannot be overwritten
    for (const std::string& read : options.profiles)
      if (std::filesystem::equivalent(read, options.profile, none))
        throw UsageError(fmt::format("--output {}: its {} is one of --profile's, and would be overwritten",
                                     options.output, options.profile));
  }
  if (!is_estimated(options)) {
    inputs.profile_content =
        makes_profile(options) ? joined_profile(options.profiles) : read_named_file(options.profile);
    inputs.profile = profile_from_json(inputs.profile_content, options.profile);
  }
  if (!inputs.profile.measurements.empty()) options.plan.dtype = inputs.profile.measurements.front().key.dtype;
  for (const std::string& file : written_files(options)) require_writable(file);
  return inputs;
}

/// Fills in the planner's options from the profile and from options given as text.
void complete(PlanCommandOptions& options, const Profile& profile) {
  PlanOptions& plan = options.plan;
  plan.method = find_plan_method(options.method).value();
  plan.num_steps = steps_of(options, profile);
  plan.tokens = tokens_of(options, profile);
  plan.steps_per_epoch = steps_per_epoch_of(options, profile);
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

/// Lists the predicted time of each way to group the cores into ranks; empty if there is only one way.
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

/// Explains the plan: the deadline, the ways to go on after a freeze, the groupings of cores, and the weight gradients
/// that TimelyFreeze leaves out.
std::string explanation_text(const PlanCommandOptions& options, const std::vector<GroupedRun>& runs,
                             const GroupedRun& best, const Profile& profile) {
  std::string text;
  if (best.planned.deadline_plan) text += deadline_text(*best.planned.deadline_plan, options.deadline);
  for (const auto& [request, result] : best.planned.replans) text += explanation_of(request, result, profile.model);
  text += groupings_text(runs);
  if (options.plan.method == PlanMethod::timely_freeze) {
    const TrainingPlan& plan = std::get<AutoPlan>(best.planned.answer).plan;
    text += timely_freeze_text(plan.phases.front(), {profile, best.cluster, options.plan});
  }
  return text;
}

/// Completes the planner's answer with its bound, its workload and the files that it was made from.
AutoPlan complete_answer(AutoPlan answer, const PlanCommandOptions& options, const Inputs& inputs,
                         const Cluster& cluster) {
  if (options.plan.method != PlanMethod::automatic && options.plan.schedule != kAutoZeroBubble)
    answer.lower_bound_ns = iteration_lower_bound_ns({inputs.profile, cluster, options.plan});
  answer.plan.workload = inputs.profile.workload;
  answer.plan.memory_reserve = options.memory_reserve;
  answer.plan.epochs = options.num_steps > 0 ? 0 : options.epochs;
  answer.plan.provenance = provenance_of(options, inputs.profile, inputs.profile_content, inputs.cluster_content);
  return answer;
}

/// Prints a note if the model has experts and every replica holds all of them, since distributing them requires a
/// profile that was made for it.
void note_experts(const PlanCommandOptions& options, const Model& model) {
  const bool has_experts =
      std::ranges::any_of(model.layers, [](const Layer& layer) { return layer.expert_parameter_count > 0; });
  if (!has_experts || model.expert_parallel_size > 1) return;
  const EstimatedSource& source = options.estimated;
  const std::string command =
      is_estimated(options)
          ? fmt::format("{} --hardware {} --nodes {} --nproc-per-node {} --dtype {} --tokens {} --global-batch {}",
                        source.model, source.hardware, source.num_nodes, source.devices_per_node,
                        to_string(options.plan.dtype), options.plan.tokens, options.plan.global_batch_size)
          : model.name;
  print_note(fmt::format(
      "this is without expert parallelism: every replica holds all experts. To distribute them over N replicas, plan "
      "from a profile: frostpipe profile --like {} --expert-parallel N -o profile.json --cluster cluster.json",
      command));
}

/// Returns choices_of_bound, and the number of threads per rank if the profile has measured several.
std::vector<std::string> choices_with_threads(const PlanCommandOptions& options, const Inputs& inputs, int threads) {
  std::vector<std::string> choices = choices_of_bound(options);
  if (measured_threads(inputs.profile, inputs.devices).size() > 1)
    choices.push_back(fmt::format("--threads-per-rank {}", threads));
  return choices;
}

int run_plan(PlanCommandOptions& options) {
  if (!is_estimated(options) && (options.profiles.empty() || options.cluster.empty()))
    throw UsageError("plan: needs --profile FILE and --cluster FILE, or --model NAME");
  if (options.plan.global_batch_size == 0 && !is_estimated(options))
    throw UsageError("--global-batch is required with --profile");
  if (options.plan.global_batch_size == 0) options.plan.global_batch_size = kEstimatedBatch;
  if (options.profiles.size() == 1) options.profile = options.profiles.front();
  const Inputs inputs = read_inputs(options);
  const Profile& profile = inputs.profile;
  complete(options, profile);
  const std::vector<int> threads = thread_counts(options, profile, inputs.devices);
  const std::vector<GroupedRun> runs = plan_groupings(profile, inputs.devices, request_of(options), threads);
  const GroupedRun& best = best_grouping(runs);
  if (const auto* const none = std::get_if<Infeasible>(&best.planned.answer)) {
    print_note(fmt::format("no {} plan fits: {}{}", options.method, none->reason,
                           none->lacks_memory ? "\n" + shortage_of_all_devices(profile, inputs.devices, options.plan) +
                                                    advice_on_memory(options.memory_reserve)
                                              : ""));
    note_experts(options, profile.model);
    return 1;
  }
  if (const int samples = profile.workload ? profile.workload->num_samples : 0;
      samples > 0 && samples < options.plan.global_batch_size)
    print_note(fmt::format("a step has all of the {} samples, fewer than --global-batch: predictions are for {}",
                           samples, options.plan.global_batch_size));
  const std::string explanation = explanation_text(options, runs, best, profile);
  const AutoPlan answer = complete_answer(std::get<AutoPlan>(best.planned.answer), options, inputs, best.cluster);
  const std::string json = to_json(answer.plan);
  if (!options.output.empty()) {
    if (makes_profile(options)) write_named_file(options.profile, inputs.profile_content);
    if (is_estimated(options)) write_named_file(options.cluster, inputs.cluster_content);
    write_named_file(options.output, json);
  }
  if (options.format == "json") {
    print_result(plan_answer_json(answer, json, profile, best.cluster));
    note_experts(options, profile.model);
    return 0;
  }
  const bool is_fastest = runs.size() > 1 && options.deadline.empty();  // under a deadline another plan may be faster
  const Cluster grouped = with_threads_per_rank(inputs.whole, best.threads_per_rank);
  const Phase& first = answer.plan.phases.front();
  print_result(plan_text(answer.plan, profile, grouped, options.output.empty() ? profile.model.name : options.output,
                         is_fastest) +
               plan_answer_text(answer, choices_with_threads(options, inputs, best.threads_per_rank)) + explanation +
               (options.explain ? stage_terms_text(first, {profile, best.cluster, options.plan}) +
                                      placement_text(first, best.cluster)
                                : ""));
  note_experts(options, profile.model);
  return 0;
}

}  // namespace

Command add_plan_command(CLI::App& app) {
  const auto options = std::make_shared<PlanCommandOptions>();
  CLI::App* command = app.add_subcommand("plan", "Choose a layout for each part of a run");
  add_plan_options(*command, *options);
  return {command, [options] { return run_plan(*options); }};
}

}  // namespace frostpipe
