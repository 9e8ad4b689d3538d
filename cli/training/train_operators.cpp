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
#include "cli/shared/usage_error.h"
#include "cli/training/net_run_text.h"
#include "cli/training/train_display.h"
#include "operators/execute_net.h"
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
    "--checkpoint-minutes --keep-checkpoints --resume --device --interface";
constexpr std::string_view kOptionsOfEmulation = "--output --overwrite --device --interface --name --format";

OperatorPlan load_operator_plan(const std::string& path) {
  return operator_plan_from_json(read_named_file(path), path);
}

/// The plan for the first epoch, and a new one for each number of layers that freezes after an epoch.
std::vector<NetPhase> phases_of(const TrainCommandOptions& options) {
  const FreezePolicy policy = freeze_policy_of(options);
  if (policy.rule != FreezePolicy::Rule::plan && policy.rule != FreezePolicy::Rule::fixed)
    throw UsageError(
        "--freeze: must be plan or fixed:N,N,... (frozen layers after the 1st, 2nd, ... epoch) for a plan "
        "of operators");
  const OperatorPlan plan = load_operator_plan(options.plan);
  std::vector<NetPhase> phases = {{.first_epoch = 0, .plan = plan}};
  int epoch = 0;
  for (const int layers : policy.fixed_layers) {
    ++epoch;
    const int now_frozen = phases.back().plan.frozen_layers;
    if (layers == now_frozen) continue;
    if (layers < now_frozen || layers >= num_layers(plan.graph))
      throw InvalidInput("--freeze",
                         fmt::format("must freeze at least the {} layers that are frozen before, and leave one of {}",
                                     now_frozen, num_layers(plan.graph)),
                         std::to_string(layers));
    OperatorPlan next = make_operator_plan({.graph = frozen(plan.graph, layers), .machine = plan.machine}, plan.method);
    next.frozen_layers = layers;
    next.provenance = plan.provenance;
    phases.push_back({.first_epoch = epoch, .plan = std::move(next)});
  }
  return phases;
}

NetTrainOptions net_options(const TrainCommandOptions& options, const CLI::App& command) {
  NetTrainOptions net{.common = options.train, .phases = phases_of(options)};
  TrainOptions& common = net.common;
  if (command.count("--learning-rate") == 0) common.learning_rate = kLearningRate;
  if (command.count("--weight-decay") == 0) common.weight_decay = kWeightDecay;
  common.model = options.model;
  common.data = options.data;
  common.plan_source = options.plan;
  if (common.name.empty()) common.name = to_string(net.phases.front().plan.method);
  net.num_epochs = options.epochs.value_or(1);
  return net;
}

/// The run folder can be written and is this run's.
void require_ready(TrainCommandOptions& options) {
  options.train.output = options.output.empty()
                             ? std::filesystem::path("runs") / std::filesystem::path(options.plan).stem()
                             : std::filesystem::path(options.output);
  if (!is_rank()) require_writable(options.train.output / "summary.json");
  if (answers_for_job()) take_run_folder(options);
}

int run_on_devices(TrainCommandOptions& options, const ProcessNeeds& needs, bool ends_with_checkpoint,
                   const std::function<void(Membership&)>& work) {
  return run_on_ranks({.num_ranks = needs.num_ranks,
                       .ends_with_checkpoint = ends_with_checkpoint,
                       .interface = options.interface,
                       .needs = needs,
                       .work = work,
                       .print_result = [&] {
                         const std::filesystem::path path = options.train.output / "summary.json";
                         const std::string json = read_text_file(path);
                         print_result(options.format == "json" ? json
                                                               : net_run_text(net_run_from_json(json, path.string()),
                                                                              options.train.output.string()));
                       }});
}

int emulate(TrainCommandOptions& options) {
  const OperatorPlan plan = load_operator_plan(options.plan);
  if (plan.machine.shared_ports)
    throw InvalidInput(options.plan + ": machine.shared_ports",
                       "must be false: emulated links do not know cards that a device's messages share", "true");
  simulate_operators(plan, tasks_of(plan.graph, plan.machine, plan.placement), options.plan);
  require_ready(options);
  return run_on_devices(options, {.num_ranks = static_cast<int>(plan.machine.devices.size())},
                        /*ends_with_checkpoint=*/false,
                        [&](Membership& membership) { emulate_operators(membership, plan, options.train.output); });
}

void note_all(const NetTrainOptions& net, const NetInputsFound& found) {
  for (const std::string& note : found.notes) print_note(note);
  if (!found.starts_at_random.empty())
    print_note(fmt::format("{}: {} starts at random", net.common.model.string(), found.starts_at_random.front()));
  const int batch = net.phases.front().plan.graph.batch, rest = found.num_training_samples % batch;
  if (rest > 0)
    print_note(fmt::format("{} of {} samples are left out of each epoch: mini-batches are of {}", rest,
                           found.num_training_samples, batch));
}

int train(TrainCommandOptions& options, const CLI::App& command) {
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
  NetTrainOptions net = net_options(options, command);
  net.common.output = options.train.output;
  const auto work = [&](Membership& membership) {
    TrainDisplay display(net.common.name);
    train_net(membership, net, display.callbacks());
  };
  const OperatorPlan& plan = net.phases.front().plan;
  ProcessNeeds needs{.num_ranks = static_cast<int>(plan.machine.devices.size())};
  if (!is_rank()) {
    const NetInputsFound found = check_net_inputs(net);
    note_all(net, found);
    needs.file_bytes = found.largest_file_bytes;
    needs.file = "a checkpoint in " + net.common.output.string();
    // Rank 0 brings together the layers that it does not hold.
    needs.memory_bytes = std::ranges::max(plan.predicted_memory_bytes) + found.largest_file_bytes;
  }
  return run_on_devices(options, needs, /*ends_with_checkpoint=*/true, work);
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
