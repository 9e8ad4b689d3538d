#include "bench/published/helix_simulation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "profiles/error.h"
#include "simulator/serving/arrivals.h"

namespace frostpipe {
namespace {

constexpr Nanoseconds kBeginNs = 60'000'000'000, kEndNs = 300'000'000'000;
constexpr std::uint64_t kSeed = 1;
constexpr int kMostRequests = 20'000;
/// Helix's rule offline: it adds requests up to this part of the fullest layer's caches, and chooses no machine beyond
/// that part of its own; online it counts 0.6 of the tokens that are generated in the mean.
constexpr double kMostOfLayer = 0.8, kMostOfMachine = 0.85, kMostOfMachineOnline = 0.9, kExpectedPartOnline = 0.6;
constexpr int kMostTrials = 12;

double mean_seconds(const std::vector<Nanoseconds>& times) {
  if (times.empty()) return 0;
  return 1e-9 * std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

/// Drawn at random, each as often as it comes.
std::vector<GenerationRequest> drawn(const std::vector<GenerationRequest>& requests, std::size_t count) {
  std::mt19937_64 random(kSeed);
  std::vector<GenerationRequest> some(count);
  for (GenerationRequest& one : some) one = requests[random() % requests.size()];
  return some;
}

HelixSimulated simulated(const GenerationCluster& cluster, const GenerationOrder& order) {
  const GenerationRun run = simulate_generation(cluster, order);
  return {.decode_tokens_per_s =
              static_cast<double>(run.decode_ns.size()) / (1e-9 * static_cast<double>(kEndNs - kBeginNs)),
          .prompt_s = mean_seconds(run.prompt_ns),
          .decode_s = mean_seconds(run.decode_ns),
          .in_flight = run.mean_in_flight};
}

HelixSimulated at_arrivals(const GenerationCluster& cluster, GenerationOrder order, double per_second,
                           const std::vector<GenerationRequest>& requests) {
  const std::vector<Nanoseconds> times = arrivals_of(ArrivalProcess::poisson, per_second, kEndNs, kSeed);
  order.load.requests = drawn(requests, times.size());
  for (std::size_t i = 0; i < times.size(); ++i) order.load.requests[i].arrival_ns = times[i];
  HelixSimulated result = simulated(cluster, order);
  result.arrivals_per_s = per_second;
  return result;
}

/// The rate with which `in_flight` requests are, by false position on what is nearly a line through 0.
HelixSimulated with_in_flight(const GenerationCluster& cluster, const GenerationOrder& order, double in_flight,
                              double first_rate, const std::vector<GenerationRequest>& requests) {
  double low = 0, high = 0, low_in_flight = 0, high_in_flight = 0, rate = first_rate;
  HelixSimulated best;
  for (int trial = 0; trial < kMostTrials; ++trial) {
    const HelixSimulated one = at_arrivals(cluster, order, rate, requests);
    if (trial == 0 || std::abs(one.in_flight - in_flight) < std::abs(best.in_flight - in_flight)) best = one;
    if (std::abs(best.in_flight - in_flight) <= 0.01 * in_flight) break;
    (one.in_flight < in_flight ? low : high) = rate;
    (one.in_flight < in_flight ? low_in_flight : high_in_flight) = one.in_flight;
    rate = high == 0 ? rate * std::clamp(in_flight / std::max(one.in_flight, 1e-3), 1.1, 2.0)
                     : low + (high - low) *
                                 std::clamp((in_flight - low_in_flight) / (high_in_flight - low_in_flight), 0.1, 0.9);
  }
  return best;
}

}  // namespace

HelixLoad load_of(const HelixResult& result) {
  if (result.is_online) return HelixLoad::arriving;
  return result.method == "helix" || result.section == "6.6" ? HelixLoad::fits : HelixLoad::constant;
}

std::optional<double> recorded_in_flight(const HelixResult& result, const MeanRequest& mean) {
  if (!result.prompt_s || !result.decode_s) return std::nullopt;
  return result.decode_tokens_per_s * (*result.decode_s + *result.prompt_s / mean.generated_tokens);
}

HelixSimulated simulate_helix(const HelixData& data, const GenerationCluster& cluster, const HelixResult& result) {
  const MeanRequest mean = mean_of(data.requests);
  const bool has_other_choice = result.section != "6.6";  // there the placements are others', the paths Helix's
  GenerationOrder order{.path_choice = has_other_choice && result.method == "swarm"    ? PathChoice::swarm
                                       : has_other_choice && result.method == "random" ? PathChoice::random
                                                                                       : PathChoice::flow,
                        .mean = mean,
                        .begin_ns = kBeginNs,
                        .end_ns = kEndNs,
                        .seed = kSeed};
  const HelixLoad load = load_of(result);
  const std::optional<double> in_flight = recorded_in_flight(result, mean);
  FROSTPIPE_CHECK(load == HelixLoad::fits || in_flight, "the load of a run is recorded");
  if (load == HelixLoad::arriving) {
    order.load = {.expected_generated_tokens = kExpectedPartOnline * mean.generated_tokens,
                  .most_of_machine = kMostOfMachineOnline};
    const double first_rate = result.decode_tokens_per_s / mean.generated_tokens;
    return with_in_flight(cluster, order, *in_flight, first_rate, data.requests);
  }
  order.load = {.kind = LoadKind::filling,
                .requests = drawn(data.requests, kMostRequests),
                .expected_generated_tokens = mean.generated_tokens,
                .most_of_machine = kMostOfMachine,
                .most_of_layer = kMostOfLayer};
  if (load == HelixLoad::constant) {
    order.load.kind = LoadKind::constant;
    order.load.in_flight = std::max(2, 10 * static_cast<int>(std::lround(*in_flight / 10)));
    order.load.most_of_machine = 1;
  }
  return simulated(cluster, order);
}

}  // namespace frostpipe
