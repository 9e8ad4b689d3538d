#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "cli/commands.h"
#include "cli/shared/common_options.h"
#include "cli/shared/local_ranks.h"
#include "cli/shared/output.h"
#include "cli/shared/progress.h"
#include "cli/shared/table.h"
#include "cli/shared/usage_error.h"
#include "executor/execute.h"
#include "profiles/device_type.h"
#include "profiles/error.h"
#include "profiles/estimate.h"
#include "profiles/files.h"
#include "profiles/hardware.h"
#include "profiles/import/config_shape.h"
#include "profiles/import/import.h"
#include "profiles/link_fit.h"

namespace frostpipe {
namespace {

struct ProfileOptions {
  std::string model, data, output, cluster;
  std::string memory_limit;
  std::string like, hardware, graph;
  int graph_samples = 1;
  EstimateOptions estimate;
  int num_nodes = 0;  // 0 = not given: one
  int num_ranks = 2;  // on each node
  MeasureOptions measure;
  std::string format;
};

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

/// Mean over the layers of one kind.
class MeanTime {
 public:
  void add(Nanoseconds time_ns) {
    sum_ns_ += time_ns;
    ++count_;
  }
  std::string text() const { return count_ > 0 ? in_milliseconds(sum_ns_ / count_) : "-"; }

