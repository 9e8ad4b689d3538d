#include "simulator/generation/request_paths.h"

#include <algorithm>
#include <numeric>

namespace frostpipe {
namespace {

constexpr double kLeastPartOfFlow = 0.05;
constexpr double kWeightOfNewest = 0.1;
constexpr double kUnknownNs = 1e9;  // alike for all machines, so that their first requests go round robin

}  // namespace

RequestPaths::RequestPaths(const GenerationCluster& cluster, PathChoice choice, std::uint64_t seed)
    : cluster_(cluster), choice_(choice), successors_(successors(cluster)), random_(seed) {
  const std::size_t count = cluster.machines.size() + 1;
  loads_.assign(count, std::vector<double>(count));
  mean_time_.assign(count, std::vector<double>(count, kUnknownNs));
  if (choice != PathChoice::flow) return;
  std::vector<double> throughputs;
  for (const GenerationMachine& machine : cluster.machines) throughputs.push_back(machine.tokens_per_second);
  flow_ = maximum_flow(cluster, throughputs);
  for (std::size_t from = 0; from < count; ++from) {
    const std::vector<double>& edges = flow_.edges[from];
    const double least =
        std::min(kLeastPartOfFlow * std::accumulate(edges.begin(), edges.end(), 0.0), std::ranges::max(edges));
    std::erase_if(successors_[from], [&](int to) { return edges[to] <= 0 || edges[to] < least; });
  }
}

double RequestPaths::cost(int from, int to, int tokens) const {
  if (choice_ == PathChoice::flow) return tokens / flow_.edges[from][to];
  return choice_ == PathChoice::swarm ? mean_time_[from][to] : 0;
}

std::optional<std::vector<PathLeg>> RequestPaths::choose(int tokens, const std::function<bool(int)>& has_room) {
  std::vector<PathLeg> path;
  int from = cluster_.coordinator(), layer = 0;
  while (layer < cluster_.num_layers) {
    std::vector<int> open;
    std::ranges::copy_if(successors_[from], std::back_inserter(open), has_room);
    if (open.empty()) return std::nullopt;
    const auto load = [&](int to) { return loads_[from][to] + cost(from, to, tokens); };
    const int to =
        choice_ == PathChoice::random ? open[random_() % open.size()] : *std::ranges::min_element(open, {}, load);
    path.push_back({.machine = to, .first_layer = layer});
    layer = cluster_.machines[to].end_layer;
    from = to;
  }
  add_load(path, tokens);
  return path;
}

void RequestPaths::add_load(const std::vector<PathLeg>& path, int tokens) {
  int from = cluster_.coordinator();
  for (const PathLeg& leg : path) {
    loads_[from][leg.machine] += cost(from, leg.machine, tokens);
    from = leg.machine;
  }
}

void RequestPaths::add_token(const std::vector<PathLeg>& path) {
  if (choice_ == PathChoice::flow) add_load(path, 1);
}

void RequestPaths::observe(int from, int machine, Nanoseconds duration_ns) {
  double& mean = mean_time_[from][machine];
  mean += kWeightOfNewest * (static_cast<double>(duration_ns) - mean);
}

}  // namespace frostpipe
