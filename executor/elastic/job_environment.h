#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace frostpipe {

/// Who this process is among the ranks of a job.
struct RankEnvironment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  std::string master_address = "127.0.0.1";
  int master_port = 0;
  /// All ranks are known to be on one host.
  bool is_on_one_host = false;
  /// What the ranks' sockets are bound to (own_address() in addresses.h): the name of an interface, an address, or ""
  /// where nobody has asked for any.
  std::string interface;
  /// Names what this job's ranks write to the store, once they have agreed on it (find_attempt()): a store that
  /// somebody else hosts still holds what ranks before a restart wrote.
  int attempt = 0;
  /// The rendezvous store is hosted outside the ranks (our launcher, torchrun's agent); else rank 0 hosts it.
  bool store_is_external = false;
  /// Our launcher watches the ranks; else they watch each other.
  bool watched_by_launcher = false;
  /// torchrun's agent watches this host's ranks too, and ends all of them when one is lost.
  bool watched_by_agent = false;
  /// By rank: sockets that our launcher has made and whose other ends these ranks have (PeerConnections takes them).
  /// Null where somebody else has launched: the ranks then find each other by a store at the master's address.
  std::shared_ptr<std::vector<Descriptor>> peer_sockets;
};

/// A member's end of the line to our launcher: set in every rank that it starts.
inline constexpr const char* kControlVariable = "FROSTPIPE_CONTROL";

/// By name.
using EnvironmentVariables = std::map<std::string, std::string>;

/// Those of this process.
EnvironmentVariables environment_variables();

/// A whole number >= 0. Throws InvalidInput naming the variable; `when` it must be set stands there: "when RANK is".
int number_of(const EnvironmentVariables& variables, const std::string& name, const std::string& when);

/// Who this process is, as the launcher says that knows the ranks: torchrun (RANK), Open MPI's mpirun
/// (OMPI_COMM_WORLD_RANK), MPICH's or Intel's (PMI_RANK), srun (SLURM_PROCID in a step), asked in this order: mpirun
/// starts its own helpers by srun. None in a process that is no rank. A single task of srun or mpirun is none either:
/// it starts ranks of its own.
///
/// The ranks meet at MASTER_ADDR:MASTER_PORT. torchrun sets both. Under srun and Open MPI the port comes from the job's
/// number, and the address is loopback on one host; of several hosts srun's first one is taken. GLOO_SOCKET_IFNAME
/// names the interface, as for PyTorch.
///
/// Throws InvalidInput naming the variable that is missing or not a number.
std::optional<RankEnvironment> rank_environment(const EnvironmentVariables& variables);
/// By this process's variables.
std::optional<RankEnvironment> rank_environment();

/// The first host of a Slurm node list: "n7" of "n[7-9,12],gpu[1-2]".
std::string first_node_of(const std::string& node_list);

/// This process is a rank, whoever has launched it.
bool is_rank();
/// It speaks for its job: it is no rank, so that it launches them, or it is rank 0 and another launcher's.
bool answers_for_job();

/// Where torchrun's agent has started this process: it is killed when the agent is gone, also after execve(). As ranks
/// of our launcher are; an agent that is killed itself leaves its ranks behind.
void end_with_torchruns_agent();

}  // namespace frostpipe
