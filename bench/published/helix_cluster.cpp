#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/published/helix_data.h"
#include "bench/published/helix_throughputs.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

/// The artifact's units: bytes, also of what it calls bits. Its simulator copies at 4 and at 5 GB/s.
constexpr double kCardBytesPerSecond = 10e9, kCopySecondsPerByte = 1 / 4e9 + 1 / 5e9;
constexpr Bytes kBytesPerValue = 2;
/// The placement that was made for it. The artifact's links of the others go to machines' first layers alone.
constexpr std::string_view kJoinsInMiddles = "petals";

struct Shape {
  const char* model;
  int num_layers;
  Bytes hidden;
};
constexpr Shape kShapes[] = {{"LLaMA-30B", 60, 6656}, {"LLaMA-70B", 80, 8192}};

/// Of the cluster, those of the sub-cluster's type.
std::vector<int> machines_of(const HelixCluster& cluster, const std::string& sub_cluster) {
  std::vector<int> machines;
  for (std::size_t i = 0; i < cluster.types.size(); ++i)
    if (sub_cluster.empty() || cluster.types[i] == sub_cluster) machines.push_back(static_cast<int>(i));
  return machines;
}

}  // namespace

/// Cache of one layer times layers is a line: every layer more takes the bytes of its weights.
HelixMachine::Capacity HelixMachine::capacity_of(int num_layers) const {
  const std::vector<Capacity>& known = capacities;
  const auto found = std::ranges::find(known, num_layers, &HelixMachine::Capacity::num_layers);
  if (found != known.end()) return *found;
  HelixMachine::Capacity capacity = known.back();
  const auto all_layers = [](const HelixMachine::Capacity& one) { return one.num_layers * one.cache_tokens; };
  const auto& before = known[known.size() - 2];
  const std::int64_t per_layer =
      (all_layers(known.back()) - all_layers(before)) / (known.back().num_layers - before.num_layers);
  const std::int64_t tokens = all_layers(known.back()) + per_layer * (num_layers - known.back().num_layers);
  capacity.cache_tokens = std::max<std::int64_t>(tokens, 0) / num_layers;
  capacity.num_layers = num_layers;
  return capacity;
}

std::variant<GenerationCluster, std::string> helix_cluster(const HelixData& data, const std::string& cluster_name,
                                                           const std::string& model, const std::string& sub_cluster,
                                                           const std::string& method) {
  const auto* const shape = std::ranges::find(kShapes, model, [](const Shape& one) { return std::string(one.model); });
  const std::string placement_name =
      fmt::format("{} {} {}{}{}", cluster_name, model, method, sub_cluster.empty() ? "" : "_", sub_cluster);
  const auto placement = data.placements.find(placement_name);
  const auto from = data.clusters.find(cluster_name);
  if (shape == std::end(kShapes) || placement == data.placements.end() || from == data.clusters.end())
    return fmt::format("no placement {}", placement_name);
  if (from->second.has_other_links)
    return fmt::format("clusters.json: {}: other_links: must be empty: only every_link is simulated", cluster_name);
  const std::vector<int> machines = machines_of(from->second, sub_cluster);
  std::vector<std::string> all_types;  // by them machines are weighed, also those that hold nothing
  for (const int machine : machines) {
    const std::string& type = all_types.emplace_back(from->second.types[machine]);
    const auto known = data.machines.find({model, type});
    if (known == data.machines.end() || known->second.capacities.size() < 2 || known->second.decode_ns.points.empty() ||
        !HelixThroughputs::knows(model, type))
      return fmt::format("no times or capacities of {} on {}", model, type);
  }

  GenerationCluster cluster{.num_layers = shape->num_layers,
                            .joins_in_middles = method == kJoinsInMiddles,
                            .token_bytes = kBytesPerValue,
                            .activation_bytes = kBytesPerValue * shape->hidden};
  for (const HelixPlacement& one : placement->second) {
    if (one.machine < 0 || one.machine >= static_cast<int>(machines.size()))
      throw InvalidInput(fmt::format("placement {}", placement_name), "must name machines of the cluster",
                         std::to_string(one.machine));
    if (one.first_layer < 0 || one.num_layers < 1 || one.num_layers > shape->num_layers - one.first_layer)
      throw InvalidInput(
          fmt::format("placement {}", placement_name),
          fmt::format("must give machine {} some of the model's {} layers", one.machine, shape->num_layers),
          fmt::format("{} from {} on", one.num_layers, one.first_layer));
    const std::string& type = from->second.types[machines[one.machine]];
    const HelixMachine& machine = data.machines.at({model, type});
    const HelixMachine::Capacity capacity = machine.capacity_of(one.num_layers);
    if (capacity.cache_tokens < 3072)
      return fmt::format("{} layers on {} leave its caches {} tokens: not a request of the longest", one.num_layers,
                         type, capacity.cache_tokens);
    cluster.machines.push_back({.first_layer = one.first_layer,
                                .end_layer = one.first_layer + one.num_layers,
                                .prompt_ns = machine.prompt_ns,
                                .decode_ns = machine.decode_ns,
                                .cache_tokens = capacity.cache_tokens,
                                .largest_prompt_batch = capacity.largest_prompt_batch,
                                .largest_decode_batch = capacity.largest_decode_batch,
                                .card_bytes_per_second = kCardBytesPerSecond,
                                .copy_seconds_per_byte = kCopySecondsPerByte});
  }
  const HelixThroughputs throughputs(data, model, shape->num_layers, all_types);
  for (std::size_t i = 0; i < cluster.machines.size(); ++i)
    cluster.machines[i].tokens_per_second =
        throughputs.of(all_types[placement->second[i].machine], cluster.machines[i].num_layers());
  const std::size_t count = cluster.machines.size() + 1;
  cluster.links.assign(count, std::vector(count, from->second.every_link));
  return cluster;
}

}  // namespace frostpipe
