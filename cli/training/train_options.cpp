#include "cli/training/train_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "cli/shared/common_options.h"
#include "cli/shared/usage_error.h"
#include "profiles/device_type.h"

namespace frostpipe {
namespace {

/// Checkpoints, lost ranks, and freezes that cost too much.
void add_safety_options(CLI::App& command, TrainCommandOptions& options) {
  CheckpointPolicy& checkpoints = options.train.checkpoints;
  checkpoints.every_minutes = 10;
  options.train.resume = "auto";
  command
      .add_option("--checkpoint-steps", checkpoints.every_steps,
                  "Write a checkpoint every N steps, in the background, to RUN/checkpoints; 0 = not by steps")
      ->check(CLI::Range(0, kLargestCount).description(""))
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--checkpoint-minutes", checkpoints.every_minutes, "Write one every X minutes; 0 = not by time")
      ->check(finite_range(0, 1e6))
      ->type_name("X")
      ->capture_default_str();
  command.add_option("--keep-checkpoints", checkpoints.keep, "The newest N stay")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--resume", options.train.resume,
                  "auto: go on with the run in RUN if it has not ended; no: start over; else from this checkpoint, or "
                  "the newest in this folder. The plan may be another one, "
                  "for other ranks, schedules or frozen layers")
      ->type_name("WHAT")
      ->capture_default_str();
  command.add_flag("--overwrite", options.overwrite,
                   "Start over in RUN if a run there has ended; without it that is refused");
  command.add_option("--spares", options.num_spares, "Processes that wait to take a lost rank's place")
      ->check(CLI::Range(0, 1024).description(""))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--max-restarts", options.max_restarts,
                  "How often the job goes on after a loss: with a spare, or on fewer ranks; 0 = a loss ends it")
      ->check(CLI::Range(0, kLargestCount).description(""))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option(
          "--on-loss", options.on_loss,
          "After a loss without a spare: replan (a new layout for the ranks that are left) or reroute (the other "
          "replicas of the lost rank's layers run its micro-batches until the layout changes anyway, where the "
          "simulator expects that to take less time; which, and why, is said)")
      ->transform(CLI::CheckedTransformer(
                      std::map<std::string, OnLoss>{{"replan", OnLoss::replan}, {"reroute", OnLoss::reroute}})
                      .description(""))
      ->type_name("WHAT")
      ->default_str("replan");
  command
      .add_option("--accuracy-guard", options.accuracy_tolerance,
                  "Take a freeze back, and freeze more slowly from then on, if the test accuracy falls by more than X "
                  "per cent after it")
      ->check(finite_range(0, 100))
      ->type_name("X");
}

void add_learning_options(CLI::App& command, TrainOptions& train) {
  const auto add_number = [&](const std::string& name, double& value, double low, double high,
                              const std::string& meaning) {
    command.add_option(name, value, meaning)->check(finite_range(low, high))->type_name("X")->capture_default_str();
  };
  add_number("--learning-rate", train.learning_rate, 0, 1e6,
             "Highest learning rate; a short warm-up, then decay to 0 (nets: 0.1)");
  add_number("--weight-decay", train.weight_decay, 0, 1e6, "AdamW's, for matrices (nets: SGD's, 0.0005, for all)");
  add_number("--gradient-clip", train.gradient_clip, 0, 1e12, "Largest norm of all gradients together; 0 = off");
  add_number("--held-out", train.held_out, 0, 0.99, "Fraction of the data to test on");
  add_number("--learning-rate-warm-up", train.learning_rate_warm_up, 0, 1,
             "Fraction of the steps in which the learning rate rises");
  command.add_option("--decay", train.decay, "How it falls then: linear or cosine")
      ->check(CLI::IsMember({"linear", "cosine"}).description(""))
      ->type_name("CURVE")
      ->capture_default_str();
  add_number("--dropout", train.dropout, 0, 0.99,
             "Fraction of values to drop in layers that train; the same ones in every layout");
  command
      .add_option("--group-by-length", train.group_by_length,
                  "Mini-batches of samples of similar length: an epoch's order is sorted within N neighbouring "
                  "mini-batches, whose order is random. They then consist of other samples than without")
      ->check(CLI::Range(2, kLargestCount).description(""))
      ->type_name("N");
  add_number("--label-smoothing", train.label_smoothing, 0, 0.99,
             "Part of a target that is spread over all classes or tokens");
  command
      .add_option("--save-dtype", train.save_dtype, "Type of the saved model's weights: float32, bfloat16 or float16")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}).description(""))
      ->type_name("TYPE")
      ->capture_default_str();
  add_count_option(command, "--crop-padding", train.samples.crop_padding,
                   "Shift pictures to train on at random by up to N pixels")
      ->check(CLI::Range(0, 1024).description(""));
  command.add_flag("--flip", train.samples.flip, "Mirror every other picture to train on");
}

