#include "cli/training/common_train_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/units.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/usage_error.h"
#include "executor/elastic/job_environment.h"

namespace frostpipe {
namespace {

/// Reads "500", a number of steps, or "10min". Returns "" or why it is neither.
std::string read_checkpoint_interval(const std::string& text, CheckpointPolicy& policy) {
  constexpr std::size_t kMaxDigits = 6;
  policy.every_steps = 0;
  policy.every_minutes = 0;
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) {
    if (text.size() > kMaxDigits) return fmt::format("must be at most {} steps, is {}", kLargestCount - 1, text);
    policy.every_steps = std::stoi(text);
    return "";
  }
  if (const std::string why = check_duration(text); !why.empty()) return why + " (a number alone counts steps)";
  policy.every_minutes = static_cast<double>(parse_duration(text, "--checkpoint-every")) / 60e9;
  return "";
}

void add_checkpoint_options(CLI::App& command, CommonTrainOptions& options) {
  CheckpointPolicy& checkpoints = options.train.checkpoints;
  checkpoints.every_minutes = 10;
  options.train.resume = "auto";
  const auto check = [](const std::string& text) {
    CheckpointPolicy unused;
    return read_checkpoint_interval(text, unused);
  };
  command
      .add_option_function<std::string>(
          "--checkpoint-every",
          [&checkpoints](const std::string& text) { read_checkpoint_interval(text, checkpoints); },
          "How often to write a checkpoint to RUN/checkpoints, in the background: a time such as 10min, or a number of "
          "steps. 0 writes none")
      ->check(CLI::Validator(check, ""))
      ->type_name("TIME|N")
      ->default_str("10min");
  command.add_option("--keep-checkpoints", checkpoints.keep, "Number of checkpoints to keep, the newest ones")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--resume", options.train.resume,
                  "auto continues the run in RUN if it has not ended; no starts over; a checkpoint, or a folder of "
                  "them, is where to continue from. The plan may be another one than before")
      ->type_name("WHAT")
      ->capture_default_str();
  command.add_flag("--overwrite", options.overwrite, "Start over in RUN even if a run there has ended");
}

void add_optimizer_options(CLI::App& command, TrainOptions& train) {
  const auto add_number = [&](const std::string& name, double& value, double most, const std::string& meaning) {
    command.add_option(name, value, meaning)->check(finite_range(0, most))->type_name("X")->capture_default_str();
  };
  add_number("--learning-rate", train.learning_rate, 1e6, "Highest learning rate");
  add_number("--learning-rate-warm-up", train.learning_rate_warm_up, 1,
             "Fraction of the steps in which the learning rate rises from 0");
  command.add_option("--decay", train.decay, "Shape in which the learning rate falls to 0: linear or cosine")
      ->check(CLI::IsMember({"linear", "cosine"}).description(""))
      ->type_name("CURVE")
      ->capture_default_str();
  add_number("--weight-decay", train.weight_decay, 1e6, "Weight decay of the optimizer");
}

void add_test_and_augmentation_options(CLI::App& command, TrainOptions& train) {
  command.add_option("--test-data", train.test_data, "Data to test on, instead of a part of --data")->type_name("DATA");
  command.add_option("--held-out", train.held_out, "Fraction of --data to test on and not to train on")
      ->check(finite_range(0, 0.99))
      ->type_name("X")
      ->capture_default_str();
  add_count_option(command, "--crop-padding", train.samples.crop_padding,
                   "Shift each training picture at random by up to N pixels")
      ->check(CLI::Range(0, 1024).description(""));
  command.add_flag("--flip", train.samples.flip, "Mirror each training picture with a probability of one half");
}

void add_recovery_options(CLI::App& command, CommonTrainOptions& options) {
  command.add_option("--spares", options.num_spares, "Number of processes that wait to take a lost rank's place")
      ->check(CLI::Range(0, 1024).description(""))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--max-restarts", options.max_restarts,
                  "How often the job goes on after a loss, with a spare or on fewer ranks; 0 ends it at a loss")
      ->check(CLI::Range(0, kLargestCount).description(""))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--accuracy-guard", options.accuracy_tolerance,
                  "Take a freeze back, and freeze later and less, if the test accuracy falls by more than X percentage "
                  "points after it. Default: accuracy is not watched")
      ->check(finite_range(0, 100))
      ->type_name("X");
}

}  // namespace

void add_common_train_options(CLI::App& command, CommonTrainOptions& options) {
  command.add_option("PLAN", options.plan, "Plan to train by")->required()->type_name("");
  command
      .add_option("-o,--output", options.output,
                  "Folder of the run: summary.json, trace.json, model/, checkpoints/. Default: runs/NAME-OF-PLAN")
      ->type_name("RUN");
  command.add_option("--name", options.train.name, "Name of the run in reports. Default: by the plan's method")
      ->type_name("NAME");
  add_optimizer_options(command, options.train);
  add_test_and_augmentation_options(command, options.train);
  add_seed_option(command, options.train.seed);
  add_checkpoint_options(command, options);
  add_recovery_options(command, options);
  add_format_option(command, options.format);
}

void check_common_options(const CommonTrainOptions& options) {
  if (options.accuracy_tolerance >= 0 && options.train.held_out == 0 && options.train.test_data.empty())
    throw UsageError("--accuracy-guard", "needs data to test on (--test-data, or --held-out above 0)", "without any");
  if (options.num_spares > 0 && is_rank() && answers_for_job())
    print_note("--spares: is not used, another launcher has started the ranks");
}

void take_run_folder(CommonTrainOptions& options) {
  std::filesystem::path& folder = options.train.output;
  folder = options.output.empty() ? std::filesystem::path("runs") / std::filesystem::path(options.plan).stem()
                                  : std::filesystem::path(options.output);
  if (!is_rank()) require_writable(folder / "summary.json");  // fails before the training, not after it
  if (!answers_for_job()) return;
  options.lock.emplace(folder);
  if (!options.overwrite && std::filesystem::exists(folder / "summary.json"))
    throw InvalidInput(
        fmt::format("{0}: holds a run that has ended. Give another folder (-o), also to train its model further "
                    "(--model {0}/model), "
                    "or start over in this one with --overwrite",
                    folder.string()));
}

}  // namespace frostpipe
