#include "cli/operators/train_nets.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "cli/operators/net_freezing.h"
#include "cli/operators/operator_plan_text.h"
#include "cli/shared/common_options.h"
#include "cli/shared/local_ranks.h"
#include "cli/shared/output.h"
#include "cli/shared/run_tables.h"
#include "cli/shared/usage_error.h"
#include "cli/training/train_display.h"
#include "operators/execute_net.h"
#include "operators/plan/net_phase.h"
#include "operators/planner/make_operator_plan.h"
#include "operators/simulator/run_operators.h"
#include "profiles/model_source.h"

namespace frostpipe {
namespace {

/// Returns `plan` made anew for `machine`, with its first `layers` layers frozen.
OperatorPlan with_frozen(const OperatorPlan& plan, int layers, const OperatorMachine& machine) {
  OperatorPlan next = make_operator_plan({.graph = frozen(plan.graph, layers), .machine = machine}, plan.method);
  next.frozen_layers = layers;
  next.provenance = plan.provenance;
  return next;
}

/// Returns a phase for the first epoch, and one for each epoch after which more layers freeze. Their from_step is a
/// number of epochs, since the steps of an epoch are not known yet.
std::vector<Phase> phases_of(const NetTrainCommandOptions& options, const OperatorPlan& plan) {
  const FreezePolicy policy = net_freeze_policy(options.freeze);
  std::vector<Phase> phases = {phase_of(plan, 0)};
  int epoch = 0;
  for (const int layers : policy.fixed_layers) {
    ++epoch;
    const int now_frozen = phases.back().first_trainable_layer;
    if (layers == now_frozen) continue;
    if (layers < now_frozen || layers >= num_layers(plan.graph))
      throw InvalidInput("--freeze",
                         fmt::format("must freeze at least the {} layers that are frozen before, and leave one of {}",
                                     now_frozen, num_layers(plan.graph)),
                         std::to_string(layers));
    phases.push_back(phase_of(with_frozen(plan, layers, plan.machine), epoch));
  }
  return phases;
}

/// Returns the callback that answers the loss of ranks without spares: with plans by the same method for the devices
/// that are left.
Replan recovery_of(const OperatorPlan& plan) {
  return [plan](const ReplanRequest& request) -> ReplanAnswer {
    OperatorMachine machine = plan.machine;
    machine.devices.clear();
    for (const int rank : request.logical_ranks) machine.devices.push_back(plan.machine.devices.at(rank));
    ReplanAnswer answer;
    answer.phases.push_back(phase_of(with_frozen(plan, request.first_trainable_layer, machine), request.from_step));
    for (const FreezeEvent& event : request.forecast.value_or(std::vector<FreezeEvent>{}))
      answer.phases.push_back(phase_of(with_frozen(plan, event.frozen_blocks, machine), event.from_step));
    return answer;
  };
}

/// Sets the options of the run from those of the command, except its number of steps, which depends on the data.
void adopt(NetTrainCommandOptions& options, const OperatorPlan& plan) {
  TrainOptions& train = options.train;
  if (options.accuracy_tolerance >= 0) train.accuracy_tolerance = options.accuracy_tolerance / 100;
  train.gradient_clip = 0;
  train.model = options.model;
  train.data = options.data;
  train.plan_source = options.plan;
  train.num_nodes = 1;  // every device reads its samples of each mini-batch itself
  if (train.name.empty()) train.name = to_string(plan.method);
  train.cluster = cluster_of(plan);
  train.plan = {.method = PlanMethod::operators,
                .world_size = static_cast<int>(plan.machine.devices.size()),
                .global_batch_size = plan.graph.batch,
                .epochs = options.num_epochs,
                .optimizer = Optimizer::kSgd,
                .memory_limited = false,
                .phases = phases_of(options, plan),
                .provenance = plan.provenance};
}

void print_run(const std::filesystem::path& folder, const std::string& format) {
  const std::filesystem::path path = folder / "summary.json";
  const std::string json = read_text_file(path);
  if (format == "json") return print_result(json);
  const RunSummary run = run_from_json(json, path.string());
  print_result(run_text(run, folder.string()) + "\n" + phases_text({run}));
}

void note_all(const TrainOptions& train, const InputsFound& found) {
  for (const std::string& note : found.notes) print_note(note);
  if (!found.starts_at_random.empty())
    print_note(fmt::format("{}: {} starts at random", train.model.string(), found.starts_at_random.front()));
  const int batch = train.plan.global_batch_size, rest = found.num_training_samples % batch;
  if (rest > 0)
    print_note(fmt::format("{} of {} samples are left out of each epoch: mini-batches are of {}", rest,
                           found.num_training_samples, batch));
}

void require_net(const std::string& folder) {
  require_model_folder(folder);
  if (!is_net_folder(folder))
    throw InvalidInput(folder + "/config.json",
                       "must be of a ResNet, VGG or MobileNet (model_type resnet, mobilenet_v1 or mobilenet_v2, or "
                       "timm's architecture vgg16_bn)",
                       "of something else; `frostpipe train` trains Transformers");
}

/// Sets the options of the run, takes its folder and checks all inputs.
InputsFound prepare(NetTrainCommandOptions& options, const OperatorPlan& plan) {
  require_net(options.model);
  adopt(options, plan);
  check_common_options(options);
  take_run_folder(options);
  InputsFound found = check_net_inputs(options.train);
  TrainingPlan& run = options.train.plan;
  const int steps_per_epoch = found.num_training_samples / run.global_batch_size;
  run.num_steps = run.epochs * steps_per_epoch;
  for (Phase& phase : run.phases) phase.from_step *= steps_per_epoch;
  std::erase_if(run.phases, [&](const Phase& phase) { return phase.from_step >= run.num_steps; });
  return found;
}

/// Prepares a rank. If the files of its host are wrong, ends the other ranks too.
InputsFound prepare_with_others(NetTrainCommandOptions& options, const OperatorPlan& plan,
                                const Membership& membership) {
  try {
    return prepare(options, plan);
  } catch (const InvalidInput& error) {
    fail_on_all_ranks(membership, error.what());
  } catch (const RuntimeFailure& error) {
    fail_on_all_ranks(membership, error.what());
  }
}

void train_rank(NetTrainCommandOptions& options, const OperatorPlan& plan, Membership& membership) {
  const InputsFound found = prepare_with_others(options, plan, membership);
  TrainDisplay display(options.train.name);
  TrainCallbacks callbacks = display.callbacks();
  callbacks.recover = recovery_of(plan);
  train(membership, options.train, found, callbacks);
}

/// Returns what a rank needs. Rank 0 also collects the layers that it does not hold, with their momentum, which takes
/// twice the file of weights.
ProcessNeeds needs_of(const OperatorPlan& plan, const InputsFound& found) {
  return {.num_ranks = static_cast<int>(plan.machine.devices.size()),
          .memory_bytes = std::ranges::max(plan.predicted_memory_bytes) + 2 * found.weights_bytes,
          .file_bytes = found.largest_file_bytes,
          .file = found.largest_file.string()};
}

}  // namespace

void add_net_train_options(CLI::App& command, NetTrainCommandOptions& options) {
  // SGD with these values is the usual choice for nets on CIFAR.
  options.train.learning_rate = 0.1;
  options.train.weight_decay = 5e-4;
  command
      .add_option(
          "--data", options.data,
          "Pictures to train and test on: CIFAR's .bin, or a folder with a sub-folder of JPEG and PNG files for "
          "each label")
      ->required()
      ->type_name("DATA");
  command.add_option("--model", options.model, "Hugging Face folder of the net to start from")
      ->required()
      ->type_name("FOLDER");
  add_count_option(command, "--epochs", options.num_epochs, "Length of the run, in passes over the data");
  command
      .add_option("--freeze", options.freeze,
                  "plan freezes the layers that the plan has frozen; fixed:5,9 freezes 5 layers after the first epoch "
                  "and 9 after the second")
      ->type_name("RULE")
      ->capture_default_str();
  add_common_train_options(command, options);
}

int train_net_by_plan(NetTrainCommandOptions& options) {
  const OperatorPlan plan = load_operator_plan(options.plan);
  ProcessNeeds needs{.num_ranks = static_cast<int>(plan.machine.devices.size())};
  if (!is_rank()) {
    const InputsFound found = prepare(options, plan);
    note_all(options.train, found);
    if (const std::string note = freezes_that_never_happen(options.freeze, options.num_epochs); !note.empty())
      print_note(note);
    needs = needs_of(plan, found);
  }
  return run_on_ranks({.num_ranks = needs.num_ranks,
                       .num_spares = options.num_spares,
                       .max_restarts = options.max_restarts,
                       .ends_with_checkpoint = true,
                       .needs = needs,
                       .folders = {options.train.output, options.train.output / "model"},
                       .work = [&](Membership& membership) { train_rank(options, plan, membership); },
                       .print_result = [&] { print_run(options.train.output, options.format); }});
}

void add_net_rehearsal_options(CLI::App& command, NetRehearsalOptions& options) {
  command.add_option("PLAN", options.plan, "Plan to rehearse")->required()->type_name("");
  command.add_option("-o,--output", options.output, "Folder of the run. Default: runs/NAME-OF-PLAN")->type_name("RUN");
  command.add_flag("--overwrite", options.overwrite, "Start over in RUN even if a run there has ended");
  add_format_option(command, options.format);
}

int rehearse_net(const NetRehearsalOptions& options) {
  const OperatorPlan plan = load_operator_plan(options.plan);
  if (plan.machine.shared_ports)
    throw InvalidInput(options.plan + ": machine.shared_ports",
                       "must be false: emulated links do not know cards that a device's messages share", "true");
  simulate_operators(plan, tasks_of(plan.graph, plan.machine, plan.placement), options.plan);
  CommonTrainOptions run{.plan = options.plan, .output = options.output, .overwrite = options.overwrite};
  take_run_folder(run);
  const int num_ranks = static_cast<int>(plan.machine.devices.size());
  return run_on_ranks({.num_ranks = num_ranks,
                       .needs = {.num_ranks = num_ranks},
                       .work = [&](Membership& membership) { emulate_operators(membership, plan, run.train.output); },
                       .print_result = [&] { print_run(run.train.output, options.format); }});
}

}  // namespace frostpipe
