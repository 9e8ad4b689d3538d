#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/report_words.h"
#include "cli/shared/table.h"
#include "cli/shared/usage_error.h"
#include "executor/checkpoint/checkpoint.h"
#include "operators/checkpoint/net_checkpoint.h"
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

/// Describes what the checkpoint holds. Appends a sentence to `faults` for each layer that is not whole.
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
      "layout: {} stage{} x {} replica{}{}, {}, {}, partition {}; layers before {} are frozen\n"
      "run: mini-batch {}, seed {}, {}, {}, learning rate {}, freezing by {}\n\n{}\n{} in all\n",
      checkpoint.step, settings.num_steps, loss, accuracy, num_stages(phase), num_stages(phase) == 1 ? "" : "s",
      phase.layout.data_parallel_size, phase.layout.data_parallel_size == 1 ? "" : "s",
      phase.layout.tensor_parallel_size == 1 ? ""
                                             : fmt::format(" x {} tensor ranks{}", phase.layout.tensor_parallel_size,
                                                           phase.layout.sequence_parallel ? " with split tokens" : ""),
      plural(phase.num_micro_batches, "micro-batch"), schedule_text(phase), to_string(phase.partition),
      phase.first_trainable_layer, settings.global_batch_size, settings.seed, to_string(settings.optimizer),
      to_string(settings.dtype), settings.learning_rate, checkpoint.freeze_rule, layers.to_string(),
      format_bytes(total));
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

/// Returns why the file of all layers cannot be used; empty if it can.
std::string fault_of(const NetCheckpoint& checkpoint) {
  try {
    open_state(checkpoint);
    return {};
  } catch (const InvalidInput& error) {
    return error.what();
  }
}

std::string net_checkpoint_text(const NetCheckpoint& checkpoint) {
  const RunSettings& settings = checkpoint.settings;
  const std::vector<NetEpoch>& epochs = checkpoint.run.epochs;
  std::string done = fmt::format("{} epoch{} done", epochs.size(), epochs.size() == 1 ? "" : "s");
  if (!epochs.empty() && epochs.back().loss) done += fmt::format(", loss {:.4f}", *epochs.back().loss);
  if (!epochs.empty() && epochs.back().test_accuracy)
    done += fmt::format(", test accuracy {:.1f} %", 100 * *epochs.back().test_accuracy);
  const CheckpointFile& state = entry_of(checkpoint.files, kNetStateFile, checkpoint.folder);
  return fmt::format(
      "step {} of {}, {} layers frozen; {}\n"
      "run: {} by {} on {} devices, mini-batch {}, seed {}, learning rate {}\n"
      "{}: {}, {}\n",
      checkpoint.step, settings.num_steps, checkpoint.frozen_layers, done, checkpoint.run.net,
      to_string(checkpoint.run.method), checkpoint.run.devices.size(), settings.global_batch_size, settings.seed,
      settings.learning_rate, state.name, format_bytes(state.bytes),
      fault_of(checkpoint).empty() ? "whole" : "DAMAGED");
}

std::string net_checkpoint_json(const NetCheckpoint& checkpoint) {
  nlohmann::ordered_json json = inspection_of(checkpoint.folder, checkpoint.step, checkpoint.settings.num_steps);
  json["frozen_layers"] = checkpoint.frozen_layers;
  add_files(checkpoint.files, json);
  const std::string fault = fault_of(checkpoint);
  json["faults"] = fault.empty() ? std::vector<std::string>() : std::vector{fault};
  return json.dump(2) + "\n";
}

int inspect_net_checkpoint(const std::filesystem::path& folder, const std::string& format) {
  const NetCheckpoint checkpoint = read_net_checkpoint(folder);
  print_result(format == "json" ? net_checkpoint_json(checkpoint)
                                : folder.string() + ": " + net_checkpoint_text(checkpoint));
  const std::string fault = fault_of(checkpoint);
  if (!fault.empty()) print_note(fault);
  return fault.empty() ? 0 : 1;
}

/// Throws UsageError that names the command which shows the plan, if the file is one.
void refuse_plan(const std::string& path) {
  const std::string file = read_named_file(path);
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
  if (is_net_checkpoint(folder)) return inspect_net_checkpoint(folder, options.format);
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
  command->add_option("checkpoint", options->path, "Checkpoint, RUN/checkpoints/step-..., or RUN for its newest one")
      ->required()
      ->type_name("PATH");
  add_format_option(*command, options->format);
  command->footer(
      "The exit code is 1 if anything in it is not as it was written.\n\nExample:\n  frostpipe inspect runs/elastic");
  return {command, [options] { return run_inspect(*options); }};
}

}  // namespace frostpipe
