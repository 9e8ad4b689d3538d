#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/output.h"
#include "cli/plan_answer.h"
#include "cli/plan_files.h"
#include "cli/plan_limits.h"
#include "cli/plan_terms.h"
#include "cli/replan_text.h"
#include "cli/table.h"
#include "plan/schedule.h"
#include "planner/auto_plan.h"
#include "planner/deadline.h"
#include "planner/make_plan.h"
#include "planner/replan.h"
#include "planner/timely_freeze.h"
#include "profiles/error.h"
#include "profiles/files.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

struct PlanCommandOptions {
  std::string profile, cluster, output;
  int epochs = 3;
  int num_steps = 0;  // 0 = from the epochs
  int tokens = 0;     // 0 = the workload's
  std::string cache = "auto", recompute, deadline;
  PlanLimits limits;
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
  const std::int64_t samples = workload_for(options, profile, "--steps").num_samples;
  const std::int64_t batch = options.plan.global_batch_size;
  const std::int64_t steps = options.epochs * ((samples + batch - 1) / batch);
  if (steps > kLargestCount)
    throw InvalidInput("--epochs", fmt::format("at most {} steps", kLargestCount), fmt::format("{} steps", steps));
  return static_cast<int>(steps);
}

int tokens_of(const PlanCommandOptions& options, const Profile& profile) {
  if (options.tokens > 0) return options.tokens;
  const Workload& workload = workload_for(options, profile, "--tokens");
  if (workload.global_batch_size != options.plan.global_batch_size) {
    print_note(fmt::format(
        "the padded length of {} tokens was measured for mini-batches of {}, not {}; --tokens gives another",
        workload.tokens, workload.global_batch_size, options.plan.global_batch_size));
  }
  return workload.tokens;
}

