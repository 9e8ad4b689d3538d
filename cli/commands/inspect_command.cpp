#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"
#include "cli/commands/commands.h"
#include "cli/plans/plan_files.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/report_words.h"
#include "cli/shared/table.h"
#include "cli/shared/usage_error.h"
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

/// Returns why a layer's file cannot be used; empty if it can.
std::string fault_of(const Checkpoint& checkpoint, int layer) {
  try {
    open_layer(checkpoint, layer);
    return {};
  } catch (const InvalidInput& error) {
    return error.what();
  }
}

/// Returns the phase of the last step that is done.
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

/// Describes what the checkpoint holds. Appends a sentence to `faults` for each layer that is not whole.
std::string checkpoint_text(const Checkpoint& checkpoint, std::vector<std::string>& faults) {
  const Phase& phase = phase_of(checkpoint);
  const RunSettings& settings = checkpoint.settings;
  Table layers({{"layer"},
                {"", Table::Align::left},
                {"size"},
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
      size = format_bytes(static_cast<Bytes>(file.content().size()));
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
  return json_text(json, 2) + "\n";
}

/// Throws UsageError that names the command which shows the plan, if the file is one.
void refuse_plan(const std::string& path) {
  const std::string file = read_named_file(path);
  refuse_plan_of_net_run(file, path);
  std::optional<PlanKind> kind;
  try {
    kind = kind_of_plan(file, path);
  } catch (const InvalidInput&) {
    return;  // the caller says that the file is no checkpoint
  }
  constexpr std::string_view kCommands[] = {"simulate", "serving inspect", "nets simulate"};
  throw UsageError(fmt::format("{}: is a plan of {}, which `frostpipe {}` shows; inspect shows checkpoints", path,
                               to_string(*kind), kCommands[static_cast<std::size_t>(*kind)]));
}

int run_inspect(const InspectOptions& options) {
  if (std::filesystem::is_regular_file(options.path)) refuse_plan(options.path);
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
  CLI::App* command = app.add_subcommand("inspect", "Show what a checkpoint holds, and whether it is whole");
  command->add_option("CHECKPOINT", options->path, "Checkpoint, RUN/checkpoints/step-..., or RUN for its newest one")
      ->required()
      ->type_name("");
  add_format_option(*command, options->format);
  command->footer(
      "The exit code is 1 if anything in it is not as it was written.\n\nExample:\n  frostpipe inspect runs/elastic");
  return {command, [options] { return run_inspect(*options); }};
}

}  // namespace frostpipe
