#include "cli/serving/plan_for_serving.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/error_values.h"
#include "base/files.h"
#include "base/separated_values.h"
#include "cli/plans/plan_files.h"
#include "cli/serving/serving_plan_text.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/usage_error.h"
#include "plan/plan_paths.h"
#include "serving/plan/limits.h"
#include "serving/planner/device_classes.h"
#include "serving/planner/make_serving_plan.h"
#include "serving/planner/prepartition.h"
#include "serving/planner/unused_class.h"

namespace frostpipe {
namespace {

constexpr int kNumBlocks = 10;  // blocks of a model, as in PPipe

/// The profiles of one model, and the file of the first one.
struct Measured {
  std::vector<Profile> profiles;
  std::string path, content;
};

/// Groups the profiles by model, in the order of the files.
std::vector<Measured> read_profiles(const std::vector<std::string>& paths) {
  std::vector<Measured> models;
  for (const auto& path : paths) {
    const std::string content = read_named_file(path);
    Profile profile = profile_from_json(content, path);
    const auto same = [&](const Measured& model) { return model.profiles.front().model.name == profile.model.name; };
    const auto found = std::ranges::find_if(models, same);
    if (found == models.end())
      models.push_back({.profiles = {std::move(profile)}, .path = path, .content = content});
    else
      found->profiles.push_back(std::move(profile));
  }
  return models;
}

DType dtype_of(const std::vector<Measured>& models) {
  for (const auto& model : models)
    for (const auto& profile : model.profiles)
      if (!profile.measurements.empty()) return profile.measurements.front().key.dtype;
  throw InvalidInput("--profile: holds no measurements");
}

/// Returns the times of requests of --tokens tokens. The default is the length of the longest sample of the profile's
/// data, so that no text like those is cut; the mean if the longest is unknown, or longer than what was measured.
ServingProfile layers_of(const ServingRequest& request, const Measured& measured, const ServingProblem& problem) {
  const auto for_tokens = [&](int tokens) {
    return serving_profile_of(measured.profiles, problem.dtype, tokens, problem.max_requests);
  };
  if (request.tokens > 0) return for_tokens(request.tokens);
  const auto& workload = measured.profiles.front().workload;
  if (!workload) return for_tokens(1);
  try {
    if (workload->longest_tokens > 0) return for_tokens(workload->longest_tokens);
  } catch (const InvalidInput&) {  // the length was not measured; the next call throws any other error again
  }
  return for_tokens(std::max(1, static_cast<int>(std::lround(workload->tokens))));
}

Nanoseconds latency_objective(const std::string& text) {
  if (!check_duration(text).empty()) throw UsageError("--slo", "must be a time such as 20ms or 0.5s", in_quotes(text));
  const Nanoseconds objective_ns = parse_duration(text, "--slo");
  if (objective_ns < 1 || objective_ns > kMaxServingNs)
    throw UsageError("--slo", fmt::format("must be > 0 and <= {}", format_duration(kMaxServingNs)), in_quotes(text));
  return objective_ns;
}

/// Drops device types that the cluster does not have: they would influence how the model is cut into blocks.
void drop_foreign_types(const ServingProblem& problem, ServingProfile& layers) {
  const auto is_foreign = [&](const BlockTimes& times) {
    return std::ranges::find(problem.classes, times.device_type, &DeviceClass::name) == problem.classes.end();
  };
  // If no type is left, all stay: the planner then names them in its error.
  if (!std::ranges::all_of(layers.times, is_foreign)) std::erase_if(layers.times, is_foreign);
}

/// Reads K,N of --heads for a model of `num_layers` layers. Returns nothing if it is not given.
std::optional<SharedPrefix> shared_prefix_of(const ServingOptions& options, const std::string& name, int num_layers) {
  const std::string text = text_for(options.heads, name);
  if (text.empty()) return std::nullopt;
  SharedPrefix prefix;
  const auto parts = split(text, ',');
  const auto is_read = [](std::string_view part, int least, int most, int& number) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    return error == std::errc() && end == part.data() + part.size() && least <= number && number <= most;
  };
  if (parts.size() != 2 || !is_read(parts[0], 2, kMaxHeads, prefix.heads) ||
      !is_read(parts[1], 1, num_layers - 1, prefix.layers))
    throw UsageError(
        "--heads",
        fmt::format("must be K,N: 2 to {} models that share their first N of the {} layers of {}, but not all of them",
                    kMaxHeads, num_layers, name),
        in_quotes(text));
  return prefix;
}

void warn_of_noise(const ServingProfile& layers) {
  const auto fall = find_falling_time(layers);
  if (!fall) return;
  print_note(
      fmt::format("WARNING: by its profile, {} takes {} for a batch of {} on {}{}, but only {} for one of {}: such "
                  "times are mostly "
                  "noise; profile again while the machine is idle, without --quick",
                  layers.model_name, format_duration(fall->smaller_ns), fall->smaller,
                  fall->share > 1 ? fmt::format("1/{} ", fall->share) : "", fall->device_type,
                  format_duration(fall->larger_ns), fall->larger));
}

ModelToServe model_to_serve(const ServingRequest& request, const Measured& measured, const ServingProblem& problem,
                            const std::string& cluster_content) {
  const Profile& profile = measured.profiles.front();
  const ServingOptions& options = request.options;
  const std::string& name = profile.model.name;
  const std::string objective = text_for(options.objectives, name);
  if (objective.empty())
    throw UsageError(fmt::format("serving plan: needs --slo TIME, the latency objective of {}", name));
  auto layers = layers_of(request, measured, problem);
  drop_foreign_types(problem, layers);
  warn_of_noise(layers);
  layers = without_falling_times(std::move(layers));
  const auto shared_prefix = shared_prefix_of(options, name, num_blocks(layers));
  if (shared_prefix) layers = with_heads(std::move(layers), shared_prefix->layers, shared_prefix->heads);
  return {.name = name,
          .weight = number_for(options.weights, name, 1, "--weight", kLeastWeight, kMaxWeight),
          .objective_ns = latency_objective(objective),
          .required_requests_per_second =
              number_for(options.required_rates, name, 0, "--required-rate", 1e-6, kMaxServingRate),
          .profile = join_blocks(layers, prepartition(layers, kNumBlocks).ends),
          .shared_prefix = shared_prefix,
          .provenance = {.model_name = name,
                         .model_fingerprint = fingerprint(profile.model),
                         .model_path = path_for_plan(profile.model_path, request.output),
                         .profile_path = path_for_plan(measured.path, request.output),
                         .profile_fingerprint = fingerprint(measured.content),
                         .cluster_path = path_for_plan(request.cluster, request.output),
                         .cluster_fingerprint = fingerprint(cluster_content),
                         .version = FROSTPIPE_VERSION}};
}

ServingProblem problem_of(const ServingRequest& request) {
  const std::string cluster_content = read_named_file(request.cluster);
  const Cluster cluster = cluster_from_json(cluster_content, request.cluster);
  const auto measured = read_profiles(request.profiles);
  ServingProblem problem{.classes = device_classes_of(cluster),
                         .latency_ns = cluster.inter_node.point_to_point.latency_ns,
                         .dtype = dtype_of(measured),
                         .max_partitions = request.options.max_partitions};
  problem.memory_limit_bytes = memory_limits_of(cluster, problem.classes);
  problem.margins.objective_fraction = request.options.margin;
  if (!request.options.required_rates.empty()) problem.objective = ServingObjective::cost;
  std::vector<std::string> names;
  for (const auto& model : measured) names.push_back(model.profiles.front().model.name);
  require_one_each(request.options.objectives, names, "--slo");
  require_one_each(request.options.weights, names, "--weight");
  require_one_each(request.options.required_rates, names, "--required-rate");
  require_one_each(request.options.heads, names, "--heads");
  for (const auto& model : measured) problem.models.push_back(model_to_serve(request, model, problem, cluster_content));
  return problem;
}

}  // namespace

