#pragma once
#include <string>
#include <vector>

namespace frostpipe {

/// A run on several hosts: what its ranks are started with. Ranks are numbered host by host.
struct JobOnHosts {
  std::vector<std::string> hosts;   // names that all hosts know; empty where the cluster's scheduler chooses them
  std::vector<int> ranks_per_host;  // in the order of the plan's nodes
  int threads_per_rank = 1;
  bool on_gpus = false;
  bool outlives_losses = false;      // its ranks go on without one that is lost, and without its host
  int min_hosts = 0;                 // with torchrun the job goes on with so few; 0: all are needed
  std::vector<std::string> command;  // "frostpipe", "train", ...: the same for every rank
};

/// A batch script for sbatch. All hosts must have as many ranks.
std::string slurm_text(const JobOnHosts& job);
/// A command for each host, which starts the host's ranks.
std::string torchrun_text(const JobOnHosts& job);
std::string by_hand_text(const JobOnHosts& job);
/// One command of Open MPI, for any host.
std::string mpirun_text(const JobOnHosts& job);

/// Words as bash reads them: quoted where they must be.
std::string shell_text(const std::vector<std::string>& words);

}  // namespace frostpipe
