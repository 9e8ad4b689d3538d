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
#include "cli/profiling/profile_options.h"
#include "cli/profiling/profile_text.h"
#include "cli/shared/local_ranks.h"
#include "cli/shared/output.h"
#include "cli/shared/progress.h"
#include "cli/shared/usage_error.h"
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

/// Writes profile and cluster, and prints them.
void finish(const ProfileOptions& options, const Profile& profile, const Cluster& cluster) {
  const std::string profile_json = to_json(profile), cluster_json = to_json(cluster);
  // Parsing the texts finds sizes that other commands would refuse, before anything is written.
  profile_from_json(profile_json, options.output);
  cluster_from_json(cluster_json, options.cluster);
  const std::string result =
      options.format == "json" ? profile_json
                               : profile_text(profile, options.cluster.empty() ? std::nullopt : std::optional(cluster));
  if (!options.cluster.empty()) write_named_file(options.cluster, cluster_json);
  write_named_file(options.output, profile_json);
  print_result(result);
}

/// Prints the files that the ranks have written, unless they are pipes or devices, which cannot be read again.
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

/// Gives the estimated cluster --nodes nodes with --nproc-per-node devices each.
void spread_over_nodes(ProfileOptions& options) {
  options.estimate.num_nodes = options.num_nodes;
  options.estimate.ranks_per_node = options.num_ranks;
}

/// Estimates a profile from counted operations.
int run_estimate(ProfileOptions& options) {
  const EstimatedModel model =
      find_model(options.like, options.measure.tokens.empty() ? 0 : options.measure.tokens.front());
  options.estimate.dtype = options.measure.dtype;
  if (!options.hardware.empty()) apply(hardware_named(options.hardware), options.estimate);
  if (!options.memory_limit.empty())
    options.estimate.memory_limit_bytes = parse_bytes(options.memory_limit, "--memory-limit");
  spread_over_nodes(options);
  require_tensor_ranks(model.config, options.estimate);
  options.estimate.global_batch_size = options.measure.global_batch_size;
  std::vector<int>& sizes = options.estimate.tensor_parallel_sizes;
  if (std::ranges::find(sizes, 1) == sizes.end()) sizes.insert(sizes.begin(), 1);  // as in measured profiles
  const Estimate made = estimate(model, options.estimate);
  finish(options, made.profile, made.cluster);
  return 0;
}

/// Makes a profile from a file with another tool's measurements.
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

int run_profile(ProfileOptions& options) {
  const int sources = !options.like.empty() + !options.model.empty() + !options.graph.empty();
  if (sources != 1) throw UsageError("profile: needs either --model FOLDER, --like NAME or --import FILE");
  if (!options.like.empty() && options.measure.tokens.size() > 1)
    throw UsageError("--tokens: takes one length with --like");
  if (options.measure.threads_per_rank > 0 && options.measure.device != "cpu")
    throw UsageError("--threads-per-rank: needs --device cpu; nothing else computes with threads");
  std::optional<DType>& frozen_dtype = options.measure.frozen_dtype;
  if (frozen_dtype == options.measure.dtype) frozen_dtype.reset();
  if (frozen_dtype == DType::kFloat32) throw UsageError("--frozen-dtype: must be bfloat16, or --dtype's type");
  if (!is_rank()) {  // fails before the measuring, not after it
    require_writable(options.output);
    if (!options.cluster.empty()) require_writable(options.cluster);
  }
  if (!options.graph.empty()) return run_import(options);
  if (!options.like.empty()) return run_estimate(options);
  options.measure.model = options.model;
  options.measure.links = !options.cluster.empty();
  options.measure.tensor_parallel_sizes = options.estimate.tensor_parallel_sizes;
  options.measure.sequence_parallel = options.estimate.sequence_parallel;
  if (!options.data.empty()) options.measure.data = options.data;
  if (!options.memory_limit.empty())
    options.measure.memory_limit_bytes = parse_bytes(options.memory_limit, "--memory-limit");
  if (!is_rank()) {  // once, before any rank is started
    if (!options.measure.links)
      print_note("links between ranks are not measured; plan needs them too, in a file that --cluster FILE writes");
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
  CLI::App* command = app.add_subcommand(
      "profile", "Measure or estimate the time and memory of a model's layers, and the links between ranks");
  add_profile_options(*command, *options);
  return {command, [options] { return run_profile(*options); }};
}

}  // namespace frostpipe
