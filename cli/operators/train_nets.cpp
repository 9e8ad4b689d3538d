#include "cli/operators/train_nets.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "cli/operators/operator_plan_text.h"
#include "cli/shared/common_options.h"
#include "cli/shared/local_ranks.h"
#include "cli/shared/output.h"
#include "cli/shared/usage_error.h"
#include "cli/training/net_run_text.h"
#include "cli/training/train_display.h"
#include "operators/execute_net.h"
#include "operators/planner/make_operator_plan.h"
#include "operators/simulator/run_operators.h"
#include "profiles/model_source.h"

namespace frostpipe {
namespace {

/// Parses --freeze. Throws UsageError for a rule that decides during the run: nets freeze after known epochs only.
FreezePolicy freeze_policy_of(const std::string& text) {
  try {
    FreezePolicy policy = parse_freeze_policy(text, {});
    if (policy.rule == FreezePolicy::Rule::plan || policy.rule == FreezePolicy::Rule::fixed) return policy;
  } catch (const InvalidInput&) {  // the sentence below says it
  }
  throw UsageError("--freeze", "must be plan or fixed:N,N,... (frozen layers after the 1st, 2nd, ... epoch)", text);
}

/// Returns the plan for the first epoch, and a new plan for each epoch after which more layers freeze.
std::vector<NetPhase> phases_of(const NetTrainCommandOptions& options) {
  const FreezePolicy policy = freeze_policy_of(options.freeze);
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

NetTrainOptions net_options(const NetTrainCommandOptions& options) {
  NetTrainOptions net{.common = options.train, .num_epochs = options.num_epochs, .phases = phases_of(options)};
  net.common.model = options.model;
  net.common.data = options.data;
  net.common.plan_source = options.plan;
  if (net.common.name.empty()) net.common.name = to_string(net.phases.front().plan.method);
  return net;
}

void print_run(const std::filesystem::path& folder, const std::string& format) {
  const std::filesystem::path path = folder / "summary.json";
  const std::string json = read_text_file(path);
  print_result(format == "json" ? json : net_run_text(net_run_from_json(json, path.string()), folder.string()));
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

void require_net(const std::string& folder) {
  require_model_folder(folder);
  if (!is_net_folder(folder))
    throw InvalidInput(folder + "/config.json",
                       "must be of a ResNet, VGG or MobileNet (model_type resnet, mobilenet_v1 or mobilenet_v2, or "
                       "timm's architecture vgg16_bn)",
                       "of something else; `frostpipe train` trains Transformers");
}

/// Finds what is wrong with the inputs before any rank is started.
ProcessNeeds checked_needs(const NetTrainOptions& net) {
  const NetInputsFound found = check_net_inputs(net);
  note_all(net, found);
  const OperatorPlan& plan = net.phases.front().plan;
  // Rank 0 brings together the layers that it does not hold.
  return {.num_ranks = static_cast<int>(plan.machine.devices.size()),
          .memory_bytes = std::ranges::max(plan.predicted_memory_bytes) + found.largest_file_bytes,
          .file_bytes = found.largest_file_bytes,
          .file = "a checkpoint in " + net.common.output.string()};
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
  NetTrainOptions net = net_options(options);
  require_net(options.model);
  take_run_folder(options);
  net.common.output = options.train.output;
  ProcessNeeds needs{.num_ranks = static_cast<int>(net.phases.front().plan.machine.devices.size())};
  if (!is_rank()) needs = checked_needs(net);
  const auto work = [&](Membership& membership) {
    TrainDisplay display(net.common.name);
    train_net(membership, net, display.callbacks());
  };
  return run_on_ranks(
      {.num_ranks = needs.num_ranks, .ends_with_checkpoint = true, .needs = needs, .work = work, .print_result = [&] {
         print_run(net.common.output, options.format);
       }});
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
