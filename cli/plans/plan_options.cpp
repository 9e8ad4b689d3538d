#include "cli/plans/plan_options.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "cli/shared/common_options.h"
#include "plan/recompute.h"
#include "plan/schedule_rules.h"
#include "planner/auto_zero_bubble_plan.h"
#include "planner/make_plan.h"
#include "profiles/device_type.h"
#include "profiles/estimates/known_models.h"

namespace frostpipe {
namespace {

std::vector<std::string> names_for_plans() {
  std::vector<std::string> names = plan_schedule_names();
  names.emplace_back(kAutoZeroBubble);
  return names;
}

/// What is planned for.
void add_sources(CLI::App& command, PlanCommandOptions& options) {
  CLI::Option* profile = command
                             .add_option("--profile", options.profiles,
                                         "Profile of the model; to serve several, or on unequal devices, several times")
                             ->type_name("FILE")
                             ->allow_extra_args(false);
  CLI::Option* model = command
                           .add_option("--model", options.model,
                                       "In place of a profile: an estimate from counted operations, written beside "
                                       "the plan, of a Hugging Face config.json or its folder, or of " +
                                           known_model_names())
                           ->type_name("NAME")
                           ->excludes(profile);
  command
      .add_option(
          "--hardware", options.hardware,
          "With --model: RTX5000, RTX2080Ti, V100, A100, GH200, H100, H200 or a file; default: 8 TFLOP/s devices")
      ->type_name("NAME")
      ->needs(model);
  command.add_option("--cluster", options.cluster, "What there is to run on")->required()->type_name("FILE");
  options.plan.global_batch_size = 0;
  command
      .add_option("--global-batch", options.plan.global_batch_size,
                  "Samples per optimizer step, over all ranks; needed for every plan of training")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
}

CLI::Option* add_method(CLI::App& command, PlanCommandOptions& options) {
  std::vector<std::string> methods = {"auto"};
  for (const PlanMethod method : plan_methods()) methods.emplace_back(to_string(method));
  for (const std::string_view method : {"ppipe", "ppipe-np", "ppipe-dart", "mtrain", "mtrain-single",
                                        "mtrain-data-parallel", "mtrain-layer-wise", "mtrain-pipeline"})
    methods.emplace_back(method);
  return command
      .add_option(
          "--method", options.method,
          "auto: the best fixed layout; pipetransformer: the best of the whole run with freezing: when to change "
          "to fewer stages and more replicas, where to use "
          "cached activations; data-parallel; static: the best fixed pipeline; exact: with the least bound, "
          "provably; freeze-only: the static plan with freezing. "
          "As published: equal-split, pipedream, pipedream-2bw, ptd-p (Megatron), terapipe (token slices of a causal "
          "model), pipetransformer-published; "
          "pipetransformer-without-replicas: freed ranks stay idle; timelyfreeze: "
          "the share of weight gradients to leave out, at most --freeze-alpha of a stage's. "
          "To serve models: ppipe (pipelines over pools of unequal devices), ppipe-np and ppipe-dart (its baselines). "
          "To train nets with batch norm exactly on unequal devices, operator by operator: mtrain; its baselines "
          "mtrain-single, mtrain-data-parallel, mtrain-layer-wise and mtrain-pipeline")
      ->check(CLI::IsMember(methods).description(""))
      ->type_name("METHOD")
      ->capture_default_str();
}

void add_length(CLI::App& command, PlanCommandOptions& options) {
  auto* epochs =
      add_count_option(command, "--epochs", options.epochs, "Length of the run, with the profile's number of samples");
  command.add_option("--steps", options.num_steps, "Length of the run in optimizer steps")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N")
      ->excludes(epochs);
  command
      .add_option("--tokens", options.tokens,
                  "Mean tokens of a sample, or tokens of every request; default: the profile's workload")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
}

void add_layout(CLI::App& command, PlanCommandOptions& options) {
  command
      .add_option("--partitioner", options.partitioner,
                  "exact: slowest stage as fast as possible; pipetransformer-greedy: as published, by parameters")
      ->check(CLI::IsMember({"exact", "pipetransformer-greedy"}).description(""))
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option(
          "--schedule", options.plan.schedule,
          "The only schedule to use; default: the fastest of those with the same updates. With several stages per rank "
          "(--fix v=2): Interleaved1F1B, LoopedBFS, InterleavedZeroBubble, ZBVZeroBubble, DualPipeV; with token "
          "slices of a causal model (--fix slices=4): TeraPipe, Seq1F1B. AutoZeroBubble is made for the phase's costs. "
          "PipeDream-2BW changes what the optimizer does: it updates a step late")
      ->check(CLI::IsMember(names_for_plans()).description(""))
      ->type_name("NAME");
  command
      .add_option("--pp", options.plan.pipeline_parallel_size,
                  "Stages at the start, throughout in a plan that never changes; default: the best number")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("P");
  add_count_option(command, "--tp", options.plan.tensor_parallel_size,
                   "Tensor-parallel size, which the profile must have measured (auto: any, unless given)")
      ->each([&](const std::string&) { options.plan.any_tensor_parallel_size = false; });
  command.add_flag("--sequence-parallel", options.plan.sequence_parallel,
                   "Tensor ranks split activations between matrices by tokens, which saves memory; the profile must "
                   "have measured that (profile --sequence-parallel)");
  command
      .add_option("--recompute", options.recompute,
                  "What a backward computes again instead of keeping it: attention, layers (of which only the inputs "
                  "are kept) or stage (of which only its input is)")
      ->check(CLI::IsMember(recompute_words()).description(""))
      ->type_name("WHAT");
}

void add_cache(CLI::App& command, PlanCommandOptions& options) {
  command.add_option("--cache", options.cache, "Activation cache: auto (where it pays) or off")
      ->check(CLI::IsMember({"auto", "off"}).description(""))
      ->type_name("WHEN")
      ->capture_default_str();
  add_cache_options(command, options.plan.cache);
}

void add_devices(CLI::App& command, PlanCommandOptions& options) {
  command
      .add_option("--threads-per-rank", options.threads_per_rank,
                  "Compute threads of a rank on the CPU, as measured: the cluster's devices in groups of that many; "
                  "default: the fastest (auto, pipetransformer, where no part of the layout is given), or 1")
      ->check(CLI::Range(1, kMostThreads).description(""))
      ->type_name("N");
  command.add_option("--max-devices", options.plan.max_devices, "Ranks to use at most; the others stay idle")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
}

void add_limits(CLI::App& command, PlanCommandOptions& options, CLI::Option* method) {
  command
      .add_option("--pin", options.limits.pins,
                  "Keep a layer, by name or number, on a stage; may be given several times. The plan keeps it; train "
                  "--freeze, which re-plans, does not know of it")
      ->type_name("LAYER=STAGE");
  command
      .add_option(
          "--fix", options.limits.fixed,
          "Leave open only the rest: pp=P stages (of v=V per rank: ranks), tp=T tensor ranks, dp=D replicas, m=M "
          "micro-batches per replica, v=V stages per rank, slices=N equal token slices; may be given several times")
      ->check(CLI::Validator(check_fixed, ""))
      ->type_name("WHAT=N");
  command
      .add_option("--forecast", options.limits.forecast,
                  "What freezes when: cap (the rule that the freeze options shape), fixed:N,N,... (frozen blocks after "
                  "each decision), or a plan's or a run's file, such as executed_plan.json")
      ->type_name("WHAT")
      ->capture_default_str();
  command
      .add_option("--deadline", options.deadline,
                  "Freeze as late as possible so that the run takes at most this long, such as 90min; the forecast is "
                  "moved as a whole")
      ->check(CLI::Validator(check_duration, ""))
      ->type_name("TIME")
      ->needs(method);
}

void add_memory(CLI::App& command, PlanCommandOptions& options) {
  command.add_flag(
      "--explain", options.explain,
      "Say what binds each stage, what each way to go on after a freeze would take, and when the cache pays");
  command
      .add_option("--memory-reserve", options.memory_reserve,
                  "Share of every memory limit that the plan leaves free for what predictions do not know")
      ->check(finite_range(0, 0.9))
      ->type_name("X")
      ->capture_default_str();
  command.add_flag("--ignore-memory-limit", options.plan.ignore_memory_limit,
                   "Plan, and train, as if the ranks had memory without limit");
}

}  // namespace

void add_plan_options(CLI::App& command, PlanCommandOptions& options) {
  options.plan.cache.memory_bytes = Bytes{1} << 30;
  add_sources(command, options);
  CLI::Option* const method = add_method(command, options);
  command.add_option("-o,--output", options.output, "Plan to write")->required()->type_name("PLAN");
  add_length(command, options);
  add_layout(command, options);
  add_cache(command, options);
  add_devices(command, options);
  add_limits(command, options, method);
  add_memory(command, options);
  add_freeze_options(command, options.plan.freeze);
  add_format_option(command, options.format);
  command.footer(
      "The freeze options shape the forecast of a pipetransformer plan. Exit code 1 if no plan fits.\n\n"
      "Example:\n  frostpipe plan --profile profile.json --cluster cluster.json --global-batch 64 --method "
      "pipetransformer -o elastic.json\n"
      "  frostpipe plan --method ppipe --profile a100.json --profile v100.json --cluster mixed.json --slo 100ms "
      "-o serving.json\n"
      "  frostpipe plan --method mtrain --profile operators.json --cluster mixed.json --explain -o mtrain.json");
}

}  // namespace frostpipe
