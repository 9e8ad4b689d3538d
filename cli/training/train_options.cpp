#include "cli/training/train_options.h"

#include <CLI/CLI.hpp>
#include <map>

#include "base/error.h"
#include "cli/shared/common_options.h"
#include "cli/shared/help_format.h"
#include "cli/shared/usage_error.h"
#include "profiles/device_type.h"

namespace frostpipe {
namespace {

void add_inputs(CLI::App& command, TrainCommandOptions& options) {
  command
      .add_option(
          "--data", options.data,
          "Data to train and test on. Texts with labels: TSV, CSV or JSON Lines with the columns text and label. "
          "Words with labels: .conll, or tokens and ner_tags. Questions: SQuAD's .json. Chats: "
          "messages, or conversations. Prompts: prompt and completion, or instruction, "
          "input and output. Text alone: text, or .txt. "
          "Pictures: CIFAR's .bin, or a folder per label")
      ->type_name("DATA");
  command
      .add_option("--model", options.model,
                  "Hugging Face folder of the model to start from. Default: the one that was profiled")
      ->type_name("FOLDER");
  add_record_options(command, options.train.samples);
}

void add_freezing(CLI::App& command, TrainCommandOptions& options) {
  CLI::Option* const rule =
      command
          .add_option(
              "--freeze", options.freeze,
              "Rule that decides when layers freeze: plan (the plan's phases), paper (gradient norms, and at most the "
              "cap), cap (the cap alone), adaptive (smoothed gradient norms, at any step), or fixed:3,5,6 (so "
              "many blocks after each decision)")
          ->type_name("RULE")
          ->capture_default_str();
  add_freeze_options(command, options.freeze_options);
  command.get_option("--freeze-set")->needs(rule);
}

void add_learning(CLI::App& command, TrainOptions& train) {
  const auto add_number = [&](const std::string& name, double& value, double most, const std::string& meaning) {
    command.add_option(name, value, meaning)->check(finite_range(0, most))->type_name("X")->capture_default_str();
  };
  add_number("--gradient-clip", train.gradient_clip, 1e12, "Largest norm of all gradients together; 0 is no limit");
  add_number("--dropout", train.dropout, 0.99,
             "Fraction of values to drop in layers that train, the same ones in every layout");
  add_number("--label-smoothing", train.label_smoothing, 0.99, "Part of a target to spread over all classes or tokens");
  command
      .add_option("--group-by-length", train.group_by_length,
                  "Make mini-batches of samples of similar length: sort them by length within N neighbouring "
                  "mini-batches. Default: mini-batches are random")
      ->check(CLI::Range(2, kLargestCount).description(""))
      ->type_name("N");
  command
      .add_option("--save-dtype", train.save_dtype, "Type of the weights in RUN/model: float32, bfloat16 or float16")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}).description(""))
      ->type_name("TYPE")
      ->capture_default_str();
}

void add_ranks(CLI::App& command, TrainCommandOptions& options) {
  add_rehearsal_options(command, options.rehearsal, options.train);
  add_interface_option(command, options.interface);
  command.add_flag("--cuda-graphs", options.train.cuda_graphs,
                   "On GPUs, capture an iteration's kernels, and replay them in later iterations whose samples have "
                   "the same lengths");
  command
      .add_option("--on-loss", options.on_loss,
                  "Recovery from a loss without a spare. replan makes a new layout for the ranks that are left. "
                  "reroute lets the other replicas of the lost rank's layers run its micro-batches, if the simulator "
                  "expects that to take less time")
      ->transform(CLI::CheckedTransformer(
                      std::map<std::string, OnLoss>{{"replan", OnLoss::replan}, {"reroute", OnLoss::reroute}})
                      .description(""))
      ->type_name("WHAT")
      ->default_str("replan");
}

void add_files(CLI::App& command, TrainCommandOptions& options) {
  command
      .add_option("--schedule-file", options.schedule_file,
                  "CSV file of a schedule to follow in place of the plan's, any that schedule --check accepts. It must "
                  "have the plan's ranks, stages and micro-batches")
      ->type_name("FILE");
  command
      .add_option("--cache-dir", options.train.cache_folder,
                  "Folder for cached activations that memory does not hold. Plans with --cache-disk need it")
      ->type_name("FOLDER");
  add_source_options(command, options.sources);
}

}  // namespace

void add_train_options(CLI::App& command, TrainCommandOptions& options) {
  add_inputs(command, options);
  add_common_train_options(command, options);
  add_learning(command, options.train);
  add_freezing(command, options);
  add_ranks(command, options);
  add_files(command, options);
  show_first(command, {"--data", "--test-data", "--model", "--output", "--freeze", "--accuracy-guard",
                       "--learning-rate", "--dropout", "--seed", "--device", "--checkpoint-every", "--resume",
                       "--overwrite", "--spares", "--name", "--format"});
  command.footer(
      "Under torchrun --no-python, srun or mpirun it uses the ranks that they have started.\n\n"
      "Examples:\n  frostpipe train elastic.json --data my.tsv --freeze paper -o runs/mine\n"
      "  frostpipe train static.json --data my.tsv --schedule-file my.csv -o runs/by-file");
}

void require_consistent(TrainCommandOptions& options) {
  try {
    options.train.freeze = parse_freeze_policy(options.freeze, options.freeze_options);
  } catch (const InvalidInput& error) {  // an unknown rule is a usage error
    throw UsageError(error.what());
  }
  require_consistent(options.rehearsal, options.train, !options.data.empty());
}

}  // namespace frostpipe
