#include "cli/operators/profile_nets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/error_values.h"
#include "base/files.h"
#include "base/separated_values.h"
#include "cli/operators/operator_profile_text.h"
#include "cli/shared/common_options.h"
#include "cli/shared/local_ranks.h"
#include "cli/shared/output.h"
#include "cli/shared/progress.h"
#include "cli/shared/usage_error.h"
#include "operators/execute_net.h"
#include "operators/graph/counted_operators.h"
#include "operators/graph/estimated_operators.h"
#include "operators/graph/known_nets.h"
#include "operators/graph/net_config.h"
#include "profiles/hardware.h"

namespace frostpipe {
namespace {

void show(const NetProfileOptions& options, const OperatorGraph& graph, const std::string& source) {
  print_result(options.format == "json" ? to_json(graph) : operator_profile_text(graph, source));
}

std::vector<std::string> device_classes(const NetProfileOptions& options) {
  std::vector<std::string> names;
  for (const std::string_view name : split(options.hardware, ',')) names.emplace_back(name);
  return names;
}

/// Returns the net that --like names.
NetShape net_like(const std::string& name_or_file) {
  if (std::ranges::find(known_nets(), name_or_file) != known_nets().end()) return find_net(name_or_file);
  if (!std::filesystem::exists(name_or_file))
    throw InvalidInput("--like",
                       fmt::format("must be one of {}, or a config.json or its folder", fmt::join(known_nets(), ", ")),
                       in_quotes(name_or_file));
  return read_net(name_or_file);
}

/// Estimates the operators of a net on each of the devices from their makers' figures.
int estimate_operators(const NetProfileOptions& options) {
  std::vector<Hardware> devices;
  for (const std::string& name : device_classes(options)) devices.push_back(hardware_named(name));
  const NetShape net = net_like(options.like);
  require_batch(net, options.global_batch_size);
  const OperatorGraph graph = estimated_operators(net, options.global_batch_size, devices);
  validate(graph, "--hardware");
  write_named_file(options.output, to_json(graph));
  show(options, graph, "estimated from counted operations");
  return 0;
}

/// Measures the operators of the folder's net on a rank of each device class at the same time.
int measure_on_all_classes(const NetProfileOptions& options) {
  const OperatorMeasureOptions measure{.model = options.model,
                                       .global_batch_size = options.global_batch_size,
                                       .device_classes = device_classes(options),
                                       .quick = options.quick};
  const int num_ranks = static_cast<int>(measure.device_classes.size());
  check_inputs(measure);
  const auto work = [&](Membership& membership) {
    const RankEnvironment self = membership.next_round()->self;
    std::unique_ptr<ProgressDisplay> display;
    if (self.rank == 0) display = std::make_unique<ProgressDisplay>("profile");
    const MeasuredOperators measured = measure_operators(self, measure, [&](double fraction, const std::string& line) {
      if (display) display->show(fraction, line);
    });
    if (self.rank != 0) return;
    if (!options.cluster.empty()) write_named_file(options.cluster, to_json(measured.cluster));
    write_named_file(options.output, to_json(measured.graph));
  };
  const auto show_written = [&] {
    show(options, operator_graph_from_json(read_text_file(options.output), options.output),
         "measured on all classes at the same time");
  };
  return run_on_ranks(
      {.num_ranks = num_ranks, .needs = {.num_ranks = num_ranks}, .work = work, .print_result = show_written});
}

}  // namespace

void add_net_profile_options(CLI::App& command, NetProfileOptions& options) {
  CLI::Option* const model =
      command.add_option("--model", options.model, "Hugging Face folder of a ResNet, VGG or MobileNet to measure")
          ->type_name("FOLDER");
  command
      .add_option("--like", options.like,
                  "Estimate from counted operations, and measure nothing: a net's config.json or its folder, or "
                  "resnet-18, resnet-50, vgg-16-bn or mobilenet")
      ->type_name("NAME")
      ->excludes(model);
  command
      .add_option(
          "--hardware", options.hardware,
          fmt::format("Classes of devices, separated by commas. Parts of this machine's CPU to measure on, such "
                      "as \"cpu,cpu / 2\"; to estimate for, {} or files",
                      known_hardware_names()))
      ->required()
      ->type_name("NAME,NAME");
  add_count_option(command, "--global-batch", options.global_batch_size, "Samples of a mini-batch, over all devices");
  command.add_option("-o,--output", options.output, "Profile to write")->required()->type_name("PROFILE");
  command.add_option("--cluster", options.cluster, "Also write the devices and their measured links to this file")
      ->type_name("FILE")
      ->needs(model);
  command.add_flag("--quick", options.quick, "Measure two iterations of each size and not six, for rough predictions")
      ->needs(model);
  add_format_option(command, options.format);
}

int profile_net(const NetProfileOptions& options) {
  if (options.model.empty() && options.like.empty())
    throw UsageError("nets profile: needs either --model FOLDER or --like NAME");
  if (!is_rank()) {  // fails before the measurement, not after it
    require_writable(options.output);
    if (!options.cluster.empty()) require_writable(options.cluster);
  }
  return options.like.empty() ? measure_on_all_classes(options) : estimate_operators(options);
}

}  // namespace frostpipe
