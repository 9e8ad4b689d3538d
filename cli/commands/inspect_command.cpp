#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/operators/operator_plan_text.h"
#include "cli/serving/serving_plan_text.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/report_words.h"
#include "cli/shared/table.h"
#include "executor/checkpoint/checkpoint.h"
#include "operators/plan/net_phase.h"
#include "plan/partition.h"
#include "plan/plan_kind.h"
#include "plan/stages.h"

namespace frostpipe {
namespace {

struct InspectOptions {
  std::string path, format;
};

/// What is wrong with a layer's file; empty if nothing is.
std::string fault_of(const Checkpoint& checkpoint, int layer) {
  try {
    open_layer(checkpoint, layer);
    return {};
  } catch (const InvalidInput& error) {
    return error.what();
  }
}

/// The phase of the last step that is done.
const Phase& phase_of(const Checkpoint& checkpoint) {
  return checkpoint.plan.phases[phase_at(checkpoint.plan, std::max(0, checkpoint.step - 1))];
}

std::string layout_text(const Checkpoint& checkpoint, const Phase& phase) {
  if (!phase.operator_plan.empty()) {
    const OperatorPlan plan = operator_plan_of(phase, (checkpoint.folder / "plan.json").string());
    std::vector<std::string> classes;
    for (const OperatorDevice& device : plan.machine.devices) classes.push_back(device.device_class);
    return fmt::format("{} by {} on {}", plan.graph.net, to_string(plan.method), fmt::join(classes, " + "));
  }
  const auto& [stages, replicas, tensor_ranks, placement, vacant, splits_tokens] = phase.layout;
  return fmt::format("{} x {}{}, {}, {}, partition {}", plural(num_stages(phase), "stage"), plural(replicas, "replica"),
                     tensor_ranks == 1
                         ? ""
                         : fmt::format(" x {} tensor ranks{}", tensor_ranks, splits_tokens ? " with split tokens" : ""),
                     plural(phase.num_micro_batches, "micro-batch"), schedule_text(phase), to_string(phase.partition));
}

/// What the checkpoint holds, and whether it is whole: `faults` gets what is not.
std::string checkpoint_text(const Checkpoint& checkpoint, std::vector<std::string>& faults) {
  const Phase& phase = phase_of(checkpoint);
  const RunSettings& settings = checkpoint.settings;
  Table layers({{"layer"},
                {"", Table::Align::left},
                {"bytes"},
                {"tensors", Table::Align::left},
                {"content", Table::Align::left}});
  Bytes total = 0;
  for (int layer = 0; layer < num_layers(checkpoint); ++layer) {
    const std::string fault = fault_of(checkpoint, layer);
    if (!fault.empty()) faults.push_back(fault);
    std::string tensors, size = "-";
    if (fault.empty()) {
      const SafetensorsFile file = open_layer(checkpoint, layer);
      for (const auto& [name, tensor] : file.tensors()) tensors += (tensors.empty() ? "" : ", ") + name;
      size = std::to_string(file.content().size());
      total += static_cast<Bytes>(file.content().size());
    }
    layers.add_row({std::to_string(layer), layer < phase.first_trainable_layer ? "frozen" : "trains", size, tensors,
                    fault.empty() ? "whole" : "DAMAGED"});
  }
  const std::string loss =
      checkpoint.run.steps.empty() ? "" : fmt::format(", loss {:.4f}", checkpoint.run.steps.back().loss);
  const std::string accuracy =
      checkpoint.run.evaluations.empty()
          ? ""
          : fmt::format(", test accuracy {:.1f} % after step {}", 100 * checkpoint.run.evaluations.back().accuracy,
                        checkpoint.run.evaluations.back().step);
  return fmt::format(
      "step {} of {}{}{}\n"
      "layout: {}; layers before {} are frozen\n"
      "run: mini-batch {}, seed {}, {}, {}, learning rate {}, freezing by {}\n\n{}\n{} in all\n",
      checkpoint.step, settings.num_steps, loss, accuracy, layout_text(checkpoint, phase), phase.first_trainable_layer,
      settings.global_batch_size, settings.seed, to_string(settings.optimizer), to_string(settings.dtype),
      settings.learning_rate, checkpoint.freeze_rule, layers.to_string(), format_bytes(total));
}

nlohmann::ordered_json inspection_of(const std::filesystem::path& folder, int step, int num_steps) {
  return {{"format", "frostpipe.inspection"},
          {"version", 1},
          {"folder", folder.string()},
          {"step", step},
          {"num_steps", num_steps}};
}

void add_files(const std::vector<CheckpointFile>& files, nlohmann::ordered_json& json) {
  for (const CheckpointFile& file : files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"hash", file.hash}});
}

