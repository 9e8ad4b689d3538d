#include "cli/training/train_operators.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "cli/shared/local_ranks.h"
#include "cli/shared/only_options.h"
#include "cli/shared/output.h"
#include "cli/shared/run_tables.h"
#include "cli/shared/usage_error.h"
#include "cli/training/train_display.h"
#include "operators/execute_net.h"
#include "operators/plan/net_phase.h"
#include "operators/planner/make_operator_plan.h"
#include "operators/simulator/run_operators.h"
#include "plan/plan_kind.h"
#include "profiles/model_source.h"

namespace frostpipe {
namespace {

constexpr double kLearningRate = 0.1, kWeightDecay = 5e-4;  // of SGD, as nets are usually trained with on CIFAR

constexpr std::string_view kOptionsOfNets =
    "--data --test-data --model --output --overwrite --epochs --seed --learning-rate --learning-rate-warm-up "
    "--weight-decay --held-out --decay --crop-padding --flip --freeze --name --format --checkpoint-steps "
    "--checkpoint-minutes --keep-checkpoints --resume --spares --max-restarts --accuracy-guard --device --interface";
constexpr std::string_view kOptionsOfEmulation = "--output --overwrite --device --interface --name --format";

OperatorPlan load_operator_plan(const std::string& path) {
  return operator_plan_from_json(read_named_file(path), path);
}

/// `plan` made anew where its first `layers` layers are frozen.
OperatorPlan with_frozen(const OperatorPlan& plan, int layers, const OperatorMachine& machine) {
  OperatorPlan next = make_operator_plan({.graph = frozen(plan.graph, layers), .machine = machine}, plan.method);
  next.frozen_layers = layers;
  next.provenance = plan.provenance;
  return next;
}

/// A phase for the first epoch, and one for each number of layers that freezes after an epoch. They begin with epochs
/// in the place of steps.
std::vector<Phase> phases_of(const TrainCommandOptions& options, const OperatorPlan& plan) {
  const FreezePolicy policy = freeze_policy_of(options);
  if (policy.rule != FreezePolicy::Rule::plan && policy.rule != FreezePolicy::Rule::fixed)
    throw UsageError(
        "--freeze: must be plan or fixed:N,N,... (frozen layers after the 1st, 2nd, ... epoch) for a plan "
        "of operators");
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

/// Answers when ranks are lost for which there is no spare: the same method's plan for the devices that are left.
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

/// The options, but for how many steps the run has, which the data say.
void adopt(TrainCommandOptions& options, const OperatorPlan& plan, const CLI::App& command) {
  TrainOptions& train = options.train;
  if (command.count("--learning-rate") == 0) train.learning_rate = kLearningRate;
  if (command.count("--weight-decay") == 0) train.weight_decay = kWeightDecay;
  if (options.accuracy_tolerance >= 0) train.accuracy_tolerance = options.accuracy_tolerance / 100;
  train.gradient_clip = 0;
  train.model = options.model;
  train.data = options.data;
  train.plan_source = options.plan;
  train.num_nodes = 1;  // every device reads its samples of each mini-batch
  if (train.name.empty()) train.name = to_string(plan.method);
  train.cluster = cluster_of(plan);
  train.plan = {.world_size = static_cast<int>(plan.machine.devices.size()),
                .global_batch_size = plan.graph.batch,
                .epochs = options.epochs.value_or(1),
                .optimizer = Optimizer::kSgd,
                .memory_limited = false,
                .phases = phases_of(options, plan),
                .provenance = plan.provenance};
}

/// The run folder can be written and is this run's.
void require_ready(TrainCommandOptions& options) {
  options.train.output = options.output.empty()
                             ? std::filesystem::path("runs") / std::filesystem::path(options.plan).stem()
                             : std::filesystem::path(options.output);
  if (!is_rank()) require_writable(options.train.output / "summary.json");
  if (answers_for_job()) take_run_folder(options);
}

int run_on_devices(TrainCommandOptions& options, RankedCommand command) {
  command.interface = options.interface;
  command.print_result = [&] {
    const std::filesystem::path path = options.train.output / "summary.json";
    const std::string json = read_text_file(path);
    if (options.format == "json") return print_result(json);
    const RunSummary run = run_from_json(json, path.string());
    print_result(run_text(run, options.train.output.string()) + "\n" + phases_text({run}));
  };
  return run_on_ranks(command);
}

int emulate(TrainCommandOptions& options) {
  const OperatorPlan plan = load_operator_plan(options.plan);
  if (plan.machine.shared_ports)
    throw InvalidInput(options.plan + ": machine.shared_ports",
                       "must be false: emulated links do not know cards that a device's messages share", "true");
  simulate_operators(plan, tasks_of(plan.graph, plan.machine, plan.placement), options.plan);
  require_ready(options);
  const int num_devices = static_cast<int>(plan.machine.devices.size());
  return run_on_devices(
      options, {.num_ranks = num_devices, .needs = {.num_ranks = num_devices}, .work = [&](Membership& membership) {
                  emulate_operators(membership, plan, options.train.output);
                }});
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

/// Everything that can be wrong with the input is found here, before any rank is started.
InputsFound prepare(TrainCommandOptions& options, const OperatorPlan& plan, const CLI::App& command) {
  if (options.data.empty())
    throw UsageError("--data: needed, the pictures to train on (or train with --device emulated)");
  if (options.model.empty()) throw UsageError("--model: needed, the folder of a net to start from");
  require_model_folder(options.model);
  if (!is_net_folder(options.model))
    throw InvalidInput(options.model + "/config.json",
                       "must be of a ResNet, VGG or MobileNet for a plan of operators (model_type resnet, mobilenet_v1 "
                       "or mobilenet_v2, or timm's architecture vgg16_bn)",
                       "of something else");
  require_ready(options);
  adopt(options, plan, command);
  InputsFound found = check_net_inputs(options.train);
  TrainingPlan& run = options.train.plan;
  const int steps_per_epoch = found.num_training_samples / run.global_batch_size;
  run.num_steps = run.epochs * steps_per_epoch;
  for (Phase& phase : run.phases) phase.from_step *= steps_per_epoch;
  std::erase_if(run.phases, [&](const Phase& phase) { return phase.from_step >= run.num_steps; });
  return found;
}

/// On a rank: what is wrong with its host's files ends all ranks.
InputsFound prepare_with_others(TrainCommandOptions& options, const OperatorPlan& plan, const CLI::App& command,
                                const Membership& membership) {
  try {
    return prepare(options, plan, command);
  } catch (const InvalidInput& error) {
    fail_on_all_ranks(membership, error.what());
  } catch (const RuntimeFailure& error) {
    fail_on_all_ranks(membership, error.what());
  }
}

int train(TrainCommandOptions& options, const CLI::App& command) {
  const OperatorPlan plan = load_operator_plan(options.plan);
  ProcessNeeds needs{.num_ranks = static_cast<int>(plan.machine.devices.size())};
  if (!is_rank()) {
    const InputsFound found = prepare(options, plan, command);
    note_all(options.train, found);
    needs.file_bytes = found.largest_file_bytes;
    needs.file = found.largest_file.string();
    // Rank 0 brings together the layers that it does not hold, with their momentum.
    needs.memory_bytes = std::ranges::max(plan.predicted_memory_bytes) + 2 * found.largest_file_bytes;
  }
  return run_on_devices(options, {.num_ranks = needs.num_ranks,
                                  .num_spares = options.num_spares,
                                  .max_restarts = options.max_restarts,
                                  .ends_with_checkpoint = true,
                                  .needs = needs,
                                  .work = [&](Membership& membership) {
                                    const InputsFound found = prepare_with_others(options, plan, command, membership);
                                    TrainDisplay display(options.train.name);
                                    TrainCallbacks callbacks = display.callbacks();
                                    callbacks.recover = recovery_of(plan);
                                    frostpipe::train(membership, options.train, found, callbacks);
                                  }});
}

}  // namespace

bool is_operator_plan(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  const std::string json = read_text_file(path);
  try {
    return kind_of_plan(json, path) == PlanKind::operators;
  } catch (const InvalidInput&) {  // whoever reads it as another plan says what is wrong
    return false;
  }
}

int train_operators(TrainCommandOptions& options, const CLI::App& command) {
  if (options.train.device == "emulated") {
    require_only(kOptionsOfEmulation, command, "train --device emulated of a plan of operators");
    return emulate(options);
  }
  require_only(kOptionsOfNets, command, "train of a plan of operators");
  if (options.train.device != "cpu") throw UsageError("--device: must be cpu or emulated for a plan of operators");
  return train(options, command);
}

}  // namespace frostpipe