 private:
  Nanoseconds sum_ns_ = 0;
  int count_ = 0;
};

/// Rows: device, length, kind of layer, what it does; columns: micro-batch sizes.
std::string layers_text(const Profile& profile) {
  const std::string works[] = {
      "forward", "backward",
      "frozen forward" + (profile.frozen_dtype ? fmt::format(" in {}", *profile.frozen_dtype) : "")};
  std::map<std::tuple<std::string, int, LayerKind, int>, std::map<int, MeanTime>> rows;
  std::set<int> sizes;
  for (const Measurement& measurement : profile.measurements) {
    if (measurement.key.tensor_parallel_size != profile.measurements.front().key.tensor_parallel_size) continue;
    const LayerCost& cost = measurement.cost;
    const LayerKind kind = profile.model.layers.at(measurement.key.layer).kind;
    const Nanoseconds times[] = {cost.forward_ns, cost.input_gradient_ns + cost.weight_gradient_ns,
                                 cost.frozen_forward_ns};
    const int size = measurement.key.micro_batch_size;
    sizes.insert(size);
    for (int work = 0; work < 3; ++work)
      rows[{measurement.key.device_type, measurement.key.tokens, kind, work}][size].add(times[work]);
  }
  using enum Table::Align;
  std::vector<Table::Column> columns = {
      {"device", left}, {"tokens", right}, {"layer", left}, {"ms per layer at micro-batch size", left}};
  for (const int size : sizes) columns.push_back({std::to_string(size), right});
  Table table(columns);
  for (auto& [key, times] : rows) {
    const auto& [device, tokens, kind, work] = key;
    std::vector<std::string> cells = {device, std::to_string(tokens), std::string(to_string(kind)), works[work]};
    for (const int size : sizes) cells.push_back(times[size].text());
    table.add_row(cells);
  }
  return table.to_string();
}

std::string updates_text(const Profile& profile) {
  std::map<std::tuple<std::string, LayerKind, std::string>, std::pair<int, Nanoseconds>> updates;
  for (const UpdateMeasurement& update : profile.updates) {
    auto& [layers, sum] = updates[{update.device_type, profile.model.layers.at(update.layer).kind, update.optimizer}];
    ++layers;
    sum += update.update_ns;
  }
  using enum Table::Align;
  Table table({{"device", left}, {"layer", left}, {"optimizer", left}, {"update [ms]", right}});
  for (const auto& [key, value] : updates) {
    const auto& [device, kind, optimizer] = key;
    table.add_row({device, std::string(to_string(kind)), optimizer, in_milliseconds(value.second / value.first)});
  }
  return table.to_string();
}

std::string links_text(const Cluster& cluster) {
  const bool unsteady = is_unsteady(cluster.intra_node.point_to_point) || is_unsteady(cluster.intra_node.collective);
  return fmt::format("{} ranks; between two of one node:\n  messages     {}\n  collectives  {}\n",
                     cluster.devices.size(), to_text(cluster.intra_node.point_to_point),
                     to_text(cluster.intra_node.collective)) +
         (unsteady ? "the links are unsteady: the middle half of what was measured spans more than a factor of 2; "
                     "measure again when the machine is quiet\n"
                   : "");
}

/// Without `cluster` nothing was kept of the links.
std::string profile_text(const Profile& profile, const std::optional<Cluster>& cluster) {
  std::string text =
      fmt::format("{}: {} layers on {}; times are means over the layers of one kind\n\n{}\n{}", profile.model.name,
                  profile.model.layers.size(), profile.machine, layers_text(profile), updates_text(profile));
  if (profile.workload) {
    text +=
        fmt::format("\ndata: {}, {} training samples, {:.1f} tokens on average (longest {}) in mini-batches of {}\n",
                    profile.workload->name, profile.workload->num_samples, profile.workload->tokens,
                    profile.workload->longest_tokens, profile.workload->global_batch_size);
  }
  if (profile.quick) text += "\nquick: few sizes, measured once each; what is predicted from this profile is rough\n";
  return text + "\n" +
         (cluster ? links_text(*cluster)
                  : "links: measured, but not kept; --cluster FILE writes the file that plan needs\n");
}

/// Writes what was asked for and shows it.
void finish(const ProfileOptions& options, const Profile& profile, const Cluster& cluster) {
  if (!options.cluster.empty()) write_named_file(options.cluster, to_json(cluster));
  write_named_file(options.output, to_json(profile));
  print_result(options.format == "json"
                   ? to_json(profile)
                   : profile_text(profile, options.cluster.empty() ? std::nullopt : std::optional(cluster)));
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
  const TransformerShape shape =
      find_shape(options.like, options.measure.tokens.empty() ? 0 : options.measure.tokens.front());
  if (!options.hardware.empty()) {
    const Hardware hardware = find_hardware(options.hardware);
    options.estimate.rates = rates_of(hardware);
    options.estimate.memory_limit_bytes = hardware.memory_bytes;
  }
  if (!options.memory_limit.empty())
    options.estimate.memory_limit_bytes = parse_bytes(options.memory_limit, "--memory-limit");
  spread_over_nodes(options);
  options.estimate.global_batch_size = options.measure.global_batch_size;
  const Estimate made = estimate(shape, options.estimate);
  finish(options, made.profile, made.cluster);
  return 0;
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

int run_profile(ProfileOptions& options) {
  const int sources = !options.like.empty() + !options.model.empty() + !options.graph.empty();
  if (sources != 1) throw UsageError("profile: needs either --model FOLDER, --like NAME or --import FILE");
  if (!options.memory_limit.empty() && !options.model.empty() && options.cluster.empty()) {
    throw UsageError("--memory-limit: is written into the cluster file, so it needs --cluster FILE");
  }
  if (options.measure.threads_per_rank > 0 && options.measure.device != "cpu")
    throw UsageError("--threads-per-rank: needs --device cpu; nothing else computes with threads");
  std::optional<std::string>& frozen_dtype = options.measure.frozen_dtype;
  if (frozen_dtype == options.measure.dtype) frozen_dtype.reset();
  if (frozen_dtype == "float32") throw UsageError("--frozen-dtype: must be bfloat16, or --dtype's type");
  if (!std::getenv("RANK")) {  // found out before the measuring, not after it
    require_writable(options.output);
    if (!options.cluster.empty()) require_writable(options.cluster);
  }
  if (!options.graph.empty()) return run_import(options);
  if (!options.like.empty()) return run_estimate(options);
  if (options.num_nodes > 0) {
    throw UsageError(
        "--nodes: is for --like and --import, whose devices are emulated; --model measures the ranks that are there, "
        "on this machine or, started by torchrun, on several. "
        "To train with ranks of one machine as virtual nodes, give --nodes to train");
  }
  options.measure.model = options.model;
  if (!options.data.empty()) options.measure.data = options.data;
  if (!options.memory_limit.empty())
    options.measure.memory_limit_bytes = parse_bytes(options.memory_limit, "--memory-limit");
  if (!std::getenv("RANK"))  // said once, before any rank is started
    for (const std::string& note : check_inputs(options.measure)) print_note(note);
  return run_on_ranks({.num_ranks = options.num_ranks,
                       .needs = {.num_ranks = options.num_ranks},
                       .work = [&](Membership& membership) { measure(options, membership.form()->self); },
                       .print_result = [&] { show_written(options); }});
}

}  // namespace

Command add_profile_command(CLI::App& app) {
  const auto options = std::make_shared<ProfileOptions>();
  CLI::App* command = app.add_subcommand("profile", "Measure a model's layers, and the links, on this machine");
  CLI::Option* model =
      command->add_option("--model", options->model, "Hugging Face folder of a BERT, ViT or GPT-2 model")
          ->type_name("FOLDER");
  command
      ->add_option("--like", options->like,
                   "Measure nothing, estimate from counted operations: vit-b16, bert-large, or a Hugging Face "
                   "config.json (bert, vit, gpt2), for what-ifs and "
                   "rehearsals")
      ->type_name("NAME");
  command
      ->add_option("--hardware", options->hardware,
                   "With --like: RTX5000, RTX2080Ti, V100, A100, GH200, H100, H200 or a file; default: 8 TFLOP/s GPUs. "
                   "Links are PCIe and 40 Gbit/s")
      ->type_name("NAME");
  command
      ->add_option("--import", options->graph,
                   "Measure nothing, read layers that others measured: a graph of PipeDream or DAPPLE, Piper's or "
                   "Sailor's JSON, a table of microseconds by block and batch size")
      ->type_name("FILE");
  add_count_option(*command, "--import-samples", options->graph_samples,
                   "With --import: samples that the graph's times and sizes are of");
  add_count_option(*command, "--samples", options->estimate.num_samples, "With --like and --import: training samples");
  command
      ->add_option("--nodes", options->num_nodes,
                   "With --like and --import: machines, each with --nproc-per-node devices; default: 1")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
  add_counts_option(*command, "--tensor-parallel", options->estimate.tensor_parallel_sizes,
                    "With --like: tensor-parallel sizes to estimate");
  command->add_option("-o,--output", options->output, "Profile to write")->required()->type_name("PROFILE");
  command->add_option("--cluster", options->cluster, "Also write the ranks and their links")->type_name("FILE");
  command->add_option("--data", options->data, "Data of the run to plan, as train takes it: its length and lengths")
      ->type_name("DATA");
  add_sample_options(*command, options->measure.samples);
  add_count_option(*command, "--global-batch", options->measure.global_batch_size, "Samples per optimizer step");
  add_count_option(*command, "--nproc-per-node", options->num_ranks,
                   "Ranks to start, which all measure at the same time; with --like and --import: devices of each node")
      ->check(CLI::Range(1, 1024).description(""));
  command
      ->add_option("--threads-per-rank", options->measure.threads_per_rank,
                   "Threads that each rank computes with on the CPU; default: one, and then fewer ranks with several "
                   "each on the same cores, so that plan can choose")
      ->check(CLI::Range(1, kMostThreads).description(""))
      ->type_name("N")
      ->needs(model);
  command
      ->add_option("--memory-limit", options->memory_limit,
                   "Limit on each rank's tensors, for the cluster file: 384MiB")
      ->check(CLI::Validator(check_bytes, ""))
      ->type_name("SIZE");
  command
      ->add_flag("--quick", options->measure.quick,
                 "Measure fewer sizes (powers of 8), once each: a first look in a fraction of the time, with rough "
                 "predictions")
      ->needs(model);
  add_counts_option(*command, "--micro-batch-sizes", options->measure.micro_batch_sizes,
                    "Sizes to measure; default: powers of two up to the mini-batch");
  add_counts_option(*command, "--tokens", options->measure.tokens,
                    "Mean lengths to measure; default: the data's, and one towards the longest");
  command
      ->add_option("--test-data", options->measure.test_data,
                   "The file that training will test on, instead of a part of --data")
      ->type_name("DATA");
  command->add_option("--held-out", options->measure.held_out, "Fraction of the data that training will test on")
      ->check(CLI::Range(0.0, 0.99).description(""))
      ->capture_default_str();
  add_seed_option(*command, options->measure.seed);
  command
      ->add_option("--dtype", options->measure.dtype,
                   "float32, or bfloat16 with weights kept in float32: what plans of this profile compute in")
      ->check(CLI::IsMember({"float32", "bfloat16"}).description(""))
      ->type_name("TYPE")
      ->capture_default_str();
  command
      ->add_option("--frozen-dtype", options->measure.frozen_dtype,
                   "What frozen layers compute in: --dtype's type, which is the default, or bfloat16 with weights "
                   "rounded when they freeze. Plans of this profile and their runs follow")
      ->check(CLI::IsMember({"float32", "bfloat16"}).description(""))
      ->type_name("TYPE")
      ->needs(model);
  add_device_option(*command, options->measure.device);
  add_format_option(*command, options->format);
  command->footer(
      "Under torchrun --no-python it uses the ranks that torchrun has started.\n\n"
      "Example:\n  frostpipe profile --model minilm/ --data sections.tsv --memory-limit 384MiB --cluster cluster.json "
      "-o profile.json");
  return {command, [options] { return run_profile(*options); }};
}

}  // namespace frostpipe