/// 0 where the profile does not know its data: nothing can come again then.
int steps_per_epoch_of(const PlanCommandOptions& options, const Profile& profile) {
  if (!profile.workload) return 0;
  return (profile.workload->num_samples + options.plan.global_batch_size - 1) / options.plan.global_batch_size;
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

std::string memory_limits(const Cluster& cluster, bool memory_limited) {
  std::vector<std::string> cells;
  for (const Device& device : cluster.devices) cells.push_back(device.memory_limit_bytes ? in_mebibytes(*device.memory_limit_bytes) : "none");
  return side_by_side(cells) + (memory_limited ? "" : " (not applied to this plan)");
}

std::string phases_text(const TrainingPlan& plan, const Profile& profile) {
  using enum Table::Align;
  Table table({{"from step", right},
               {"frozen", right},
               {"stages x replicas", right},
               {"partition", left},
               {"micro-batches", right},
               {"schedule", left},
               {"cache", left},
               {"iteration [ms]", right},
               {"samples/s", right},
               {"memory per rank [MiB]", left},
               {"change [ms]", right}});
  for (const Phase& phase : plan.phases) {
    const PhasePrediction& predicted = phase.predicted;
    table.add_row({std::to_string(phase.from_step),
                   std::to_string(frozen_blocks(profile.model, phase.first_trainable_layer)),
                   fmt::format("{} x {}", phase.layout.pipeline_parallel_size, phase.layout.data_parallel_size),
                   to_brief_string(phase.partition), std::to_string(phase.num_micro_batches), phase.schedule, to_string(phase.cache, phase.first_trainable_layer),
                   in_milliseconds(predicted.iteration_ns),
                   fmt::format("{:.1f}", 1e9 * plan.global_batch_size /
                                             static_cast<double>(std::max<Nanoseconds>(1, predicted.iteration_ns))),
                   in_mebibytes(predicted.peak_memory_bytes), in_milliseconds(predicted.transformation_ns)});
  }
  return table.to_string();
}

std::string plan_text(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster,
                      const std::string& path) {
  const Nanoseconds total = predicted_run_ns(plan);
  const double samples = static_cast<double>(plan.num_steps) * plan.global_batch_size;
  return fmt::format(
      "{}: {} plan of {} steps of mini-batch {} on {} ranks, {} tokens per sample\n\n{}\n"
      "memory limit per rank [MiB]: {}\npredicted training time: {}, {:.1f} samples/s\n",
      path, plan.method, plan.num_steps, plan.global_batch_size, plan.world_size, plan.phases.front().tokens,
      phases_text(plan, profile), memory_limits(cluster, plan.memory_limited), format_duration(total),
      total > 0 ? samples * 1e9 / static_cast<double>(total) : 0.0);
}

std::string deadline_text(const DeadlinePlan& plan, const std::string& deadline) {
  if (plan.delay_steps + 1 >= plan.plan.num_steps) return fmt::format("within {} without freezing anything\n", deadline);
  const auto first = std::find_if(plan.plan.phases.begin(), plan.plan.phases.end(), [](const Phase& phase) { return phase.first_trainable_layer > 0; });
  if (first == plan.plan.phases.end()) return fmt::format("within {} without freezing anything\n", deadline);
  return fmt::format("within {} where the first freeze waits until step {} ({:.0f} % of the run, {} steps {} than forecast); {:.0f} % of all updates of blocks are still made\n", deadline,
                     first->from_step, 100.0 * first->from_step / plan.plan.num_steps, std::abs(plan.delay_steps), plan.delay_steps >= 0 ? "later" : "earlier",
                     100 * plan.trained_share);
}

std::string timely_freeze_text(const Phase& phase, const Profile& profile, const Cluster& cluster, const PlanOptions& options) {
  const TimelyFreeze none = timely_freeze_of(phase, profile, cluster, options, 0), some = timely_freeze_of(phase, profile, cluster, options, options.freeze.alpha);
  using enum Table::Align;
  Table table({{"stage", right}, {"mean ratio", right}, {"by micro-batch", left}});
  for (std::size_t stage = 0; stage < some.ratio.size(); ++stage) {
    double sum = 0;
    std::string each;
    for (const double one : some.ratio[stage]) {
      sum += one;
      each += fmt::format("{}{:.2f}", each.empty() ? "" : " ", one);
    }
    constexpr std::size_t kLongest = 60;
    if (each.size() > kLongest) each = each.substr(0, kLongest) + " ...";
    table.add_row({std::to_string(stage), fmt::format("{:.2f}", sum / static_cast<double>(some.ratio[stage].size())), each});
  }
  return fmt::format("\nweight gradients left out by TimelyFreeze's linear programme, at most {:.0f} % of a stage's:\n{}the pipeline takes {} instead of {} ({:.2f} times as fast), before reductions "
                     "and updates; train does not leave gradients out\n",
                     100 * options.freeze.alpha, table.to_string(), format_duration(some.makespan_ns), format_duration(none.makespan_ns),
                     static_cast<double>(none.makespan_ns) / static_cast<double>(std::max<Nanoseconds>(1, some.makespan_ns)));
}

int run_plan(PlanCommandOptions& options) {
  const std::string profile_content = read_text_file(options.profile);
  const std::string cluster_content = read_text_file(options.cluster);
  const Profile profile = profile_from_json(profile_content, options.profile);
  const Cluster cluster = cluster_from_json(cluster_content, options.cluster);
  options.plan.num_steps = steps_of(options, profile);
  options.plan.tokens = tokens_of(options, profile);
  options.plan.steps_per_epoch = steps_per_epoch_of(options, profile);
  options.plan.use_cache = options.cache == "auto";
  if (!options.recompute.empty()) options.plan.recompute = options.recompute;

  options.plan.pins = parse_pins(options.limits.pins, profile.model);
  apply_fixed(options.limits.fixed, options.plan);
  options.plan.forecast = parse_forecast(options.limits.forecast, profile.model, options.plan.num_steps, options.plan.freeze);

  std::string explanation;
  std::variant<AutoPlan, Infeasible> result = AutoPlan();
  const auto keep = [&](PlanResult made) {
    if (auto* none = std::get_if<Infeasible>(&made)) {
      result = std::move(*none);
    } else {
      std::get<AutoPlan>(result).plan = std::get<TrainingPlan>(std::move(made));
    }
  };
  if (!options.deadline.empty()) {
    const std::string& method = options.plan.method;
    if (method != "freeze-only" && !method.starts_with("pipetransformer")) throw UsageError(fmt::format("--deadline: needs a --method that freezes, such as pipetransformer, not {}", method));
    auto made = plan_for_deadline(profile, cluster, options.plan, parse_duration(options.deadline, "--deadline"));
    if (const auto* plan = std::get_if<DeadlinePlan>(&made)) explanation = deadline_text(*plan, options.deadline);
    if (auto* plan = std::get_if<DeadlinePlan>(&made)) keep(std::move(plan->plan));
    else keep(std::get<Infeasible>(std::move(made)));
  } else if (options.plan.method == "auto") {
    result = make_auto_plan(profile, cluster, options.plan);
  } else {
    ReplanObserver observe;
    if (options.explain) observe = [&](const ReplanRequest& request, const ReplanResult& considered) { explanation += explanation_of(request, considered, profile.model); };
    keep(make_plan(profile, cluster, options.plan, observe));
  }
  if (const auto* none = std::get_if<Infeasible>(&result)) {
    print_note(
        fmt::format("no {} plan fits: {}\nTry more ranks or a higher memory limit, another --method, or see with "
                    "--ignore-memory-limit what a larger device would do.",
                    options.plan.method, none->reason));
    return 1;
  }
  AutoPlan& answer = std::get<AutoPlan>(result);
  if (options.plan.method == "timelyfreeze") explanation += timely_freeze_text(answer.plan.phases.front(), profile, cluster, options.plan);
  if (options.plan.method != "auto") answer.lower_bound_ns = iteration_lower_bound_ns(profile, cluster, options.plan);
  TrainingPlan& plan = answer.plan;
  plan.provenance = provenance_of(options, profile, profile_content, cluster_content);
  const std::string json = to_json(plan);
  write_file_atomically(options.output, json);
  if (options.format == "json") {
    print_result(plan_answer_json(answer, json));
  } else {
    print_result(plan_text(plan, profile, cluster, options.output) + plan_answer_text(answer) + explanation +
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
  command->add_option("--profile", options->profile, "Profile of the model")->required()->type_name("FILE");
  command->add_option("--cluster", options->cluster, "What there is to run on")->required()->type_name("FILE");
  add_count_option(*command, "--global-batch", options->plan.global_batch_size,
                   "Samples per optimizer step, over all ranks")
      ->required();
  std::vector<std::string> methods = plan_methods();
  methods.insert(methods.begin(), "auto");
  auto* method = command
      ->add_option("--method", options->plan.method,
                   "auto: the best fixed layout; pipetransformer: the best of the whole run with freezing: when to change to fewer stages and more replicas, where to use "
                   "cached activations; data-parallel; static: the best fixed pipeline; exact: with the least bound, provably; freeze-only: the static plan with freezing. "
                   "As published: equal-split, pipedream, pipedream-2bw, ptd-p (Megatron), pipetransformer-published; pipetransformer-without-replicas: freed ranks stay idle; timelyfreeze: "
                   "the share of weight gradients to leave out, at most --freeze-alpha of a stage's")
      ->required()
      ->check(CLI::IsMember(methods).description(""))
      ->type_name("METHOD");
  command->add_option("-o,--output", options->output, "Plan to write")->required()->type_name("PLAN");
  auto* epochs = add_count_option(*command, "--epochs", options->epochs,
                                  "Length of the run, with the profile's number of samples");
  command->add_option("--steps", options->num_steps, "Length of the run in optimizer steps")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N")
      ->excludes(epochs);
  command->add_option("--tokens", options->tokens, "Padded length of a sample; default: the profile's workload")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
  command
      ->add_option("--partitioner", options->plan.partitioner,
                   "exact: slowest stage as fast as possible; pipetransformer-greedy: as published, by parameters")
      ->check(CLI::IsMember({"exact", "pipetransformer-greedy"}).description(""))
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--schedule", options->plan.schedule, "The only schedule to use: 1F1B or GPipe; default: the faster one")
      ->check(CLI::IsMember(runnable_schedule_names()).description(""))
      ->type_name("NAME");
  command->add_option("--pp", options->plan.pipeline_parallel_size, "Stages at the start, throughout in a plan that never changes; default: the best number")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("P");
  add_count_option(*command, "--tp", options->plan.tensor_parallel_size, "Tensor-parallel size, which the profile must have measured; such a plan can be simulated, not trained");
  command->add_option("--recompute", options->recompute,
                      "What a backward computes again instead of keeping it: attention, layers (of which only the inputs are kept) or stage (of which only its input is)")
      ->check(CLI::IsMember(recompute_modes()).description(""))
      ->type_name("WHAT");
  command->add_option("--cache", options->cache, "Activation cache: auto (where it pays) or off")
      ->check(CLI::IsMember({"auto", "off"}).description(""))
      ->type_name("WHEN")
      ->capture_default_str();
  add_cache_options(*command, options->plan.cache);
  command->add_option("--max-devices", options->plan.max_devices, "Ranks to use at most; the others stay idle")->check(CLI::Range(1, kLargestCount).description(""))->type_name("N");
  command->add_option("--pin", options->limits.pins, "Keep a layer, by name or number, on a stage; may be given several times")->type_name("LAYER=STAGE");
  command->add_option("--fix", options->limits.fixed, "Leave open only the rest: pp=P stages, tp=T tensor ranks, dp=D replicas, m=M micro-batches per replica; may be given several times")
      ->type_name("WHAT=N");
  command
      ->add_option("--forecast", options->limits.forecast, "What freezes when: cap (the rule that the freeze options shape), fixed:N,N,... (frozen layers after each decision), or a plan's or a run's file, such as executed_plan.json")
      ->type_name("WHAT")
      ->capture_default_str();
  command->add_option("--deadline", options->deadline, "Freeze as late as possible so that the run takes at most so long, such as 90min; the forecast is moved as a whole")
      ->type_name("TIME")
      ->needs(method);
  command->add_flag("--explain", options->explain, "Say what binds each stage, what each way to go on after a freeze would take, and when the cache pays");
  command->add_flag("--ignore-memory-limit", options->plan.ignore_memory_limit,
                    "Plan, and train, as if the ranks had memory without limit");
  add_freeze_options(*command, options->plan.freeze);
  add_format_option(*command, options->format);
  command->footer(
      "The freeze options shape the forecast of a pipetransformer plan. Exit code 1 if no plan fits.\n\n"
      "Example:\n  frostpipe plan --profile profile.json --cluster cluster.json --global-batch 64 --method "
      "pipetransformer "
      "-o elastic.json");
  return {command, [options] { return run_plan(*options); }};
}

}  // namespace frostpipe
