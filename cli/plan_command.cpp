#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/plans/plan_answer.h"
#include "cli/plans/plan_files.h"
#include "cli/plans/plan_limits.h"
#include "cli/plans/plan_terms.h"
#include "cli/plans/plan_text.h"
#include "cli/plans/replan_text.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/report_words.h"
#include "cli/shared/usage_error.h"
#include "plan/run_length.h"
#include "plan/schedule.h"
#include "planner/auto_plan.h"
#include "planner/deadline.h"
#include "planner/make_plan.h"
#include "planner/replan.h"
#include "profiles/device_type.h"
#include "profiles/error.h"
#include "profiles/estimate.h"
#include "profiles/files.h"
#include "profiles/hardware.h"
#include "profiles/import/config_shape.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

struct PlanCommandOptions {
  std::string profile, cluster, output;
  int epochs = 3;
  int num_steps = 0;         // 0 = from the epochs
  int tokens = 0;            // 0 = the workload's
  int threads_per_rank = 0;  // 0 = the best of those measured, or 1: see threads_to_plan
  std::string method = "auto", partitioner = "exact", cache = "auto", recompute, deadline;
  PlanLimits limits;
  double memory_reserve = kMemoryReserve;
  std::string model, hardware;  // in place of a profile
  bool explain = false;
  PlanOptions plan;
  std::string format;
};

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
  if (!options.hardware.empty()) estimate_options.rates = rates_of(find_hardware(options.hardware));
  return to_json(estimate(find_shape(options.model, options.tokens), estimate_options).profile);
}

std::string advice_on_memory(double reserve) {
  return fmt::format(
      "{}Try more ranks or a higher memory limit, another --method, or see with --ignore-memory-limit what a larger "
      "device would do.",
      reserve > 0 ? fmt::format("{:g} % of every memory limit is kept free (--memory-reserve). ", 100 * reserve) : "");
}

/// Threads per rank to plan with: those asked for, or all that were measured, where the method is to find the fastest
/// layout and nothing of it is given.
std::vector<int> threads_to_plan(const PlanCommandOptions& options, const Profile& profile, const Cluster& cluster) {
  const std::vector<int> measured = measured_threads(profile, cluster);
  if (options.threads_per_rank > 0) {
    if (std::find(measured.begin(), measured.end(), options.threads_per_rank) == measured.end())
      throw InvalidInput(
          "--threads-per-rank",
          fmt::format("must be a number that {} has measured for the devices of {}: {}", options.profile,
                      options.cluster, measured.empty() ? "none" : fmt::format("{}", fmt::join(measured, ", "))),
          std::to_string(options.threads_per_rank));
    return {options.threads_per_rank};
  }
  const PlanOptions& plan = options.plan;
  const bool finds_fastest = plan.method == PlanMethod::automatic || plan.method == PlanMethod::pipetransformer;
  const bool is_free = plan.pipeline_parallel_size == 0 && plan.tensor_parallel_size == 1 &&
                       plan.data_parallel_size == 0 && plan.max_devices == 0 && plan.placement.empty() &&
                       plan.partition.empty() && plan.pins.empty();
  return finds_fastest && is_free && !measured.empty() ? measured : std::vector<int>{1};
}

/// What the planner answers, and what it has to say beside the plan.
struct Planned {
  std::variant<AutoPlan, Infeasible> result = AutoPlan();
  std::string explanation;
  int delay_steps = 0;  // with --deadline: of the freezes
};

/// The later it freezes where there is a deadline, then the shorter, the better.
bool is_better(const Planned& one, const Planned& other) {
  const auto* const plan = std::get_if<AutoPlan>(&one.result);
  const auto* const other_plan = std::get_if<AutoPlan>(&other.result);
  if (!plan || !other_plan) return plan != nullptr && other_plan == nullptr;
  if (one.delay_steps != other.delay_steps) return one.delay_steps > other.delay_steps;
  return predicted_run_ns(plan->plan) < predicted_run_ns(other_plan->plan);
}

