#pragma once
#include <string>
#include <vector>

namespace frostpipe {

/// A run on several hosts. Its ranks are numbered host by host.
struct JobOnHosts {
  std::vector<std::string> hosts;   // names that all hosts know; empty if a scheduler chooses them
  std::vector<int> ranks_per_host;  // in the order of the plan's nodes
  int threads_per_rank = 1;
  bool on_gpus = false;
  bool outlives_losses = false;      // ranks go on after one of them, or its host, is lost
  int min_hosts = 0;                 // with torchrun: least number of hosts with which the job goes on; 0: all
  int max_restarts = 3;              // with min_hosts: how often the job goes on after a loss
  std::vector<std::string> command;  // "frostpipe", "train", ..., the same for every rank
};

/// Returns a batch script for sbatch. Requires that all hosts have equally many ranks.
std::string slurm_text(const JobOnHosts& job);
/// Returns a command for each host, which starts the host's ranks.
std::string torchrun_text(const JobOnHosts& job);
std::string by_hand_text(const JobOnHosts& job);
/// Returns one command of Open MPI, which may run on any host.
std::string mpirun_text(const JobOnHosts& job);

/// Joins words for bash, and quotes those that need it.
std::string shell_text(const std::vector<std::string>& words);

}  // namespace frostpipe
