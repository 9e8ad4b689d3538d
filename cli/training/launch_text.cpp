#include "cli/training/launch_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <string_view>

namespace frostpipe {
namespace {

constexpr int kMasterPort = 29500;  // torchrun's default

int world_size(const JobOnHosts& job) {
  return std::accumulate(job.ranks_per_host.begin(), job.ranks_per_host.end(), 0);
}

/// Joins `text_of(host, first_rank)` of every host, each below the host's name.
template <class Text>
std::string for_each_host(const JobOnHosts& job, const Text& text_of) {
  std::string text;
  int first_rank = 0;
  for (std::size_t host = 0; host < job.hosts.size(); ++host) {
    text += fmt::format("# on {}\n{}\n", job.hosts[host], text_of(host, first_rank));
    first_rank += job.ranks_per_host[host];
  }
  return text;
}

/// Returns commands for torchrun's elastic agents. They number the hosts themselves, and again after a loss, so that
/// every host may be started at any time.
std::string elastic_torchrun_text(const JobOnHosts& job) {
  return for_each_host(job, [&](std::size_t host, int) {
    return fmt::format(
        "torchrun --no-python --nnodes {}:{} --nproc-per-node {} --max-restarts {} --rdzv-backend c10d "
        "--rdzv-endpoint {}:{} {}",
        job.min_hosts, job.hosts.size(), job.ranks_per_host[host], job.max_restarts, job.hosts.front(), kMasterPort,
        shell_text(job.command));
  });
}

}  // namespace

std::string shell_text(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=@%+";
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char letter : word) text += letter == '\'' ? "'\\''" : std::string(1, letter);
    text += '\'';
  }
  return text;
}

std::string slurm_text(const JobOnHosts& job) {
  const int ranks_per_host = job.ranks_per_host.front();
  const std::string cores = fmt::format("--cpus-per-task={}", job.threads_per_rank);
  std::string text = fmt::format(
      "#!/bin/bash\n"
      "#SBATCH --nodes={}\n"
      "#SBATCH --ntasks-per-node={}\n",
      job.ranks_per_host.size(), ranks_per_host);
  text +=
      job.on_gpus ? fmt::format("#SBATCH --gpus-per-node={}\n", ranks_per_host) : fmt::format("#SBATCH {}\n", cores);
  // A job that is queued again goes on from its newest checkpoint, and appends to its output.
  text += "#SBATCH --requeue\n#SBATCH --open-mode=append\n";
  if (job.outlives_losses) text += "#SBATCH --no-kill\n";
  // srun does not take over the script's --cpus-per-task (since Slurm 22.05).
  return text + fmt::format("srun {} {}{}\n",
                            job.outlives_losses ? "--no-kill --kill-on-bad-exit=0" : "--kill-on-bad-exit=1",
                            job.on_gpus ? "" : cores + " ", shell_text(job.command));
}

std::string torchrun_text(const JobOnHosts& job) {
  if (job.min_hosts > 0) return elastic_torchrun_text(job);
  return for_each_host(job, [&](std::size_t host, int) {
    return fmt::format(
        "torchrun --no-python --nnodes {} --node-rank {} --nproc-per-node {} --master-addr {} --master-port {} {}",
        job.hosts.size(), host, job.ranks_per_host[host], job.hosts.front(), kMasterPort, shell_text(job.command));
  });
}

std::string by_hand_text(const JobOnHosts& job) {
  const std::string command = fmt::format("WORLD_SIZE={} MASTER_ADDR={} MASTER_PORT={} {}", world_size(job),
                                          job.hosts.front(), kMasterPort, shell_text(job.command));
  return for_each_host(job, [&](std::size_t host, int first_rank) {
    const int num_ranks = job.ranks_per_host[host];
    if (num_ranks == 1) return fmt::format("RANK={} LOCAL_RANK=0 {}", first_rank, command);
    // Background processes do not get Ctrl-C. The exit code is that of the last rank.
    return fmt::format(
        "(trap 'kill $(jobs -p)' INT TERM; "
        "for i in {{0..{}}}; do RANK=$(({} + i)) LOCAL_RANK=$i {} & done; wait $(jobs -p))",
        num_ranks - 1, first_rank, command);
  });
}

std::string mpirun_text(const JobOnHosts& job) {
  std::string hosts;
  for (std::size_t host = 0; host < job.hosts.size(); ++host)
    hosts += fmt::format("{}{}:{}", hosts.empty() ? "" : ",", job.hosts[host], job.ranks_per_host[host]);
  // Ranks are in the order of the hosts. Each may use all cores of its host, because it has threads.
  return fmt::format("mpirun --host {} --map-by slot --bind-to none -x MASTER_ADDR={} {}\n", hosts, job.hosts.front(),
                     shell_text(job.command));
}

}  // namespace frostpipe
