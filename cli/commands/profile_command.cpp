#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/profiling/operator_profile_text.h"
#include "cli/profiling/profile_options.h"
#include "cli/profiling/profile_text.h"
#include "cli/shared/local_ranks.h"
#include "cli/shared/only_options.h"
#include "cli/shared/output.h"
#include "cli/shared/progress.h"
#include "cli/shared/usage_error.h"
#include "operators/execute_net.h"
#include "operators/graph/estimated_operators.h"
#include "operators/graph/known_nets.h"
#include "profiles/estimates/estimate.h"
#include "profiles/hardware.h"
#include "profiles/import/import.h"

namespace frostpipe {
namespace {

void measure(const ProfileOptions& options, const RankEnvironment& self) {
  const bool leads = self.rank == 0;
  std::unique_ptr<ProgressDisplay> display;
  if (leads) display = std::make_unique<ProgressDisplay>("profile");
  MeasuredProfile measured = measure_profile(self, options.measure, [&](double fraction, const std::string& line) {
    if (display) display->show(fraction, line);
  });
  if (!leads) return;
  measured.profile.model_path = std::filesystem::absolute(options.model).lexically_normal().string();
  if (!options.cluster.empty()) write_named_file(options.cluster, to_json(measured.cluster));
  write_named_file(options.output, to_json(measured.profile));
}

/// Writes what was asked for and shows it.
void finish(const ProfileOptions& options, const Profile& profile, const Cluster& cluster) {
  const std::string profile_json = to_json(profile), cluster_json = to_json(cluster);
  // Sizes that other commands would refuse to read are refused here, before anything is written.
  profile_from_json(profile_json, options.output);
  cluster_from_json(cluster_json, options.cluster);
  const std::string result =
      options.format == "json" ? profile_json
                               : profile_text(profile, options.cluster.empty() ? std::nullopt : std::optional(cluster));
  if (!options.cluster.empty()) write_named_file(options.cluster, cluster_json);
  write_named_file(options.output, profile_json);
  print_result(result);
}

/// Shows what the ranks have written. What went into a pipe or a device cannot be read again, and is not shown.
void show_written(const ProfileOptions& options) {
  std::error_code ignored;
  const auto can_be_read = [&](const std::string& path) { return std::filesystem::is_regular_file(path, ignored); };
  if (!can_be_read(options.output)) return;
  const std::string json = read_text_file(options.output);
  if (options.format == "json") return print_result(json);
  std::optional<Cluster> cluster;
  if (!options.cluster.empty()) {
    if (!can_be_read(options.cluster)) return;
    cluster = cluster_from_json(read_text_file(options.cluster), options.cluster);
  }
  print_result(profile_text(profile_from_json(json, options.output), cluster));
}

/// As many emulated devices on each node as torchrun would start ranks.
void spread_over_nodes(ProfileOptions& options) {
  options.estimate.num_nodes = std::max(1, options.num_nodes);
  options.estimate.ranks_per_node = options.num_ranks;
}

/// Without a machine: from counted operations.
int run_estimate(ProfileOptions& options) {
  const EstimatedModel model =
      find_model(options.like, options.measure.tokens.empty() ? 0 : options.measure.tokens.front());
  if (!options.hardware.empty()) {
    const Hardware hardware = hardware_named(options.hardware);
    options.estimate.rates = rates_of(hardware);
    if (!hardware.name.empty()) options.estimate.device_type = hardware.name;
    options.estimate.memory_limit_bytes = hardware.memory_bytes;
  }
  if (!options.memory_limit.empty())
    options.estimate.memory_limit_bytes = parse_bytes(options.memory_limit, "--memory-limit");
  spread_over_nodes(options);
  options.estimate.global_batch_size = options.measure.global_batch_size;
  std::vector<int>& sizes = options.estimate.tensor_parallel_sizes;
  if (std::ranges::find(sizes, 1) == sizes.end()) sizes.insert(sizes.begin(), 1);  // as measured
  const Estimate made = estimate(model, options.estimate);
  finish(options, made.profile, made.cluster);
  return 0;
}

/// Of "A100,V100".
std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

void show_operators(const ProfileOptions& options, const OperatorGraph& graph, const std::string& source) {
  print_result(options.format == "json" ? to_json(graph) : operator_profile_text(graph, source));
}

/// The operators of a known net on each of the devices, by their makers' figures.
int estimate_operators(const ProfileOptions& options) {
  std::vector<Hardware> devices;
  for (const std::string& name : split_at_commas(options.hardware)) devices.push_back(hardware_named(name));
  const NetShape net = find_net(options.like, options.picture_size > 0 ? options.picture_size : kImageNetPixels,
                                options.num_classes > 0 ? options.num_classes : kImageNetClasses);
  const OperatorGraph graph = estimated_operators(net, options.measure.global_batch_size, devices);
  validate(graph, "--hardware");
  write_named_file(options.output, to_json(graph));
  show_operators(options, graph, "estimated from counted operations");
  return 0;
}

/// The operators of a folder's net, measured on a rank of each class at the same time.
int measure_operators(const ProfileOptions& options) {
  const OperatorMeasureOptions measure_options{.model = options.model,
                                               .global_batch_size = options.measure.global_batch_size,
                                               .device_classes = split_at_commas(options.hardware),
                                               .quick = options.measure.quick};
  const int num_ranks = static_cast<int>(measure_options.device_classes.size());
  check_inputs(measure_options);
  const auto work = [&](Membership& membership) {
    const RankEnvironment self = membership.next_round()->self;
    std::unique_ptr<ProgressDisplay> display;
    if (self.rank == 0) display = std::make_unique<ProgressDisplay>("profile");
    const MeasuredOperators measured =
        measure_operators(self, measure_options, [&](double fraction, const std::string& line) {
          if (display) display->show(fraction, line);
        });
    if (self.rank != 0) return;
    if (!options.cluster.empty()) write_named_file(options.cluster, to_json(measured.cluster));
    write_named_file(options.output, to_json(measured.graph));
  };
  return run_on_ranks({.num_ranks = num_ranks,
                       .interface = options.interface,
                       .needs = {.num_ranks = num_ranks},
                       .work = work,
                       .print_result = [&] {
                         show_operators(options,
                                        operator_graph_from_json(read_text_file(options.output), options.output),
                                        "measured on all classes at the same time");
                       }});
}

constexpr std::string_view kOptionsOfEstimatedOperators =
    "--operators --like --hardware --picture-size --num-classes --global-batch --output --format";
constexpr std::string_view kOptionsOfMeasuredOperators =
    "--operators --model --hardware --global-batch --quick --output --cluster --format --device --interface";

constexpr std::string_view kOptionsOfEstimates =
    "--like --hardware --samples --tokens --nodes --nproc-per-node --tensor-parallel --sequence-parallel "
    "--expert-parallel "
    "--memory-limit --global-batch --output --cluster --format";
constexpr std::string_view kOptionsOfImports =
    "--import --import-samples --samples --nodes --nproc-per-node --memory-limit --global-batch --output --cluster "
    "--format";

void require_options_of_operators(const ProfileOptions& options, const CLI::App& command) {
  if (!options.like.empty())
    require_only(kOptionsOfEstimatedOperators, command, "--operators --like");
  else
    require_only(kOptionsOfMeasuredOperators, command, "--operators --model");
  if (options.measure.device != "cpu") throw UsageError("--device: must be cpu with --operators");
}

/// What would do nothing is refused.
void require_options_of_source(const ProfileOptions& options, const CLI::App& command) {
  if (options.operators) return require_options_of_operators(options, command);
  if (!options.like.empty()) require_only(kOptionsOfEstimates, command, "--like");
  if (!options.graph.empty()) require_only(kOptionsOfImports, command, "--import");
  if (!options.like.empty() && options.measure.tokens.size() > 1)
    throw UsageError("--tokens: takes one length with --like");
  if (options.estimate.sequence_parallel && command.count("--tensor-parallel") == 0)
    throw UsageError("--sequence-parallel: needs --tensor-parallel, numbers of ranks that share each layer");
  if (options.model.empty()) return;
  for (const char* const name : {"--hardware", "--samples", "--import-samples", "--expert-parallel"})
    if (command.count(name) > 0)
      throw UsageError(fmt::format("{}: is for estimates and imports; --model measures this machine and --data", name));
}

int run_operators(const ProfileOptions& options) {
  if (options.hardware.empty())
    throw UsageError("profile: --operators needs --hardware NAME[,NAME] (with --model, CPUs: \"cpu,cpu / 2\")");
  return options.like.empty() ? measure_operators(options) : estimate_operators(options);
}

/// From what others measured.
int run_import(ProfileOptions& options) {
  if (!options.memory_limit.empty())
    options.estimate.memory_limit_bytes = parse_bytes(options.memory_limit, "--memory-limit");
  spread_over_nodes(options);
  const Profile profile = import_profile(read_named_file(options.graph), options.graph,
                                         {.measured_samples = options.graph_samples,
                                          .global_batch_size = options.measure.global_batch_size,
                                          .num_samples = options.estimate.num_samples});
  finish(options, profile, estimated_cluster(options.estimate, profile.measurements.front().key.device_type));
  return 0;
}

int run_profile(ProfileOptions& options, const CLI::App& command) {
  const int sources = !options.like.empty() + !options.model.empty() + !options.graph.empty();
  if (sources != 1) throw UsageError("profile: needs either --model FOLDER, --like NAME or --import FILE");
  if ((options.picture_size > 0 || options.num_classes > 0) && (!options.operators || options.like.empty()))
    throw UsageError("--picture-size, --num-classes: are for --operators --like; a folder's net has its own");
  require_options_of_source(options, command);
  if (!options.memory_limit.empty() && !options.model.empty() && options.cluster.empty()) {
    throw UsageError("--memory-limit: is written into the cluster file, so it needs --cluster FILE");
  }
  if (options.measure.threads_per_rank > 0 && options.measure.device != "cpu")
    throw UsageError("--threads-per-rank: needs --device cpu; nothing else computes with threads");
  std::optional<DType>& frozen_dtype = options.measure.frozen_dtype;
  if (frozen_dtype == options.measure.dtype) frozen_dtype.reset();
  if (frozen_dtype == DType::kFloat32) throw UsageError("--frozen-dtype: must be bfloat16, or --dtype's type");
  if (!is_rank()) {  // found out before the measuring, not after it
    require_writable(options.output);
    if (!options.cluster.empty()) require_writable(options.cluster);
  }
  if (!options.graph.empty()) return run_import(options);
  if (options.operators) return run_operators(options);
  if (!options.like.empty()) return run_estimate(options);
  if (options.num_nodes > 0) {
    throw UsageError(
        "--nodes: is for --like and --import, whose devices are emulated; --model measures the ranks that are there, "
        "on this machine or, started by torchrun, srun or mpirun, on several. "
        "To train with ranks of one machine as virtual nodes, give --nodes to train");
  }
  options.measure.model = options.model;
  options.measure.tensor_parallel_sizes = options.estimate.tensor_parallel_sizes;
  options.measure.sequence_parallel = options.estimate.sequence_parallel;
  if (!options.data.empty()) options.measure.data = options.data;
  if (!options.memory_limit.empty())
    options.measure.memory_limit_bytes = parse_bytes(options.memory_limit, "--memory-limit");
  if (!is_rank()) {  // once, before any rank is started; ranks that others have started do so themselves
    for (const std::string& note : check_inputs(options.measure, options.num_ranks)) print_note(note);
  }
  const auto work = [&](Membership& membership) { measure(options, membership.next_round()->self); };
  return run_on_ranks({.num_ranks = options.num_ranks,
                       .interface = options.interface,
                       .needs = {.num_ranks = options.num_ranks},
                       .work = work,
                       .print_result = [&] { show_written(options); }});
}

}  // namespace

Command add_profile_command(CLI::App& app) {
  const auto options = std::make_shared<ProfileOptions>();
  CLI::App* command = app.add_subcommand("profile", "Measure a model's layers, and the links, on this machine");
  add_profile_options(*command, *options);
  return {command, [options, command] { return run_profile(*options, *command); }};
}

}  // namespace frostpipe
