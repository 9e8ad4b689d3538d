#include "cli/plans/plan_options.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "base/units.h"
#include "cli/shared/common_options.h"
#include "cli/shared/help_format.h"
#include "plan/recompute.h"
#include "plan/schedule_rules.h"
#include "planner/auto_zero_bubble_plan.h"
#include "planner/make_plan.h"
#include "profiles/device_type.h"

namespace frostpipe {
namespace {

std::vector<std::string> names_for_plans() {
  std::vector<std::string> names = schedule_names();
  names.emplace_back(kAutoZeroBubble);
  return names;
}

void add_sources(CLI::App& command, PlanCommandOptions& options) {
  command
      .add_option("--profile", options.profiles,
                  "Profile of the model. For unequal devices, give it once for each type")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command.add_option("--cluster", options.cluster, "Devices to run on, and their links")->type_name("FILE");
  add_estimated_source(command, options.estimated)
      ->excludes(command.get_option("--profile"))
      ->excludes(command.get_option("--cluster"));
  options.plan.global_batch_size = 0;
  command
      .add_option("--global-batch", options.plan.global_batch_size,
                  "Number of samples in a mini-batch, over all ranks. Default: 128 with --model, else required")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
}

/// Returns "", or if another command makes plans by this method, a sentence that names it.
std::string check_subject(const std::string& method) {
  if (method.starts_with("ppipe")) return "`frostpipe serving plan` makes plans by " + method;
  if (method.starts_with("mtrain")) return "`frostpipe nets plan` makes plans by " + method;
  return "";
}

CLI::Option* add_method(CLI::App& command, PlanCommandOptions& options) {
  std::vector<std::string> methods = {"auto"};
  for (const PlanMethod method : plan_methods()) methods.emplace_back(to_string(method));
  return command
      .add_option("--method", options.method,
                  "auto finds the best fixed layout. pipetransformer finds the best run with freezing: when to change "
                  "to fewer stages and more replicas, and where to use cached activations. data-parallel uses one "
                  "stage. static finds the best fixed pipeline. exact finds the layout with the least bound, provably. "
                  "freeze-only is static with freezing. Methods as published: equal-split, pipedream, pipedream-2bw, "
                  "ptd-p (Megatron), terapipe (token slices of a causal model), timelyfreeze (which leaves out weight "
                  "gradients), pipetransformer-published, pipetransformer-without-replicas (freed ranks stay idle)")
      ->check(CLI::Validator(check_subject, ""))
      ->check(CLI::IsMember(methods).description(""))
      ->type_name("METHOD")
      ->capture_default_str();
}

void add_length(CLI::App& command, PlanCommandOptions& options) {
  auto* epochs = add_count_option(command, "--epochs", options.epochs,
                                  "Length of the run, in passes over the data of the profile");
  command.add_option("--steps", options.num_steps, "Length of the run in optimizer steps, instead of --epochs")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N")
      ->excludes(epochs);
  command
      .add_option("--tokens", options.tokens, "Mean number of tokens in a sample. Default: that of the profile's data")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
}

void add_layout(CLI::App& command, PlanCommandOptions& options) {
  command
      .add_option("--schedule", options.plan.schedule,
                  "The only schedule to use. Several stages per rank (--fix v=2) need Interleaved1F1B, LoopedBFS, "
                  "InterleavedZeroBubble, ZBVZeroBubble or DualPipeV; token slices of a causal model (--fix slices=4) "
                  "need TeraPipe or Seq1F1B. PipeDream-2BW updates weights a step late. Default: the fastest of those "
                  "that do not delay updates")
      ->transform(CLI::IsMember(names_for_plans(), CLI::ignore_case).description(""))
      ->type_name("NAME");
  command
      .add_option(
          "--fix", options.limits.fixed,
          "Part of the layout that the planner must take: pp=P stages (with v=V, ranks), tp=T tensor ranks, "
          "dp=D replicas, m=M micro-batches per replica, v=V stages per rank, slices=N equal token slices. Give "
          "it once for each part")
      ->check(CLI::Validator(check_fixed, ""))
      ->type_name("WHAT=N");
  command
      .add_option("--pin", options.limits.pins,
                  "Layer, by name or number, that must be on a stage. Give it once for each layer. train --freeze, "
                  "which plans again, does not keep it")
      ->type_name("LAYER=STAGE");
  command.add_flag(
      "--sequence-parallel", options.plan.sequence_parallel,
      "Let tensor ranks split activations by tokens between matrices, which saves memory. A --profile must "
      "have measured it (profile --sequence-parallel)");
  command
      .add_option("--recompute", options.recompute,
                  "Activations that the backward pass recomputes instead of keeping them: attention, layers (keeps "
                  "their inputs) "
                  "or stage (keeps its input)")
      ->check(CLI::IsMember(recompute_words()).description(""))
      ->type_name("WHAT");
}

/// Reads "off", or a size of host memory. Returns "" or why it is neither.
std::string read_cache(const std::string& text, PlanOptions& options) {
  if (text == "off") {
    options.use_cache = false;
    return "";
  }
  if (const std::string why = check_bytes(text); !why.empty()) return why + " (or off)";
  options.cache.memory_bytes = parse_bytes(text, "--cache");
  return "";
}

void add_cache(CLI::App& command, PlanCommandOptions& options) {
  const auto check = [](const std::string& text) {
    PlanOptions unused;
    return read_cache(text, unused);
  };
  command
      .add_option_function<std::string>(
          "--cache", [&options](const std::string& text) { read_cache(text, options.plan); },
          "Host memory per node for activations of frozen layers, which are kept where that pays; off keeps none")
      ->check(CLI::Validator(check, ""))
      ->type_name("SIZE|off")
      ->default_str(format_bytes(options.plan.cache.memory_bytes));
  command
      .add_option_function<std::string>(
          "--cache-disk",
          [&options](const std::string& text) { options.plan.cache.disk_bytes = parse_bytes(text, "--cache-disk"); },
          "Disk space per node for cached activations that memory does not hold. It needs train --cache-dir. Default: "
          "0")
      ->check(CLI::Validator(check_bytes, ""))
      ->type_name("SIZE");
  add_dtype_option(
      command, "--cache-dtype", [&options](DType dtype) { options.plan.cache.dtype = dtype; },
      "Type of cached values: float32, or bfloat16, which takes half as much and rounds")
      ->type_name("DTYPE")
      ->default_str(std::string(to_string(options.plan.cache.dtype)));
}

void add_devices(CLI::App& command, PlanCommandOptions& options) {
  command
      .add_option("--threads-per-rank", options.threads_per_rank,
                  "Number of threads that a rank computes with on the CPU, one that the profile has measured. Default: "
                  "the fastest for auto and pipetransformer, if no part of the layout is fixed; else 1")
      ->check(CLI::Range(1, kMaxThreads).description(""))
      ->type_name("N");
  command.add_option("--max-devices", options.plan.max_devices, "Largest number of ranks to use. Default: all")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
  command
      .add_option(
          "--memory-reserve", options.memory_reserve,
          "Fraction of every memory limit to leave free, because predictions are not exact; also when train re-plans")
      ->check(finite_range(0, 0.9))
      ->type_name("X")
      ->capture_default_str();
  command.add_flag("--ignore-memory-limit", options.plan.ignore_memory_limit,
                   "Plan, and train, as if the ranks had memory without limit");
}

void add_freezing(CLI::App& command, PlanCommandOptions& options, CLI::Option* method) {
  command
      .add_option("--forecast", options.limits.forecast,
                  "Freezes that the plan expects: cap (the rule with the parameters of --freeze-set), fixed:N,N,... "
                  "(number of frozen blocks after each decision), a plan's file, or a run's folder")
      ->type_name("WHAT")
      ->capture_default_str();
  command
      .add_option("--deadline", options.deadline,
                  "Freeze as late as possible so that the run takes at most this long, such as 90min")
      ->check(CLI::Validator(check_duration, ""))
      ->type_name("TIME")
      ->needs(method);
  add_freeze_options(command, options.plan.freeze);
}

}  // namespace

void add_plan_options(CLI::App& command, PlanCommandOptions& options) {
  options.plan.cache.memory_bytes = Bytes{1} << 30;
  add_sources(command, options);
  CLI::Option* const method = add_method(command, options);
  command
      .add_option("-o,--output", options.output,
                  "Plan to write; an estimated profile and cluster go beside it. Default: the plan is only shown")
      ->type_name("PLAN");
  add_length(command, options);
  add_layout(command, options);
  add_cache(command, options);
  add_devices(command, options);
  add_freezing(command, options, method);
  command.add_flag("--explain", options.explain,
                   "Also say what binds each stage, what each way to go on after a freeze would take, and when the "
                   "cache pays");
  add_format_option(command, options.format);
  show_first(command,
             {"--global-batch", "--profile", "--cluster", "--model", "--hardware", "--nodes", "--output", "--method",
              "--epochs", "--schedule", "--fix", "--explain", "--ignore-memory-limit", "--format"});
  command.footer(
      "The exit code is 1 if no plan fits.\n\n"
      "Examples:\n  frostpipe plan --profile profile.json --cluster cluster.json --global-batch 64 --method "
      "pipetransformer -o elastic.json\n"
      "  frostpipe plan --model llama-3-8b --hardware H100 --nodes 2 --global-batch 128");
}

}  // namespace frostpipe