Planned plan_on(const Profile& profile, const Cluster& cluster, const PlanCommandOptions& options) {
  Planned planned;
  std::string& explanation = planned.explanation;
  const auto keep = [&](PlanResult made) {
    if (auto* none = std::get_if<Infeasible>(&made)) {
      planned.result = std::move(*none);
    } else {
      std::get<AutoPlan>(planned.result).plan = std::get<TrainingPlan>(std::move(made));
    }
  };
  if (!options.deadline.empty()) {
    if (!freezes(options.plan.method))
      throw UsageError(
          fmt::format("--deadline: needs a --method that freezes, such as pipetransformer, not {}", options.method));
    auto made = plan_for_deadline(profile, cluster, options.plan, parse_duration(options.deadline, "--deadline"));
    if (auto* plan = std::get_if<DeadlinePlan>(&made)) {
      explanation = deadline_text(*plan, options.deadline);
      planned.delay_steps = plan->delay_steps;
      keep(std::move(plan->plan));
    } else {
      keep(std::get<Infeasible>(std::move(made)));
    }
  } else if (options.plan.method == PlanMethod::automatic) {
    planned.result = make_auto_plan(profile, cluster, options.plan);
  } else {
    ReplanObserver observe;
    if (options.explain)
      observe = [&](const ReplanRequest& request, const ReplanResult& considered) {
        explanation += explanation_of(request, considered, profile.model);
      };
    keep(make_plan(profile, cluster, options.plan, observe));
  }
  return planned;
}

int run_plan(PlanCommandOptions& options) {
  if (options.profile.empty() && options.model.empty()) throw UsageError("plan: needs --profile FILE or --model NAME");
  const std::string cluster_content = read_named_file(options.cluster);
  const Cluster whole = cluster_from_json(cluster_content, options.cluster);
  const Cluster devices = with_memory_reserve(whole, options.memory_reserve);
  if (!options.model.empty())
    options.profile = std::filesystem::path(options.output).replace_extension(".profile.json").string();
  const std::string profile_content =
      options.model.empty() ? read_named_file(options.profile) : estimated_profile(options, devices);
  const Profile profile = profile_from_json(profile_content, options.profile);
  if (!profile.measurements.empty()) options.plan.dtype = profile.measurements.front().key.dtype;
  require_writable(options.output);  // found out before the planning, not after it
  if (!options.model.empty()) require_writable(options.profile);
  options.plan.method = find_plan_method(options.method).value();
  parse_text(options.partitioner, "--partitioner", options.plan.partitioner);
  options.plan.num_steps = steps_of(options, profile);
  options.plan.tokens = tokens_of(options, profile);
  options.plan.steps_per_epoch = steps_per_epoch_of(options, profile);
  options.plan.use_cache = options.cache == "auto";
  if (!options.recompute.empty()) options.plan.recompute = find_recompute(options.recompute);

  options.plan.pins = parse_pins(options.limits.pins, profile.model);
  apply_fixed(options.limits.fixed, options.plan);
  options.plan.forecast =
      parse_forecast(options.limits.forecast, profile.model, options.plan.num_steps, options.plan.freeze);

  Planned best;
  Cluster cluster;
  int chosen_threads = 1;
  std::string weighed;  // what the ways to group the cores would take
  const std::vector<int> thread_counts = threads_to_plan(options, profile, devices);
  for (const int threads : thread_counts) {
    const Cluster grouped = with_threads_per_rank(devices, threads);
    Planned planned = plan_on(profile, grouped, options);
    const auto* const fits = std::get_if<AutoPlan>(&planned.result);
    if (thread_counts.size() > 1)
      weighed += fmt::format("  {}: {}\n", ranks_text(static_cast<int>(grouped.devices.size()), threads),
                             fits ? format_duration(predicted_run_ns(fits->plan)) : "does not fit");
    if (threads == thread_counts.front() || is_better(planned, best)) {
      best = std::move(planned);
      cluster = grouped;
      chosen_threads = threads;
    }
  }
  std::variant<AutoPlan, Infeasible>& result = best.result;
  std::string& explanation = best.explanation;
  if (!weighed.empty()) explanation += fmt::format("predicted with the cores as\n{}", weighed);
  if (const auto* none = std::get_if<Infeasible>(&result)) {
    print_note(fmt::format("no {} plan fits: {}{}", options.method, none->reason,
                           none->lacks_memory ? "\n" + advice_on_memory(options.memory_reserve) : ""));
    return 1;
  }
  AutoPlan& answer = std::get<AutoPlan>(result);
  if (options.plan.method == PlanMethod::timely_freeze)
    explanation += timely_freeze_text(answer.plan.phases.front(), profile, cluster, options.plan);
  if (options.plan.method != PlanMethod::automatic)
    answer.lower_bound_ns = iteration_lower_bound_ns(profile, cluster, options.plan);
  TrainingPlan& plan = answer.plan;
  plan.workload = profile.workload;
  plan.epochs = options.num_steps > 0 ? 0 : options.epochs;
  plan.provenance = provenance_of(options, profile, profile_content, cluster_content);
  const std::string json = to_json(plan);
  if (!options.model.empty()) write_named_file(options.profile, profile_content);
  write_named_file(options.output, json);
  if (options.format == "json") {
    print_result(plan_answer_json(answer, json));
  } else {
    const bool is_fastest = thread_counts.size() > 1 && options.deadline.empty();  // a deadline asks for another
    print_result(plan_text(plan, profile, with_threads_per_rank(whole, chosen_threads), options.output, is_fastest) +
                 plan_answer_text(answer) + explanation +
                 (options.explain ? stage_terms_text(plan.phases.front(), profile, cluster, options.plan) : ""));
  }
  return 0;
}

}  // namespace

