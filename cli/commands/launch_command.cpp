#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <memory>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/usage_error.h"
#include "cli/training/launch_text.h"
#include "cli/training/train_options.h"
#include "profiles/device_type.h"

namespace frostpipe {
namespace {

/// A way to start ranks on several hosts.
struct Launcher {
  const char *name, *output;
  std::string (*text)(const JobOnHosts&);
  bool chooses_hosts = false;    // the launcher chooses the hosts, and all must have equally many ranks
  bool counts_by_colon = false;  // the launcher reads "host:ranks", so hosts cannot be IPv6 addresses
};
constexpr std::array kLaunchers{
    Launcher{"slurm", "a batch script for sbatch, with equally many ranks on every node", slurm_text, true},
    Launcher{"torchrun", "a command of torchrun for each host", torchrun_text},
    Launcher{"mpirun", "one command of Open MPI's mpirun", mpirun_text, false, true},
    Launcher{"by-hand", "a command for each host, which needs only bash there", by_hand_text},
};

struct LaunchCommandOptions {
  std::string launcher;
  std::vector<std::string> hosts;
  std::string plan;
  int min_hosts = 0;
  std::vector<std::string> of_train;
};

/// Returns "" if the text may be the name or the address of a host, else why not.
std::string check_host_name(const std::string& text) {
  const auto is_of_name = [](unsigned char letter) {
    return std::isalnum(letter) || letter == '-' || letter == '.' || letter == ':';
  };
  if (!text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), is_of_name)) return "";
  return fmt::format("'{}' is not the name of a host", text);
}

std::vector<std::string> launcher_names() {
  std::vector<std::string> names;
  for (const Launcher& launcher : kLaunchers) names.emplace_back(launcher.name);
  return names;
}

std::string launcher_help() {
  std::vector<std::string> lines;
  for (const Launcher& launcher : kLaunchers) lines.push_back(fmt::format("{} ({})", launcher.name, launcher.output));
  return fmt::format("Launcher whose commands are printed: {}", fmt::join(lines, ", "));
}

/// Parses the options as `train` will parse them, so that an error is found before a job has waited for its hosts.
TrainCommandOptions parsed_train_options(const LaunchCommandOptions& options) {
  CLI::App train;
  train.set_help_flag();
  TrainCommandOptions parsed;
  add_train_options(train, parsed);
  std::vector<std::string> words = options.of_train;
  words.insert(words.begin(), options.plan);
  std::reverse(words.begin(), words.end());  // CLI11 takes the words in reverse order
  try {
    train.parse(words);
  } catch (const CLI::ParseError& error) {
    throw UsageError(fmt::format("options of train (after --): {}", error.what()));
  }
  require_consistent(parsed);
  return parsed;
}

/// Returns the number of ranks on each node. Throws InvalidInput unless there are several nodes.
std::vector<int> ranks_per_node(const Cluster& cluster, const std::string& plan) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < cluster.devices.size(); ++rank) {
    if (rank == 0 || cluster.devices[rank].node != cluster.devices[rank - 1].node) ranks.push_back(0);
    ++ranks.back();
  }
  if (ranks.size() > 1) return ranks;
  throw InvalidInput(fmt::format(
      "{}: its cluster is one node, on which `frostpipe train {}` starts the ranks itself. For several hosts make the "
      "plan for a cluster whose devices have more than one node, or name such a cluster by --cluster FILE (after --)",
      plan, plan));
}

/// Returns whether every layer is still on some rank, whichever node but the first (that of rank 0) is lost.
bool outlives_lost_nodes(const TrainingPlan& plan, const Cluster& cluster) {
  const auto node_of = [&](int rank) { return cluster.devices[rank].node; };
  for (const Phase& phase : plan.phases) {
    const ParallelLayout& layout = phase.layout;
    for (int pipeline_rank = 0; pipeline_rank < layout.pipeline_parallel_size; ++pipeline_rank) {
      for (int tensor = 0; tensor < layout.tensor_parallel_size; ++tensor) {
        const std::vector<int> ranks = replicas_of(layout, pipeline_rank, tensor);
        const int node = node_of(ranks.front());
        if (node != node_of(0) && std::ranges::all_of(ranks, [&](int rank) { return node_of(rank) == node; }))
          return false;
      }
    }
  }
  return true;
}

/// Throws InvalidInput if the cluster has GPUs and the run's device is the CPU. A rehearsal needs no GPUs.
void require_device_of(const Cluster& cluster, const TrainCommandOptions& train) {
  const std::string& type = cluster.devices.front().type;
  const bool is_cpu = type == device_type_with_threads("cpu", threads_of(type));
  if (is_cpu || train.train.device != "cpu") return;
  throw InvalidInput("--device", fmt::format("must be cuda (after --): {} is for {}", train.plan, type),
                     train.train.device);
}

