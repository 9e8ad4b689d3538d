#include "planner/search/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "planner/search/link_placement.h"

namespace frostpipe {
namespace {

using Kind = std::pair<std::string, std::optional<Bytes>>;

/// Returns every order of the pipeline ranks' kinds, or none if there are too many.
std::vector<std::vector<int>> all_orders(std::vector<int> kinds) {
  std::sort(kinds.begin(), kinds.end());
  std::vector<std::vector<int>> orders;
  do {
    if (orders.size() == kMaxOrders) return {};
    orders.push_back(kinds);
  } while (std::next_permutation(kinds.begin(), kinds.end()));
  return orders;
}

/// Returns whether the first `devices` ranks, in groups of `size` neighbours, have one type of device in each group.
bool have_one_type(const Cluster& cluster, int size, int devices) {
  for (int rank = 0; rank < devices; ++rank)
    if (cluster.devices[rank].type != cluster.devices[rank - rank % size].type) return false;
  return true;
}

/// Returns what to try if tensor ranks are apart.
std::string how_to_join_devices(const Cluster& cluster, int tensor_parallel_size) {
  std::map<std::pair<int, std::string>, int> alike;  // devices by node and type
  for (const Device& device : cluster.devices) ++alike[{device.node, device.type}];
  const bool may_be_together = std::all_of(
      alike.begin(), alike.end(), [&](const auto& devices) { return devices.second % tensor_parallel_size == 0; });
  return may_be_together ? "order the ranks so that devices of a node and type are neighbours"
                         : "try a size that divides the devices of every node and type";
}

}  // namespace

std::vector<std::vector<int>> placements_of(const Cluster& cluster, const PlanOptions& options,
                                            int tensor_parallel_size, int pipeline_parallel_size) {
  auto by_links = placements_by_links(cluster, options, tensor_parallel_size, pipeline_parallel_size);
  if (by_links.size() > 1 || by_links.front() != options.placement) return by_links;
  std::map<Kind, std::vector<int>> ranks_of;
  const int devices = devices_to_use(cluster, options);
  for (int rank = 0; rank < devices; ++rank)
    ranks_of[{cluster.devices[rank].type, cluster.devices[rank].memory_limit_bytes}].push_back(rank);
  PlanOptions with_size = options;
  with_size.tensor_parallel_size = tensor_parallel_size;
  const int per_pipeline_rank =
      replicas_of_pipelines(cluster, with_size, pipeline_parallel_size) * tensor_parallel_size;
  if (ranks_of.size() < 2 || !options.placement.empty() || per_pipeline_rank < 1 ||
      per_pipeline_rank * pipeline_parallel_size != devices)
    return {options.placement};
  std::vector<std::vector<int>> ranks;        // by kind
  std::vector<int> kinds, pipeline_ranks_of;  // kind of each pipeline rank, ascending; pipeline ranks of each kind
  for (auto& [kind, of_kind] : ranks_of) {
    if (of_kind.size() % per_pipeline_rank != 0) return {options.placement};
    pipeline_ranks_of.push_back(static_cast<int>(of_kind.size()) / per_pipeline_rank);
    kinds.insert(kinds.end(), pipeline_ranks_of.back(), static_cast<int>(ranks.size()));
    ranks.push_back(std::move(of_kind));
  }
  std::vector<std::vector<int>> orders = all_orders(kinds);
  if (orders.empty()) {
    std::vector<int> kind_order(ranks.size());
    for (std::size_t kind = 0; kind < kind_order.size(); ++kind) kind_order[kind] = static_cast<int>(kind);
    do {
      std::vector<int> order;
      for (const int kind : kind_order) order.insert(order.end(), pipeline_ranks_of[kind], kind);
      orders.push_back(std::move(order));
    } while (orders.size() < kMaxOrders && std::next_permutation(kind_order.begin(), kind_order.end()));
  }
  std::vector<std::vector<int>> placements;
  for (const std::vector<int>& order : orders) {
    std::vector<std::size_t> next(ranks.size(), 0);
    std::vector<int> placement;
    for (const int kind : order)
      for (int i = 0; i < per_pipeline_rank; ++i) placement.push_back(ranks[kind][next[kind]++]);
    if (!std::is_sorted(placement.begin(), placement.end())) placements.push_back(std::move(placement));
  }
  if (have_one_type(cluster, per_pipeline_rank, devices)) placements.emplace_back();
  return placements;
}

std::string why_tensor_ranks_are_apart(const Cluster& cluster, const ParallelLayout& layout) {
  const auto device = [&](int rank) -> const Device& { return cluster.devices.at(rank); };
  for (int pipeline_rank = 0; pipeline_rank < layout.pipeline_parallel_size; ++pipeline_rank)
    for (int replica = 0; replica < layout.data_parallel_size; ++replica) {
      const std::vector<int> ranks = tensor_ranks_of(layout, pipeline_rank, replica);
      const int first = ranks.front();
      for (const int rank : ranks) {
        std::string difference;
        if (device(rank).node != device(first).node)
          difference = fmt::format("different nodes (rank {} on {}, rank {} on {})", first, device(first).node, rank,
                                   device(rank).node);
        else if (device(rank).type != device(first).type)
          difference = fmt::format("devices of different types (rank {} on {}, rank {} on {})", first,
                                   device(first).type, rank, device(rank).type);
        if (!difference.empty())
          return fmt::format("t = {}: tensor ranks that split layers would be on {}; {}", layout.tensor_parallel_size,
                             difference, how_to_join_devices(cluster, layout.tensor_parallel_size));
      }
    }
  return {};
}

}  // namespace frostpipe
