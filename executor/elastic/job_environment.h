#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace frostpipe {

/// The place of this process among the ranks of a job.
struct RankEnvironment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  std::string master_address = "127.0.0.1";
  int master_port = 0;
  /// True if all ranks are known to be on one host.
  bool is_on_one_host = false;
  /// The interface or address to which the ranks' sockets are bound (own_address() in addresses.h); "" if none was
  /// requested.
  std::string interface;
  /// A namespace for the entries of this job's ranks in the store, once they have agreed on it (find_attempt()). A
  /// store that an external process hosts still holds the entries of ranks before a restart.
  int attempt = 0;
  /// True if the rendezvous store is hosted outside the ranks (by frostpipe's launcher or torchrun's agent); otherwise
  /// rank 0 hosts it.
  bool store_is_external = false;
  /// True if frostpipe's launcher watches the ranks; otherwise they watch each other.
  bool watched_by_launcher = false;
  /// True if torchrun's agent watches this host's ranks too, and ends all of them when one is lost.
  bool watched_by_agent = false;
  /// Sockets to the other ranks, by rank, made by frostpipe's launcher; PeerConnections takes them. Null under another
  /// launcher: the ranks then find each other by a store at the master's address.
  std::shared_ptr<std::vector<Descriptor>> peer_sockets;
};

/// Environment variable that names the control channel to frostpipe's launcher, which sets it in every rank that it
/// starts.
inline constexpr const char* kControlVariable = "FROSTPIPE_CONTROL";

/// Environment variables by name.
using EnvironmentVariables = std::map<std::string, std::string>;

/// Returns the environment variables of this process.
EnvironmentVariables environment_variables();

/// Returns a variable that must be a whole number >= 0. Throws InvalidInput that names the variable; `when` completes
/// the rule "must be set ...": "when RANK is", "by torchrun".
int number_of(const EnvironmentVariables& variables, const std::string& name, const std::string& when);

/// Reads this process's rank from the variables of its launcher: torchrun (RANK), Open MPI's mpirun
/// (OMPI_COMM_WORLD_RANK), MPICH's or Intel's (PMI_RANK), srun (SLURM_PROCID in a step). They are tried in this order,
/// because mpirun starts its own helpers by srun. Returns nothing if this process is not a rank. A single task of srun
/// or mpirun is not a rank either: it starts ranks of its own.
///
/// The rendezvous is at MASTER_ADDR:MASTER_PORT. torchrun sets both. If the port is not set, srun's and Open MPI's
/// ranks derive it from the job's number; MPICH's and Intel's need it. If the address is not set, it is loopback on one
/// host and, under srun on several hosts, the first of these; under mpirun it is then needed. GLOO_SOCKET_IFNAME names
/// the interface, as for PyTorch.
///
/// Throws InvalidInput that names the variable that is missing, not a number or out of range.
std::optional<RankEnvironment> rank_environment(const EnvironmentVariables& variables);
/// Does the same with this process's environment.
std::optional<RankEnvironment> rank_environment();

/// Returns the first host of a Slurm node list: "n7" of "n[7-9,12],gpu[1-2]".
std::string first_node_of(const std::string& node_list);

/// True if this process is a rank, whichever launcher has started it.
bool is_rank();
/// True if this process reports for the job: it is no rank (perhaps frostpipe's launcher), or it is rank 0 under
/// another launcher.
bool answers_for_job();

/// If torchrun's agent has started this process, arranges that this process is killed when the agent ends, also after
/// execve(): an agent that is killed would leave its ranks behind. Ranks of frostpipe's launcher die with it anyway.
void end_with_torchruns_agent();

}  // namespace frostpipe