void require_hosts(const LaunchCommandOptions& options, const Launcher& launcher, const std::vector<int>& ranks) {
  const auto is_ipv6 = [](const std::string& host) { return host.find(':') != std::string::npos; };
  if (launcher.counts_by_colon && std::any_of(options.hosts.begin(), options.hosts.end(), is_ipv6))
    throw UsageError(fmt::format("--hosts: {} takes no IPv6 addresses; give names", launcher.name));
  if (!launcher.chooses_hosts) {
    if (options.hosts.size() == ranks.size()) return;
    throw UsageError(fmt::format("launch {}: needs --hosts with {} names, one for each node of {}; there {} {}",
                                 launcher.name, ranks.size(), options.plan, options.hosts.size() == 1 ? "is" : "are",
                                 options.hosts.size()));
  }
  if (!options.hosts.empty())
    throw UsageError(fmt::format("--hosts: {} takes none, the cluster's scheduler chooses them", launcher.name));
  if (std::adjacent_find(ranks.begin(), ranks.end(), std::not_equal_to<>()) == ranks.end()) return;
  throw InvalidInput(
      options.plan + ": ranks of its nodes",
      fmt::format("must be as many on every node for {}; torchrun, mpirun and by-hand take any", launcher.name),
      fmt::format("{}", fmt::join(ranks, ", ")));
}

/// Throws UsageError for --min-hosts with another launcher: only torchrun's agents can go on with fewer hosts.
void require_min_hosts(const LaunchCommandOptions& options, const Launcher& launcher) {
  if (options.min_hosts == 0) return;
  if (launcher.text != torchrun_text)
    throw UsageError(
        fmt::format("--min-hosts: must be left out with {}; only torchrun goes on with fewer hosts", launcher.name));
  if (options.min_hosts > static_cast<int>(options.hosts.size()))
    throw UsageError(fmt::format("--min-hosts: must be at most {}, the number of hosts, is {}", options.hosts.size(),
                                 options.min_hosts));
}

int run_launch(const LaunchCommandOptions& options) {
  const Launcher& launcher = *std::ranges::find(kLaunchers, options.launcher, &Launcher::name);
  const TrainCommandOptions train = parsed_train_options(options);
  const TrainingPlan plan = load_plan(options.plan);
  const Cluster cluster = load_cluster_of(plan, options.plan, train.sources);
  JobOnHosts job{.hosts = options.hosts,
                 .ranks_per_host = ranks_per_node(cluster, options.plan),
                 .threads_per_rank = plan.threads_per_rank,
                 .on_gpus = train.train.device == "cuda",
                 .outlives_losses = train.max_restarts > 0 && outlives_lost_nodes(plan, cluster),
                 .min_hosts = options.min_hosts,
                 .max_restarts = train.max_restarts,
                 .command = {"frostpipe", "train", options.plan}};
  job.command.insert(job.command.end(), options.of_train.begin(), options.of_train.end());
  require_device_of(cluster, train);
  require_hosts(options, launcher, job.ranks_per_host);
  require_min_hosts(options, launcher);
  print_result(launcher.text(job));
  return 0;
}

}  // namespace

Command add_launch_command(CLI::App& app) {
  const auto options = std::make_shared<LaunchCommandOptions>();
  CLI::App* command =
      app.add_subcommand("launch", "Print how to start a plan's training on several hosts; starts nothing");
  command->add_option("LAUNCHER", options->launcher, launcher_help())
      ->required()
      ->check(CLI::IsMember(launcher_names()).description(""))
      ->type_name("");
  command
      ->add_option("--hosts", options->hosts,
                   "Names or addresses of the hosts, in the order of the cluster's nodes. The first has rank 0, and "
                   "all must reach it by this name. slurm takes none")
      ->delimiter(',')
      ->allow_extra_args(false)  // PLAN may follow
      ->check(CLI::Validator(check_host_name, ""))
      ->type_name("A,B");
  command
      ->add_option("--min-hosts", options->min_hosts,
                   "For torchrun, the least number of hosts with which to go on after others are lost, in a layout "
                   "that is planned for them. Default: all hosts")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
  command->add_option("PLAN", options->plan, "Plan to train by. Its cluster says which ranks share a node")
      ->required()
      ->type_name("");
  command->add_option("OPTIONS", options->of_train, "Options of train, after --")->type_name("");
  command->footer(
      "Ranks per node come from the cluster that the plan names. The same files must be on every host, and frostpipe "
      "on its PATH.\n\n"
      "Example:\n  frostpipe launch slurm plan.json -- --data my.tsv -o runs/mine > job.sh\n"
      "  frostpipe launch by-hand --hosts a,b plan.json -- --data my.tsv -o runs/mine");
  return {command, [options] { return run_launch(*options); }};
}

}  // namespace frostpipe
