#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/operators/plan_operators.h"
#include "cli/operators/profile_nets.h"
#include "cli/operators/simulate_operator_plan.h"
#include "cli/operators/train_nets.h"
#include "cli/program/command_group.h"
#include "cli/shared/evaluation.h"
#include "cli/shared/output.h"
#include "operators/execute_net.h"

namespace frostpipe {
namespace {

Command add_nets_profile(CLI::App& group) {
  const auto options = std::make_shared<NetProfileOptions>();
  CLI::App* command = group.add_subcommand("profile", "Measure or estimate a net's operators on classes of devices");
  add_net_profile_options(*command, *options);
  command->footer(
      "Examples:\n"
      "  frostpipe nets profile --model resnet --hardware \"cpu,cpu / 2\" --cluster unequal.json -o operators.json\n"
      "  frostpipe nets profile --like resnet-50 --hardware A100,V100 -o operators.json");
  return {command, [options] { return profile_net(*options); }};
}

Command add_nets_plan(CLI::App& group) {
  const auto request = std::make_shared<OperatorRequest>();
  CLI::App* command = group.add_subcommand("plan", "Place each operator of an iteration on devices");
  add_operator_plan_options(*command, *request);
  command->footer(
      "Example:\n  frostpipe nets plan --profile operators.json --cluster unequal.json --explain -o mtrain.json");
  return {command, [request] { return plan_operators(*request); }};
}

Command add_nets_simulate(CLI::App& group) {
  const auto options = std::make_shared<SimulateOperatorsOptions>();
  CLI::App* command = group.add_subcommand("simulate", "Predict an iteration of a plan, and show its critical path");
  add_simulate_operators_options(*command, *options);
  command->footer("Example:\n  frostpipe nets simulate mtrain.json --timeline mtrain.trace.json");
  return {command, [options] {
            print_result(simulate_operator_plan(*options));
            return 0;
          }};
}

Command add_nets_train(CLI::App& group) {
  const auto options = std::make_shared<NetTrainCommandOptions>();
  CLI::App* command = group.add_subcommand("train", "Train a net on your own pictures by a plan, on this machine");
  add_net_train_options(*command, *options);
  command->footer(
      "Example:\n  frostpipe nets train mtrain.json --model resnet --data pictures --epochs 10 -o runs/resnet");
  return {command, [options] { return train_net_by_plan(*options); }};
}

Command add_nets_rehearse(CLI::App& group) {
  const auto options = std::make_shared<NetRehearsalOptions>();
  CLI::App* command =
      group.add_subcommand("rehearse", "Run a plan for any devices with real messages and emulated operators");
  add_net_rehearsal_options(*command, *options);
  command->footer("Example:\n  frostpipe nets rehearse mtrain.json -o runs/rehearsal");
  return {command, [options] { return rehearse_net(*options); }};
}

Command add_nets_evaluate(CLI::App& group) {
  const auto options = std::make_shared<EvaluationOptions>();
  CLI::App* command = group.add_subcommand("evaluate", "Score a trained net on pictures that it has not seen");
  add_evaluation_options(
      *command, *options,
      {.data = "Labelled pictures of the kind that nets train takes, with labels that the model knows",
       .predictions = "Also write each prediction to this CSV file"});
  command->footer("Example:\n  frostpipe nets evaluate --model runs/resnet/model --data unseen");
  return {command, [options] { return print_evaluation(*options, evaluate_net); }};
}

}  // namespace

Command add_nets_commands(CLI::App& app) {
  return add_group(
      app, "nets", kNetsDescription,
      {add_nets_profile, add_nets_plan, add_nets_simulate, add_nets_train, add_nets_rehearse, add_nets_evaluate});
}

}  // namespace frostpipe
