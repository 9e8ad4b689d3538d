#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/shared/local_ranks.h"
#include "cli/shared/output.h"
#include "cli/shared/run_tables.h"
#include "cli/shared/usage_error.h"
#include "cli/training/replanning.h"
#include "cli/training/train_display.h"
#include "cli/training/train_options.h"
#include "executor/elastic/lost_hosts.h"
#include "plan/messages.h"
#include "plan/plan_paths.h"
#include "plan/planned_work.h"
#include "plan/run_length.h"
#include "planner/search/plan_options.h"
#include "profiles/model_source.h"

namespace frostpipe {
namespace {

/// Notes which tensors start at random.
void note_random_start(const TrainOptions& train, const std::vector<std::string>& tensors) {
  if (tensors.empty()) return;
  print_note(tensors.front() == "the whole model"
                 ? fmt::format("{} has no weights: the whole model starts at random", train.model.string())
                 : fmt::format("{} lacks {}{}, which training starts at random", train.model.string(), tensors.front(),
                               tensors.size() > 1 ? fmt::format(" and {} more", tensors.size() - 1) : ""));
}

/// Notes a plan whose steps are not a whole number of epochs.
void note_part_of_an_epoch(const TrainingPlan& plan, int per_epoch) {
  if (plan.num_steps % per_epoch == 0) return;
  print_note(fmt::format("the plan's {} steps are {} of this data", plan.num_steps,
                         epochs_text(static_cast<double>(plan.num_steps) / per_epoch)));
}

/// The inputs and the callbacks that training needs.
struct Answers {
  InputsFound inputs;
  Replan replan, recover;
};

void train_rank(const TrainOptions& train_options, const Answers& answers, Membership& membership) {
  TrainDisplay display(train_options.name);
  TrainCallbacks callbacks = display.callbacks();
  callbacks.replan = answers.replan;
  callbacks.recover = answers.recover;
  train(membership, train_options, answers.inputs, callbacks);
}

/// Throws InvalidInput for pipes: every rank reads the files for itself, and a pipe can be read once.
void require_regular_files(const TrainCommandOptions& options) {
  for (const std::string& file :
       {options.plan, options.schedule_file, options.sources.profile, options.sources.cluster})
    if (!file.empty()) open_regular_file(file);
}

/// Throws InvalidInput unless the folder exists or can be created. A folder that is full or read-only does not end the
/// run: the cache then notes what it could not store.
void require_folder(const std::filesystem::path& folder) {
  std::error_code why;
  std::filesystem::create_directories(folder, why);
  if (std::filesystem::is_directory(folder)) return;
  throw InvalidInput("--cache-dir", fmt::format("must be a folder ({})", why.message()), folder.string());
}

std::filesystem::path model_folder(const TrainCommandOptions& options) {
  if (options.model.empty() && options.train.plan.provenance.model_path.empty()) {
    throw InvalidInput(fmt::format("{}: provenance.model_path: names no folder; give --model FOLDER", options.plan));
  }
  const std::filesystem::path folder = options.model.empty()
                                           ? path_in_plan(options.train.plan.provenance.model_path, options.plan)
                                           : std::filesystem::path(options.model);
  if (options.model.empty() && !std::filesystem::is_directory(folder))
    throw InvalidInput(fmt::format("{}: must be the folder of a model; give --model FOLDER", folder.string()));
  require_model_folder(folder);
  return folder;
}

/// Sets the options of samples to those of the profile, if the plan has its workload.
void adopt_planned_samples(TrainOptions& train) {
  if (!train.plan.workload) return;
  SampleOptions& samples = train.samples;
  samples.max_tokens = train.plan.workload->max_tokens.value_or(samples.max_tokens);
  samples.window_overlap = train.plan.workload->window_overlap.value_or(samples.window_overlap);
}

/// Notes samples that are longer than a plan without a workload has memory for.
void note_lengths_beyond_the_plan(const TrainOptions& train, int longest_tokens) {
  if (train.plan.workload || longest_tokens <= planned_longest_tokens(train.plan)) return;
  print_note(fmt::format("{} has samples of {} tokens, but {} has memory for {} at most: more is used than predicted",
                         train.data.string(), longest_tokens, train.plan_source, planned_longest_tokens(train.plan)));
}

/// Notes micro-batches that may need more memory than the plan has for them: plans assume a random order of samples.
void note_large_micro_batches(const TrainOptions& train, const InputsFound& found) {
  const auto is_limited = [](const Device& device) { return device.memory_limit_bytes.has_value(); };
  if (!train.plan.memory_limited || std::ranges::none_of(train.cluster->devices, is_limited)) return;
  const std::string sentence =
      micro_batches_beyond_memory(train.plan, *train.cluster, largest_micro_batches(train, found), train.plan_source);
  if (!sentence.empty())
    print_note(sentence + (train.group_by_length > 1 ? ", or train without --group-by-length" : ""));
}

void note_all(const TrainOptions& train, const InputsFound& found, int steps_per_epoch) {
  for (const std::string& note : found.notes) print_note(note);
  note_random_start(train, found.starts_at_random);
  note_lengths_beyond_the_plan(train, found.longest_tokens);
  note_large_micro_batches(train, found);
  note_part_of_an_epoch(train.plan, steps_per_epoch);
  if (!train.cache_folder.empty() && train.plan.cache.disk_bytes == 0)
    print_note(
        fmt::format("--cache-dir: is not used, {} keeps nothing on a disk (plan --cache-disk)", train.plan_source));
}

/// Throws UsageError if pictures change from epoch to epoch while the run may use the cache, which keeps what frozen
/// layers computed from an unchanged picture.
void require_unchanging(const TrainOptions& train) {
  const bool decides_later =
      train.freeze.rule != FreezePolicy::Rule::plan && train.plan.cache.memory_bytes + train.plan.cache.disk_bytes > 0;
  const bool may_cache = decides_later || std::any_of(train.plan.phases.begin(), train.plan.phases.end(),
                                                      [](const Phase& phase) { return phase.cache.on; });
  if (may_cache && (train.samples.crop_padding > 0 || train.samples.flip)) {
    throw UsageError(
        "--crop-padding, --flip: change pictures from epoch to epoch, which the plan's activation cache cannot hold; "
        "plan with --cache off");
  }
}

/// Throws InvalidInput if two ranks receive messages in another order than they are sent: NCCL matches them by order.
void require_messages_in_order(const TrainingPlan& plan, const std::string& source) {
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const auto late = received_out_of_order(schedule_of(plan.phases[i]));
    if (!late) continue;
    throw InvalidInput(fmt::format("{}: phases[{}].schedule_rows", source, i),
                       "must, on GPUs, receive messages between two ranks in the order in which they are sent",
                       fmt::format("in another order at {}", to_string(*late)));
  }
}

/// Throws InvalidInput for schedules that delay updates by a step, in a run that decides about freezing on the way:
/// the step before which something is decided would have begun with older weights.
void require_no_delay_with_decisions(const TrainingPlan& plan, const TrainCommandOptions& options) {
  const bool decides = options.train.freeze.rule != FreezePolicy::Rule::plan;
  if (!decides && options.accuracy_tolerance < 0) return;
  const auto delays = [](const Phase& phase) { return weight_delay(phase) > 0; };
  const auto phase = std::ranges::find_if(plan.phases, delays);
  if (phase == plan.phases.end()) return;
  throw InvalidInput(fmt::format(
      "{}: phases[{}].schedule: {} delays updates by a step, which {} does not allow; {}, or plan with another "
      "--schedule",
      options.plan, phase - plan.phases.begin(), phase->schedule,
      decides ? "--freeze " + options.freeze : "--accuracy-guard",
      decides ? "freeze as planned (--freeze plan)" : "train without it"));
}

TrainingPlan load_trainable_plan(const TrainCommandOptions& options) {
  TrainingPlan plan = load_plan_by_file(options.plan, options.schedule_file);
  require_no_delay_with_decisions(plan, options);
  return plan;
}

/// Reads all inputs and finds everything that can be wrong with them, once, before any rank is started.
Answers prepare(TrainCommandOptions& options) {
  TrainOptions& train = options.train;
  const bool is_rehearsal = train.device == "emulated";
  require_consistent(options);
  check_common_options(options);
  require_regular_files(options);
  train.plan = load_trainable_plan(options);
  adopt_planned_samples(train);
  if (train.name.empty()) train.name = run_name(train.plan.method);
  train.data = options.data;
  if (!is_rehearsal) train.model = model_folder(options);
  take_run_folder(options);
  if (train.plan.cache.disk_bytes > 0) {
    if (train.cache_folder.empty())
      throw InvalidInput(fmt::format("{}: cache.disk_bytes: needs a folder; give --cache-dir FOLDER", options.plan));
    require_folder(train.cache_folder);
  }
  train.plan_source = options.plan;
  if (is_rehearsal || train.num_nodes > 0 || train.plan.memory_limited || replans(train) ||
      lacks_hosts(environment_variables(), train.plan.world_size)) {
    train.cluster = load_cluster_of(train.plan, options.plan, options.sources);
    form_nodes(*train.cluster, train.num_nodes);
  }
  if (is_rehearsal || !options.sources.profile.empty()) {  // a profile that is given must fit even if it is not needed
    Profile profile = load_profile_of(train.plan, options.plan, options.sources);
    if (is_rehearsal) train.emulation = emulation_of(options.rehearsal, std::move(profile), train.plan);
  }
  require_unchanging(train);
  const InputsFound found = check_inputs(train);
  if (train.device == "cuda") require_messages_in_order(train.plan, options.plan);
  require_planned_lengths(train.plan, found.longest_tokens, is_rehearsal ? "the profile's workload" : options.data,
                          options.plan);
  require_length(train.plan, found.num_training_samples, options.plan);
  const int per_epoch = steps_per_epoch(found.num_training_samples, train.plan.global_batch_size);
  if (!is_rank()) note_all(train, found, per_epoch);
  if (options.accuracy_tolerance >= 0) train.accuracy_tolerance = options.accuracy_tolerance / 100;
  const auto load_profile = [plan = train.plan, path = options.plan, sources = options.sources] {
    return load_profile_of(plan, path, sources);
  };
  const auto load_cluster = [plan = train.plan, path = options.plan, sources = options.sources,
                             nodes = train.num_nodes] {
    Cluster cluster = load_cluster_of(plan, path, sources);
    form_nodes(cluster, nodes);
    return cluster;
  };
  Answers answers{.inputs = found,
                  .replan = {},
                  .recover = make_recovery(train, options.on_loss, load_profile, load_cluster, per_epoch)};
  if (replans(train)) {
    Profile profile = load_profile();
    require_split_backward(train.plan.phases, profile);  // replanning needs the times of I and W
    answers.replan = make_replan(train, std::move(profile), *train.cluster, per_epoch);
  }
  return answers;
}

/// Prepares a rank. If the files of its host are wrong, ends the other ranks too.
Answers prepare_with_others(TrainCommandOptions& options, const Membership& membership) {
  try {
    return prepare(options);
  } catch (const InvalidInput& error) {
    fail_on_all_ranks(membership, error.what());
  } catch (const RuntimeFailure& error) {
    fail_on_all_ranks(membership, error.what());
  }
}

void print_run(const TrainCommandOptions& options) {
  const std::filesystem::path path = options.train.output / "summary.json";
  const std::string json = read_text_file(path);
  print_result(options.format == "json" ? json
                                        : run_text(run_from_json(json, path.string()), options.train.output.string()));
}

/// Returns what a rank needs: the predicted memory of its stage, room for the mapped file of weights, and room for a
/// model of the same size.
ProcessNeeds needs_of(const TrainOptions& train, const InputsFound& found) {
  ProcessNeeds needs{.num_ranks = train.plan.world_size,
                     .memory_bytes = 0,
                     .file_bytes = found.largest_file_bytes,
                     .file = found.largest_file.string()};
  if (train.emulation) return needs;
  for (const Phase& phase : train.plan.phases) {
    for (const Bytes peak : phase.predicted.peak_memory_bytes) needs.memory_bytes = std::max(needs.memory_bytes, peak);
  }
  needs.memory_bytes += found.weights_bytes;
  return needs;
}

int run_train(TrainCommandOptions& options) {
  ProcessNeeds needs;
  if (!is_rank()) needs = needs_of(options.train, prepare(options).inputs);  // reports errors before any rank does
  return run_on_ranks({.num_ranks = options.train.plan.world_size,
                       .num_spares = options.num_spares,
                       .max_restarts = options.max_restarts,
                       .ends_with_checkpoint = true,
                       .interface = options.interface,
                       .needs = needs,
                       .folders = {options.train.output, options.train.output / "model"},
                       .work =
                           [&](Membership& membership) {
                             const Answers answers = prepare_with_others(options, membership);
                             train_rank(options.train, answers, membership);
                           },
                       .print_result = [&] { print_run(options); }});
}

}  // namespace

Command add_train_command(CLI::App& app) {
  const auto options = std::make_shared<TrainCommandOptions>();
  CLI::App* command = app.add_subcommand("train", "Train a model on your own data as a plan says");
  add_train_options(*command, *options);
  return {command, [options] { return run_train(*options); }};
}

}  // namespace frostpipe