Command add_plan_command(CLI::App& app) {
  const auto options = std::make_shared<PlanCommandOptions>();
  options->plan.cache.memory_bytes = Bytes{1} << 30;
  CLI::App* command =
      app.add_subcommand("plan", "Choose a layout for each part of a run, from a profile and a cluster");
  CLI::Option* profile = command->add_option("--profile", options->profile, "Profile of the model")->type_name("FILE");
  CLI::Option* model = command
                           ->add_option("--model", options->model,
                                        "In place of a profile: an estimate from counted operations, of vit-b16, "
                                        "bert-large or a Hugging Face config.json (bert, vit, gpt2); "
                                        "written beside the plan")
                           ->type_name("NAME")
                           ->excludes(profile);
  command
      ->add_option(
          "--hardware", options->hardware,
          "With --model: RTX5000, RTX2080Ti, V100, A100, GH200, H100, H200 or a file; default: 8 TFLOP/s devices")
      ->type_name("NAME")
      ->needs(model);
  command->add_option("--cluster", options->cluster, "What there is to run on")->required()->type_name("FILE");
  add_count_option(*command, "--global-batch", options->plan.global_batch_size,
                   "Samples per optimizer step, over all ranks")
      ->required();
  std::vector<std::string> methods = {"auto"};
  for (const PlanMethod method : plan_methods()) methods.emplace_back(to_string(method));
  auto* method =
      command
          ->add_option(
              "--method", options->method,
              "auto: the best fixed layout; pipetransformer: the best of the whole run with freezing: when to change "
              "to fewer stages and more replicas, where to use "
              "cached activations; data-parallel; static: the best fixed pipeline; exact: with the least bound, "
              "provably; freeze-only: the static plan with freezing. "
              "As published: equal-split, pipedream, pipedream-2bw, ptd-p (Megatron), pipetransformer-published; "
              "pipetransformer-without-replicas: freed ranks stay idle; timelyfreeze: "
              "the share of weight gradients to leave out, at most --freeze-alpha of a stage's")
          ->check(CLI::IsMember(methods).description(""))
          ->type_name("METHOD")
          ->capture_default_str();
  command->add_option("-o,--output", options->output, "Plan to write")->required()->type_name("PLAN");
  auto* epochs = add_count_option(*command, "--epochs", options->epochs,
                                  "Length of the run, with the profile's number of samples");
  command->add_option("--steps", options->num_steps, "Length of the run in optimizer steps")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N")
      ->excludes(epochs);
  command->add_option("--tokens", options->tokens, "Mean tokens of a sample; default: the profile's workload")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
  command
      ->add_option("--partitioner", options->partitioner,
                   "exact: slowest stage as fast as possible; pipetransformer-greedy: as published, by parameters")
      ->check(CLI::IsMember({"exact", "pipetransformer-greedy"}).description(""))
      ->type_name("NAME")
      ->capture_default_str();
  command
      ->add_option("--schedule", options->plan.schedule,
                   "The only schedule to use: 1F1B or GPipe; default: the faster one")
      ->check(CLI::IsMember(runnable_schedule_names()).description(""))
      ->type_name("NAME");
  command
      ->add_option("--pp", options->plan.pipeline_parallel_size,
                   "Stages at the start, throughout in a plan that never changes; default: the best number")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("P");
  auto* tensor_ranks = add_count_option(*command, "--tp", options->plan.tensor_parallel_size,
                                        "Tensor-parallel size, which the profile must have measured (auto: any, unless "
                                        "given); such a plan can be simulated, not trained");
  command
      ->add_option("--recompute", options->recompute,
                   "What a backward computes again instead of keeping it: attention, layers (of which only the inputs "
                   "are kept) or stage (of which only its input is)")
      ->check(CLI::IsMember(recompute_words()).description(""))
      ->type_name("WHAT");
  command->add_option("--cache", options->cache, "Activation cache: auto (where it pays) or off")
      ->check(CLI::IsMember({"auto", "off"}).description(""))
      ->type_name("WHEN")
      ->capture_default_str();
  add_cache_options(*command, options->plan.cache);
  command
      ->add_option("--threads-per-rank", options->threads_per_rank,
                   "Compute threads of a rank on the CPU, as measured: the cluster's devices in groups of so many; "
                   "default: the fastest (auto, pipetransformer, where no part of the layout is given), or 1")
      ->check(CLI::Range(1, kMostThreads).description(""))
      ->type_name("N");
  command->add_option("--max-devices", options->plan.max_devices, "Ranks to use at most; the others stay idle")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
  command
      ->add_option("--pin", options->limits.pins,
                   "Keep a layer, by name or number, on a stage; may be given several times. The plan keeps it; train "
                   "--freeze, which plans anew, does not know of it")
      ->type_name("LAYER=STAGE");
  command
      ->add_option("--fix", options->limits.fixed,
                   "Leave open only the rest: pp=P stages, tp=T tensor ranks, dp=D replicas, m=M micro-batches per "
                   "replica; may be given several times")
      ->check(CLI::Validator(check_fixed, ""))
      ->type_name("WHAT=N");
  command
      ->add_option("--forecast", options->limits.forecast,
                   "What freezes when: cap (the rule that the freeze options shape), fixed:N,N,... (frozen layers "
                   "after each decision), or a plan's or a run's file, such as executed_plan.json")
      ->type_name("WHAT")
      ->capture_default_str();
  command
      ->add_option("--deadline", options->deadline,
                   "Freeze as late as possible so that the run takes at most so long, such as 90min; the forecast is "
                   "moved as a whole")
      ->check(CLI::Validator(check_duration, ""))
      ->type_name("TIME")
      ->needs(method);
  command->add_flag(
      "--explain", options->explain,
      "Say what binds each stage, what each way to go on after a freeze would take, and when the cache pays");
  command
      ->add_option("--memory-reserve", options->memory_reserve,
                   "Share of every memory limit that the plan leaves free for what predictions do not know")
      ->check(CLI::Range(0.0, 0.9).description(""))
      ->type_name("X")
      ->capture_default_str();
  command->add_flag("--ignore-memory-limit", options->plan.ignore_memory_limit,
                    "Plan, and train, as if the ranks had memory without limit");
  add_freeze_options(*command, options->plan.freeze);
  add_format_option(*command, options->format);
  command->footer(
      "The freeze options shape the forecast of a pipetransformer plan. Exit code 1 if no plan fits.\n\n"
      "Example:\n  frostpipe plan --profile profile.json --cluster cluster.json --global-batch 64 --method "
      "pipetransformer -o elastic.json");
  return {command, [options, tensor_ranks] {
            options->plan.any_tensor_parallel_size = tensor_ranks->count() == 0;
            return run_plan(*options);
          }};
}

}  // namespace frostpipe
