#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "simulator/generation/token_flow.h"

namespace frostpipe {

/// How requests choose their way through the machines.
enum class PathChoice {
  flow,    // in proportion to a maximum flow (Helix)
  swarm,   // in inverse proportion to the times that machines took lately (SWARM)
  random,  // any successor alike
};

/// A machine on a request's way, which there computes layers from `first_layer` to the machine's last.
struct PathLeg {
  int machine = 0;
  int first_layer = 0;
  bool operator==(const PathLeg&) const = default;
};

/// Chooses successor by successor, interleaved by weight: the one whose load would be the least with this request. Its
/// load grows by the tokens that pass, a prompt's and each further one, over the flow of the edge (flow), or by the
/// mean time to it and through it (swarm; the newest counts a tenth). Edges with less than a twentieth of the flow that
/// leaves their machine are not used, but for the largest. Ties go to the first.
class RequestPaths {
 public:
  RequestPaths(const GenerationCluster& cluster, PathChoice choice, std::uint64_t seed);

  /// Through machines that have room alone; none, and no load of it, where there is no such way.
  std::optional<std::vector<PathLeg>> choose(int tokens, const std::function<bool(int machine)>& has_room);
  /// A further token of a request goes its path.
  void add_token(const std::vector<PathLeg>& path);
  /// A message of one request took so long from being sent until the machine had computed it.
  void observe(int from, int machine, Nanoseconds duration_ns);

 private:
  double cost(int from, int to, int tokens) const;
  void add_load(const std::vector<PathLeg>& path, int tokens);

  const GenerationCluster& cluster_;
  PathChoice choice_;
  std::vector<std::vector<int>> successors_;
  TokenFlow flow_;                              // PathChoice::flow
  std::vector<std::vector<double>> mean_time_;  // PathChoice::swarm: nanoseconds, [from][to]
  std::vector<std::vector<double>> loads_;      // [from][to]
  std::mt19937_64 random_;
};

}  // namespace frostpipe