/// What is trained, on what, for how long, and where to.
void add_inputs(CLI::App& command, TrainCommandOptions& options) {
  command.add_option("PLAN", options.plan, "Plan to follow")->required()->type_name("");
  command
      .add_option(
          "--data", options.data,
          "What to train and test on: text and labels (TSV, CSV or JSON Lines with the columns text and "
          "label), words with labels (.conll, or tokens and ner_tags), questions (SQuAD's .json), for a "
          "causal model chats (messages), prompts (prompt and "
          "completion, or instruction, input and output) or text alone (text; .txt), pictures (CIFAR's .bin, or "
          "a folder with a sub-folder of JPEG and PNG files per label)")
      ->type_name("DATA");
  command.add_option("--test-data", options.train.test_data, "Test on this instead of a part of --data")
      ->type_name("DATA");
  command.add_option("--model", options.model, "Hugging Face folder to start from; default: the one that was profiled")
      ->type_name("FOLDER");
  command
      .add_option("-o,--output", options.output,
                  "Folder for summary.json, executed_plan.json, trace.json, model/; default: runs/NAME-OF-PLAN")
      ->type_name("RUN");
  command
      .add_option("--epochs", options.epochs,
                  "Only checked: a plan's steps are the run's, and must be N epochs of this data. plan --epochs "
                  "makes a plan of another length. Of a plan of operators: the run's length; default: 1")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
  command
      .add_option("--schedule-file", options.schedule_file,
                  "Follow this CSV file (any that schedule --check accepts) in place of the plan's schedules, whose "
                  "ranks, stages and micro-batches it must have")
      ->type_name("FILE");
  add_seed_option(command, options.train.seed);
}

void add_freeze_rule(CLI::App& command, TrainCommandOptions& options) {
  command
      .add_option(
          "--freeze", options.freeze,
          "Who decides what freezes: plan (its phases), paper (gradient norms with the cap), cap (the cap alone), "
          "adaptive (smoothed gradient norms, at any step), fixed:3,5,6 (that many blocks after each decision)")
      ->type_name("RULE")
      ->capture_default_str();
}

void add_ranks(CLI::App& command, TrainCommandOptions& options) {
  command
      .add_option("--threads-per-rank", options.train.threads_per_rank,
                  "Compute threads of each rank on the CPU; default: as planned")
      ->check(CLI::Range(1, kMostThreads).description(""))
      ->type_name("N");
  command
      .add_option("--nproc-per-node", options.ranks_per_node,
                  "Ranks to start, with --nodes for each node; in all the plan's world size, which is the default")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
  command.add_flag("--cuda-graphs", options.train.cuda_graphs,
                   "On CUDA: capture an iteration's kernels and replay them in those that follow, which frees the host "
                   "from issuing each. Pays where samples are as long as those of the iteration before");
}

void add_name_and_files(CLI::App& command, TrainCommandOptions& options) {
  command
      .add_option("--name", options.train.name, "Name of the run; default: data_parallel, static_pipeline or elastic")
      ->type_name("NAME");
  command
      .add_option("--cache-dir", options.train.cache_folder,
                  "Folder for cached activations that memory does not hold (plan --cache-disk)")
      ->type_name("FOLDER");
  command.add_option("--profile", options.sources.profile, "Instead of the profile that the plan names")
      ->type_name("FILE");
  command.add_option("--cluster", options.sources.cluster, "Instead of the cluster that the plan names")
      ->type_name("FILE");
}

}  // namespace

void add_train_options(CLI::App& command, TrainCommandOptions& options) {
  add_inputs(command, options);
  add_freeze_rule(command, options);
  add_freeze_options(command, options.freeze_options);
  add_learning_options(command, options.train);
  add_sample_options(command, options.samples);
  add_record_options(command, options.train.samples);
  add_ranks(command, options);
  add_interface_option(command, options.interface);
  add_safety_options(command, options);
  add_rehearsal_options(command, options.rehearsal, options.train);
  add_name_and_files(command, options);
  add_format_option(command, options.format);
  command.footer(
      "Under torchrun --no-python, srun or mpirun it uses the ranks that they have started.\n\n"
      "Example:\n  frostpipe train elastic.json --data my.tsv --freeze paper -o runs/mine\n"
      "  frostpipe train static.json --data my.tsv --schedule-file my.csv -o runs/by-file");
}

FreezePolicy freeze_policy_of(const TrainCommandOptions& options) {
  try {
    return parse_freeze_policy(options.freeze, options.freeze_options);
  } catch (const InvalidInput& error) {  // a rule that is none is a matter of usage
    throw UsageError(error.what());
  }
}

void require_consistent(TrainCommandOptions& options) {
  options.train.freeze = freeze_policy_of(options);
  require_consistent(options.rehearsal, options.train, !options.data.empty());
}

void require_used_options(const TrainCommandOptions& options, const CLI::App& command) {
  if (options.freeze != "plan") return;
  for (const char* const name : {"--freeze-warm-up", "--freeze-interval", "--freeze-alpha", "--freeze-threshold"})
    if (command.count(name) > 0)
      throw UsageError(
          fmt::format("{}: is for a rule that decides in the run (--freeze cap, ...); the plan's freezes "
                      "are as it was made",
                      name));
}

void take_run_folder(TrainCommandOptions& options) {
  const std::filesystem::path& folder = options.train.output;
  options.lock.emplace(folder);
  if (!options.overwrite && std::filesystem::exists(folder / "summary.json")) {
    throw InvalidInput(fmt::format(
        "{}: holds a run that has ended. Give another folder (-o), or start over in this one with --overwrite",
        folder.string()));
  }
}

}  // namespace frostpipe
