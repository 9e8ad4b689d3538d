#pragma once
#include <optional>
#include <string>
#include <vector>

namespace frostpipe {

/// Who this process is among the ranks of a job; read from the variables that torchrun, and our own launcher, set.
struct RankEnvironment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  std::string master_address = "127.0.0.1";
  int master_port = 0;
  /// The rendezvous store is hosted outside the ranks (our launcher, torchrun's agent); else rank 0 hosts it.
  bool store_is_external = false;
};

/// Exit code by which a rank tells our launcher that it only lost its peer: another rank is the one to name.
inline constexpr int kPeerLostExitCode = 3;

/// From RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT (and TORCHELASTIC_USE_AGENT_STORE); none if RANK is not set.
/// Throws InvalidInput naming the variable that is missing or not a number.
std::optional<RankEnvironment> rank_environment();

/// Runs `command` once per local rank with the variables of RankEnvironment set, hosts the rendezvous store and watches the
/// ranks: returns 0 when all ended with 0. When one dies, or its heartbeat has been silent for 10 s, all others are ended within
/// seconds, a sentence on stderr names the rank and how it ended, and the exit code is 1 (2 if a rank ended with 2: bad usage). Ranks die with
/// the launcher (also on its SIGKILL). SIGINT and SIGTERM are passed on.
int launch_local_ranks(const std::vector<std::string>& command, int num_ranks);

}  // namespace frostpipe