void add_serving_plan_options(CLI::App& command, ServingRequest& request) {
  command
      .add_option("--profile", request.profiles,
                  "Profile of a model on one class of devices. Give it once for each model and class")
      ->required()
      ->type_name("FILE")
      ->allow_extra_args(false);
  command.add_option("--cluster", request.cluster, "Cluster whose devices serve")->required()->type_name("FILE");
  command
      .add_option("--method", request.method,
                  "ppipe plans pipelines over pools of unequal devices. Its baselines are ppipe-np, which uses no "
                  "pipelines, and ppipe-dart, which copies a pipeline on one device of each class")
      ->check(CLI::IsMember({"ppipe", "ppipe-np", "ppipe-dart"}).description(""))
      ->type_name("METHOD")
      ->capture_default_str();
  command.add_option("-o,--output", request.output, "Plan to write")->required()->type_name("PLAN");
  command
      .add_option(
          "--tokens", request.tokens,
          "Number of tokens in every request; longer texts are cut to it. Default: the length of the longest sample of "
          "the profile's data if that length was measured, else the mean length, or 1 without data")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
  add_serving_options(command, request.options);
  command.add_flag("--explain", request.explain, "Also say what binds each pipeline and which devices are unused");
  add_format_option(command, request.format);
}

int plan_for_serving(const ServingRequest& request) {
  const ServingProblem problem = problem_of(request);
  require_writable(request.output);
  const auto result = make_serving_plan(find_serving_method(request.method).value(), problem);
  if (const auto* const none = std::get_if<Infeasible>(&result)) {
    print_note(fmt::format("no {} plan fits: {}", request.method, none->reason));
    return 1;
  }
  const auto& plan = std::get<ServingPlan>(result);
  validate(plan, request.output);
  const std::string json = to_json(plan);
  write_named_file(request.output, json);
  if (request.format == "json")
    print_result(json);
  else
    print_result(serving_plan_text(plan, request.output) +
                 (request.explain ? serving_explanation(plan, why_unused(problem, plan)) : ""));
  return 0;
}

}  // namespace frostpipe