std::string checkpoint_json(const Checkpoint& checkpoint, std::vector<std::string>& faults) {
  nlohmann::ordered_json json = inspection_of(checkpoint.folder, checkpoint.step, checkpoint.settings.num_steps);
  json["first_trainable_layer"] = phase_of(checkpoint).first_trainable_layer;
  add_files(checkpoint.files, json);
  for (int layer = 0; layer < num_layers(checkpoint); ++layer) {
    if (const std::string fault = fault_of(checkpoint, layer); !fault.empty()) faults.push_back(fault);
  }
  json["faults"] = faults;
  return json.dump(2) + "\n";
}

int inspect_plan(const InspectOptions& options) {
  const std::string file = read_named_file(options.path);
  if (kind_of_plan(file, options.path) == PlanKind::operators) {
    const OperatorPlan plan = operator_plan_from_json(file, options.path);
    print_result(options.format == "json"
                     ? to_json(plan)
                     : operator_plan_text(plan, options.path) + operator_explanation(plan, options.path));
    return 0;
  }
  const ServingPlan plan = serving_plan_from_json(file, options.path);
  print_result(options.format == "json" ? to_json(plan)
                                        : serving_plan_text(plan, options.path) + serving_explanation(plan));
  return 0;
}

int run_inspect(const InspectOptions& options) {
  if (std::filesystem::is_regular_file(options.path)) return inspect_plan(options);
  std::filesystem::path folder = options.path;
  if (std::filesystem::is_directory(folder / "checkpoints")) folder /= "checkpoints";
  if (!std::filesystem::exists(folder / "checkpoint.json")) {
    const std::vector<std::filesystem::path> found = checkpoints_in(folder);
    if (found.empty())
      throw InvalidInput(options.path, "must be a checkpoint (RUN/checkpoints/step-...), or a folder of such",
                         "neither");
    if (options.format != "json" && found.size() > 1) {
      for (const std::filesystem::path& older : found)
        print_note(fmt::format("there is {}{}", older.string(), older == found.front() ? ", shown here" : ""));
    }
    folder = found.front();
  }
  const Checkpoint checkpoint = read_checkpoint(folder);
  std::vector<std::string> faults;
  print_result(options.format == "json" ? checkpoint_json(checkpoint, faults)
                                        : folder.string() + ": " + checkpoint_text(checkpoint, faults));
  for (const std::string& fault : faults) print_note(fault);
  return faults.empty() ? 0 : 1;
}

}  // namespace

Command add_inspect_command(CLI::App& app) {
  const auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Show what a checkpoint holds, and whether it is whole, or a plan for serving or of operators");
  command
      ->add_option("checkpoint", options->path,
                   "RUN/checkpoints/step-..., or RUN: its newest; or a plan for serving or of operators")
      ->required()
      ->type_name("PATH");
  add_format_option(*command, options->format);
  command->footer(
      "Exit code 1 if anything in it is not as it was written.\n\nExample:\n  frostpipe inspect runs/elastic");
  return {command, [options] { return run_inspect(*options); }};
}

}  // namespace frostpipe
