#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/local_ranks.h"
#include "cli/output.h"
#include "cli/plan_files.h"
#include "cli/progress.h"
#include "cli/rehearsal.h"
#include "cli/replanning.h"
#include "cli/run_tables.h"
#include "executor/execute.h"
#include "profiles/error.h"
#include "profiles/files.h"

namespace frostpipe {
namespace {

struct TrainCommandOptions {
  std::string plan, data, model, output;
  SourceOverrides sources;
  int epochs = 0;     // 0 = the plan's length
  int num_ranks = 0;  // 0 = the plan's world size
  std::string freeze = "plan";
  FreezeOptions freeze_options;
  RehearsalOptions rehearsal;
  TrainOptions train;
  std::string format;
};

int steps_per_epoch_of(const TrainCommandOptions& options, const TrainingPlan& plan) {
  const TrainOptions& train = options.train;
  const int samples = train.emulation ? train.emulation->profile.workload->num_samples
                                      : num_training_samples({options.data, train.test_data, train.held_out, train.seed});
  return std::max(1, (samples + plan.global_batch_size - 1) / plan.global_batch_size);
}

/// The plan's length in epochs of this data, at least one.
int epochs_of(const TrainCommandOptions& options, const TrainingPlan& plan, int steps_per_epoch) {
  if (options.epochs > 0) return options.epochs;
  return std::max(1, static_cast<int>(std::lround(static_cast<double>(plan.num_steps) / steps_per_epoch)));
}

void train_rank(const TrainOptions& train_options, const Replan& replan, const RankEnvironment& self) {
  if (self.world_size != train_options.plan.world_size) {
    throw InvalidInput("WORLD_SIZE", fmt::format("must be the plan's world size {}", train_options.plan.world_size),
                       std::to_string(self.world_size));
  }
  std::unique_ptr<ProgressDisplay> display;
  if (self.rank == 0) display = std::make_unique<ProgressDisplay>("train " + train_options.name);
  train(self, train_options, replan, [&](double fraction, const std::string& line) {
    if (display) display->show(fraction, line);
  });
}

/// Finds out before the training, not after it.
void require_writable(const std::filesystem::path& folder) {
  const std::filesystem::path probe = folder / ".frostpipe-probe";
  write_file_atomically(probe, "can this folder be written?\n");
  std::filesystem::remove(probe);
}

/// A rule that is none is a matter of usage.
FreezePolicy freeze_policy(const std::string& rule, const FreezeOptions& options) {
  try {
    return parse_freeze_policy(rule, options);
  } catch (const InvalidInput& error) {
    throw UsageError(error.what());
  }
}

std::filesystem::path model_folder(const TrainCommandOptions& options) {
  if (options.model.empty() && options.train.plan.provenance.model_path.empty()) {
    throw InvalidInput(fmt::format("{}: provenance.model_path: names no folder; give --model FOLDER", options.plan));
  }
  const std::filesystem::path folder = options.model.empty() ? path_in_plan(options.train.plan.provenance.model_path, options.plan)
                                                             : std::filesystem::path(options.model);
  if (std::filesystem::is_directory(folder)) return folder;
  throw InvalidInput(fmt::format("{}: must be the folder of a model; give --model FOLDER", folder.string()));
}

/// Everything that can be wrong with the input is found here, once, before any rank is started.
Replan prepare(TrainCommandOptions& options) {
  TrainOptions& train = options.train;
  const bool is_rehearsal = train.device == "emulated";
  train.freeze = freeze_policy(options.freeze, options.freeze_options);
  require_consistent(options.rehearsal, train, !options.data.empty());
  train.plan = load_plan(options.plan);
  if (train.name.empty()) train.name = run_name(train.plan.method);
  train.data = options.data;
  if (!is_rehearsal) train.model = model_folder(options);
  train.output = options.output.empty() ? std::filesystem::path("runs") / std::filesystem::path(options.plan).stem()
                                        : std::filesystem::path(options.output);
  if (!std::getenv("RANK")) require_writable(train.output);
  if (train.plan.cache.disk_bytes > 0) {
    if (train.cache_folder.empty()) throw InvalidInput(fmt::format("{}: cache.disk_bytes: needs a folder; give --cache-dir FOLDER", options.plan));
    if (!std::getenv("RANK")) require_writable(train.cache_folder);
  }
  if (options.num_ranks == 0) options.num_ranks = train.plan.world_size;
  train.plan_source = options.plan;
  if (is_rehearsal || train.num_nodes > 0 || train.plan.memory_limited || replans(train)) {
    train.cluster = load_cluster_of(train.plan, options.plan, options.sources);
    form_nodes(*train.cluster, train.num_nodes);
  }
  if (is_rehearsal) train.emulation = emulation_of(options.rehearsal, load_profile_of(train.plan, options.plan, options.sources), train.plan);
  if (!std::getenv("RANK")) check_inputs(train);
  const int steps_per_epoch = steps_per_epoch_of(options, train.plan);
  train.epochs = epochs_of(options, train.plan, steps_per_epoch);
  if (!replans(train)) return {};
  return make_replan(train, load_profile_of(train.plan, options.plan, options.sources), *train.cluster, steps_per_epoch);
}

void print_run(const TrainCommandOptions& options) {
  const std::filesystem::path path = options.train.output / "summary.json";
  const std::string json = read_text_file(path);
  print_result(options.format == "json" ? json
                                        : run_text(run_from_json(json, path.string()), options.train.output.string()));
}

int run_train(TrainCommandOptions& options) {
  const Replan replan = prepare(options);
  if (options.num_ranks != options.train.plan.world_size && !std::getenv("RANK")) {
    throw InvalidInput("--nproc-per-node",
                       fmt::format("must be {}, the world size of {} (several machines: start the ranks with torchrun)",
                                   options.train.plan.world_size, options.plan),
                       std::to_string(options.num_ranks));
  }
  return run_on_ranks({.num_ranks = options.num_ranks,
                       .work = [&](const RankEnvironment& self) { train_rank(options.train, replan, self); },
                       .print_result = [&] { print_run(options); }});
}

void add_learning_options(CLI::App& command, TrainOptions& train) {
  const auto add_number = [&](const std::string& name, double& value, double low, double high,
                              const std::string& meaning) {
    command.add_option(name, value, meaning)
        ->check(CLI::Range(low, high).description(""))
        ->type_name("X")
        ->capture_default_str();
  };
  add_number("--learning-rate", train.learning_rate, 0, 1e6,
             "Highest learning rate; a short warm-up, then linear decay to 0");
  add_number("--weight-decay", train.weight_decay, 0, 1e6, "AdamW's, for matrices");
  add_number("--gradient-clip", train.gradient_clip, 0, 1e12, "Largest norm of all gradients together; 0 = off");
  add_number("--held-out", train.held_out, 0, 0.99, "Fraction of the data to test on");
  add_count_option(command, "--max-tokens", train.max_tokens, "Longer texts are cut")->check(CLI::Range(2, 1 << 20).description(""));
}

}  // namespace

Command add_train_command(CLI::App& app) {
  const auto options = std::make_shared<TrainCommandOptions>();
  CLI::App* command = app.add_subcommand("train", "Train a model on your own text as a plan says");
  command->add_option("PLAN", options->plan, "Plan to follow")->required()->type_name("");
  command
      ->add_option("--data", options->data, "Text to train and test on: header text<TAB>label, any strings as labels")
      ->type_name("TSV");
  command->add_option("--test-data", options->train.test_data, "Test on this file instead of a part of --data")->type_name("TSV");
  command
      ->add_option("--model", options->model, "Hugging Face folder to start from; default: the one that was profiled")
      ->type_name("FOLDER");
  command
      ->add_option("-o,--output", options->output,
                   "Folder for summary.json, executed_plan.json, trace.json, model/; default: runs/NAME-OF-PLAN")
      ->type_name("RUN");
  command
      ->add_option("--epochs", options->epochs, "Default: the plan's number of steps in epochs of this data, rounded")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
  add_seed_option(*command, options->train.seed);
  command
      ->add_option(
          "--freeze", options->freeze,
          "Who decides what freezes: plan (its phases), paper (gradient norms with the cap), cap (the cap alone), "
          "adaptive (smoothed gradient norms, at any step), fixed:3,5,6 (so many layers at each decision)")
      ->type_name("RULE")
      ->capture_default_str();
  add_freeze_options(*command, options->freeze_options);
  add_learning_options(*command, options->train);
  command
      ->add_option("--nproc-per-node", options->num_ranks,
                   "Ranks to start; default: the plan's world size, which it must equal")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
  add_rehearsal_options(*command, options->rehearsal, options->train);
  command
      ->add_option("--name", options->train.name, "Name of the run; default: data_parallel, static_pipeline or elastic")
      ->type_name("NAME");
  command
      ->add_option("--cache-dir", options->train.cache_folder, "Folder for cached activations that memory does not hold (plan --cache-disk)")
      ->type_name("FOLDER");
  command->add_option("--profile", options->sources.profile, "Instead of the profile that the plan names")
      ->type_name("FILE");
  command->add_option("--cluster", options->sources.cluster, "Instead of the cluster that the plan names")
      ->type_name("FILE");
  add_format_option(*command, options->format);
  command->footer(
      "Under torchrun --no-python it uses the ranks that torchrun has started.\n\n"
      "Example:\n  frostpipe train elastic.json --data my.tsv --freeze paper -o runs/mine");
  return {command, [options] { return run_train(*options); }};
}

}  // namespace frostpipe
