#include "bench/published/helix_simulation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string_view>

#include "simulator/serving/arrivals.h"

namespace frostpipe {
namespace {

constexpr Nanoseconds kSecond = 1'000'000'000, kEndNs = 300 * kSecond;
constexpr std::uint64_t kSeeds[] = {1, 2, 3, 4, 5};
constexpr int kMostRequests = 20'000;
/// Helix's rule offline: it adds requests up to this part of the fullest layer's caches, and chooses no machine beyond
/// that part of its own; online it counts 0.6 of the tokens that are generated in the mean.
constexpr double kMostOfLayer = 0.8, kMostOfMachine = 0.85, kMostOfMachineOnline = 0.9, kExpectedPartOnline = 0.6;

struct ArtifactLoad {
  std::string_view section, model, method, sub_cluster;
  bool is_online = false;
  double value = 0;
};
/// Of step3_simulation.py and step5_start_host.py (6.3) and setup1_start_host.py (6.7).
constexpr ArtifactLoad kLoads[] = {
    {"6.3", "LLaMA-30B", "swarm", "", false, 50},        {"6.3", "LLaMA-30B", "separate", "a100", false, 30},
    {"6.3", "LLaMA-30B", "separate", "l4", false, 30},   {"6.3", "LLaMA-30B", "separate", "t4", false, 30},
    {"6.3", "LLaMA-70B", "swarm", "", false, 180},       {"6.3", "LLaMA-70B", "separate", "a100", false, 18},
    {"6.3", "LLaMA-70B", "separate", "l4", false, 40},   {"6.3", "LLaMA-70B", "separate", "t4", false, 3},
    {"6.7", "LLaMA-70B", "swarm", "", false, 240},       {"6.7", "LLaMA-70B", "random", "", false, 240},
    {"6.3", "LLaMA-30B", "helix", "a100", true, 600},    {"6.3", "LLaMA-30B", "helix", "l4", true, 200},
    {"6.3", "LLaMA-30B", "helix", "t4", true, 170},      {"6.3", "LLaMA-30B", "swarm", "", true, 450},
    {"6.3", "LLaMA-30B", "separate", "a100", true, 500}, {"6.3", "LLaMA-30B", "separate", "l4", true, 150},
    {"6.3", "LLaMA-30B", "separate", "t4", true, 150},   {"6.3", "LLaMA-70B", "helix", "", true, 1400},
    {"6.3", "LLaMA-70B", "swarm", "", true, 700},
};

/// Section 6.6 compares placements on Helix's paths.
PathChoice path_choice_of(const HelixResult& result) {
  if (result.section == "6.6" || result.method == "helix") return PathChoice::flow;
  return result.method == "swarm" ? PathChoice::swarm : PathChoice::random;
}

double mean_seconds(const std::vector<Nanoseconds>& times) {
  if (times.empty()) return 0;
  return 1e-9 * std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

/// Drawn at random, each as often as it comes.
std::vector<GenerationRequest> drawn(const std::vector<GenerationRequest>& requests, std::size_t count,
                                     std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<GenerationRequest> some(count);
  for (GenerationRequest& one : some) one = requests[random() % requests.size()];
  return some;
}

GenerationLoad requests_of(const HelixLoad& load, bool has_flow, double arrivals_per_s, const HelixData& data,
                           std::uint64_t seed) {
  GenerationLoad result{.expected_generated_tokens = kHelixMean.generated_tokens};
  if (load.kind == LoadKind::arriving) {
    const std::vector<Nanoseconds> times = arrivals_of(ArrivalProcess::poisson, arrivals_per_s, kEndNs, seed);
    result.requests = drawn(data.requests, times.size(), seed);
    for (std::size_t i = 0; i < times.size(); ++i) result.requests[i].arrival_ns = times[i];
    if (!has_flow) return result;
    result.expected_generated_tokens *= kExpectedPartOnline;
    result.most_of_machine = kMostOfMachineOnline;
    return result;
  }
  result.kind = LoadKind::constant;
  result.requests = drawn(data.requests, kMostRequests, seed);
  if (load.kind == LoadKind::constant) {
    result.in_flight = static_cast<int>(load.value);
    return result;
  }
  result.kind = LoadKind::filling;
  result.most_of_machine = kMostOfMachine;
  result.most_of_layer = kMostOfLayer;
  return result;
}

}  // namespace

std::optional<HelixLoad> load_of(const HelixResult& result) {
  if (!result.is_online && path_choice_of(result) == PathChoice::flow) return HelixLoad{};
  const auto* const found = std::ranges::find_if(kLoads, [&](const ArtifactLoad& one) {
    return one.section == result.section && one.model == result.model && one.method == result.method &&
           one.sub_cluster == result.sub_cluster && one.is_online == result.is_online;
  });
  if (found == std::end(kLoads)) return std::nullopt;
  return HelixLoad{.kind = result.is_online ? LoadKind::arriving : LoadKind::constant, .value = found->value};
}

HelixSimulated simulate_helix(const HelixData& data, const GenerationCluster& cluster, const HelixResult& result,
                              const HelixLoad& load) {
  const bool starts_late = result.is_online && result.model == "LLaMA-70B";
  GenerationOrder order{
      .path_choice = path_choice_of(result), .begin_ns = (starts_late ? 200 : 60) * kSecond, .end_ns = kEndNs};
  const double seconds = 1e-9 * static_cast<double>(order.end_ns - order.begin_ns);
  HelixSimulated mean;
  if (load.kind == LoadKind::arriving) mean.arrivals_per_s = load.value / mean_of(data.requests).tokens();
  for (const std::uint64_t seed : kSeeds) {
    order.seed = seed;
    order.load = requests_of(load, order.path_choice == PathChoice::flow, mean.arrivals_per_s, data, seed);
    const GenerationRun run = simulate_generation(cluster, order);
    constexpr double kPart = 1.0 / std::size(kSeeds);
    mean.decode_tokens_per_s += kPart * static_cast<double>(run.decode_ns.size()) / seconds;
    mean.prompt_s += kPart * mean_seconds(run.prompt_ns);
    mean.decode_s += kPart * mean_seconds(run.decode_ns);
    mean.in_flight += kPart * run.mean_in_flight;
  }
  return mean;
}

}  // namespace frostpipe
