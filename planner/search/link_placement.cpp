#include "planner/search/link_placement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace frostpipe {
namespace {

using Assignment = std::vector<int>;  // the node of each coordinate, pipeline rank by pipeline rank
using Times = std::vector<Nanoseconds>;
using Kind = std::pair<std::string, std::optional<Bytes>>;

constexpr Bytes kLargeBytes = 1 << 30;

/// The groups of `wanted` neighbouring ranks into which one node is divided.
struct NodePlaces {
  std::vector<int> first_ranks;
  Kind kind;
};

/// Returns none if groups do not fill every node, or a node has unequal devices.
std::optional<std::vector<NodePlaces>> places_of(const Cluster& cluster, int devices, int wanted) {
  std::vector<NodePlaces> nodes;
  for (int rank = 0, end = 0; rank < devices; rank = end) {
    const Device& device = cluster.devices[rank];
    while (end < devices && cluster.devices[end].node == device.node) ++end;
    NodePlaces node{.first_ranks = {}, .kind = {device.type, device.memory_limit_bytes}};
    if ((end - rank) % wanted != 0) return std::nullopt;
    for (int other = rank; other < end; ++other) {
      if (Kind(cluster.devices[other].type, cluster.devices[other].memory_limit_bytes) != node.kind)
        return std::nullopt;
      if ((other - rank) % wanted == 0) node.first_ranks.push_back(other);
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

class LinkPlacements {
 public:
  LinkPlacements(const Cluster& cluster, std::vector<NodePlaces> nodes, const ParallelLayout& layout)
      : cluster_(cluster),
        nodes_(std::move(nodes)),
        p_(layout.pipeline_parallel_size),
        d_(layout.data_parallel_size),
        t_(layout.tensor_parallel_size) {}

  std::vector<std::vector<int>> worth_a_search() {
    // Keep the first of assignments with the same devices and times, then group them by device types.
    std::map<std::pair<std::vector<Kind>, Times>, Assignment> distinct;
    for (Assignment& one : assignments())
      if (std::vector<Kind> kinds = kinds_of(one); !kinds.empty())
        distinct.try_emplace({std::move(kinds), times_of(one)}, std::move(one));
    std::map<std::vector<Kind>, std::vector<std::pair<Nanoseconds, Assignment>>> worth;
    for (const auto& [key, assignment] : distinct) {
      const bool is_beaten = std::any_of(distinct.begin(), distinct.end(), [&](const auto& other) {
        return &other.first != &key && other.first.first == key.first &&
               std::equal(other.first.second.begin(), other.first.second.end(), key.second.begin(),
                          [](Nanoseconds faster, Nanoseconds slower) { return faster <= slower; });
      });
      const Times& times = key.second;
      if (!is_beaten)
        worth[key.first].emplace_back(std::accumulate(times.begin(), times.end(), Nanoseconds{0}), assignment);
    }
    std::vector<std::vector<int>> placements;
    for (auto& [kinds, alike] : worth) std::sort(alike.begin(), alike.end());
    std::size_t before = 0;
    for (std::size_t i = 0; i == 0 || (before < placements.size() && placements.size() < kMaxLinkPlacements); ++i) {
      before = placements.size();
      for (const auto& [kinds, alike] : worth)
        if (i < alike.size()) placements.push_back(placement_of(alike[i].second));
    }
    return placements;
  }

 private:
  std::vector<Assignment> assignments() const {
    std::vector<int> left;
    for (const NodePlaces& node : nodes_) left.push_back(static_cast<int>(node.first_ranks.size()));
    std::vector<Assignment> all;
    Assignment begun;
    if (!add_all_from(begun, left, all)) all = along_fast_links();
    return all;
  }

  /// Appends all assignments that begin with `begun`. Returns false if there are more than kMaxAssignments.
  bool add_all_from(Assignment& begun, std::vector<int>& left, std::vector<Assignment>& all) const {
    if (static_cast<int>(begun.size()) == p_ * d_) {
      all.push_back(begun);
      return all.size() <= kMaxAssignments;
    }
    bool complete = true;
    for (std::size_t node = 0; complete && node < left.size(); ++node) {
      if (left[node] == 0) continue;
      --left[node];
      begun.push_back(static_cast<int>(node));
      complete = add_all_from(begun, left, all);
      begun.pop_back();
      ++left[node];
    }
    return complete;
  }

  std::vector<Assignment> along_fast_links() const {
    const int n = static_cast<int>(nodes_.size());
    std::vector<int> own(n);
    std::iota(own.begin(), own.end(), 0);
    std::vector<std::vector<int>> orders = {own};
    for (int first = 0; first < n; ++first) {
      std::vector<int> order = {first}, left = own;
      std::erase(left, first);
      while (!left.empty()) {
        const auto next = std::min_element(left.begin(), left.end(), [&](int a, int b) {
          return message_ns(order.back(), a) < message_ns(order.back(), b);
        });
        order.push_back(*next);
        left.erase(next);
      }
      orders.push_back(std::move(order));
    }
    std::vector<Assignment> all;
    for (const std::vector<int>& order : orders) {
      Assignment places;
      for (const int node : order) places.insert(places.end(), nodes_[node].first_ranks.size(), node);
      places.resize(p_ * d_);
      all.push_back(places);
      for (int k = 0; k < p_; ++k)
        for (int replica = 0; replica < d_; ++replica) all.back()[k * d_ + replica] = places[replica * p_ + k];
      all.push_back(std::move(places));
    }
    return all;
  }

  /// Returns the kinds of devices at every pipeline rank, ascending; empty if one would have several types.
  std::vector<Kind> kinds_of(const Assignment& assignment) const {
    std::vector<Kind> kinds;
    for (int k = 0; k < p_; ++k) {
      for (int replica = 0; replica < d_; ++replica) kinds.push_back(nodes_[assignment[k * d_ + replica]].kind);
      std::sort(kinds.end() - d_, kinds.end());
      if (kinds[k * d_].first != kinds.back().first) return {};
    }
    return kinds;
  }

  Times times_of(const Assignment& assignment) {
    std::vector<Times> of_replicas(d_);
    const auto node_of = [&](int k, int replica) { return assignment[k * d_ + replica]; };
    for (int replica = 0; replica < d_ && p_ > 1; ++replica) {
      Times& times = of_replicas[replica];
      const auto add_message = [&](int from, int to) {
        const Link& link = link_of(node_of(from, replica), node_of(to, replica));
        times.insert(times.end(), {link.latency_ns, transfer_occupancy_ns(link, kLargeBytes)});
      };
      for (int k = 0; k < p_; ++k)
        if (k + 1 < p_ || p_ > 2) add_message(k, (k + 1) % p_);
      add_sum({node_of(0, replica), node_of(p_ - 1, replica)}, times);
    }
    std::sort(of_replicas.begin(), of_replicas.end());
    Times all;
    for (const Times& times : of_replicas) all.insert(all.end(), times.begin(), times.end());
    for (int k = 0; k < p_; ++k) add_sum({assignment.begin() + k * d_, assignment.begin() + (k + 1) * d_}, all);
    return all;
  }

  /// Appends the times of an all-reduce of 0 bytes and of one of kLargeBytes.
  void add_sum(std::vector<int> nodes, Times& times) {
    std::sort(nodes.begin(), nodes.end());
    const auto [known, is_new] = sums_.try_emplace(nodes);
    if (is_new) {
      std::vector<int> ranks;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        const auto of_node = static_cast<std::size_t>(std::find(nodes.begin(), nodes.end(), nodes[i]) - nodes.begin());
        ranks.push_back(nodes_[nodes[i]].first_ranks[i - of_node]);
      }
      known->second = {all_reduce_ns(cluster_, ranks, 0), all_reduce_ns(cluster_, ranks, kLargeBytes)};
    }
    times.insert(times.end(), {known->second.first, known->second.second});
  }

  const Link& link_of(int node, int other) const {
    return link_between(cluster_, nodes_[node].first_ranks.front(), nodes_[other].first_ranks.front()).point_to_point;
  }
  Nanoseconds message_ns(int node, int other) const {
    const Link& link = link_of(node, other);
    return link.latency_ns + transfer_occupancy_ns(link, 1 << 20);
  }

  /// Returns an empty placement for the ranks' own order.
  std::vector<int> placement_of(const Assignment& assignment) const {
    std::vector<std::size_t> next(nodes_.size(), 0);
    std::vector<int> placement;
    for (const int node : assignment) {
      const int first = nodes_[node].first_ranks[next[node]++];
      for (int tensor = 0; tensor < t_; ++tensor) placement.push_back(first + tensor);
    }
    std::vector<int> own(placement.size());
    std::iota(own.begin(), own.end(), 0);
    return placement == own ? std::vector<int>{} : placement;
  }

  const Cluster& cluster_;
  std::vector<NodePlaces> nodes_;
  int p_, d_, t_;
  std::map<std::vector<int>, std::pair<Nanoseconds, Nanoseconds>> sums_;  // by nodes
};

}  // namespace

std::vector<std::vector<int>> placements_by_links(const Cluster& cluster, const PlanOptions& options,
                                                  int tensor_parallel_size, int pipeline_parallel_size) {
  if (!options.placement.empty() || !has_unequal_pairs(cluster)) return {options.placement};
  PlanOptions with_size = options;
  with_size.tensor_parallel_size = tensor_parallel_size;
  const ParallelLayout layout{.pipeline_parallel_size = pipeline_parallel_size,
                              .data_parallel_size = replicas_of_pipelines(cluster, with_size, pipeline_parallel_size),
                              .tensor_parallel_size = tensor_parallel_size};
  const int devices = devices_to_use(cluster, options);
  auto nodes = places_of(cluster, devices, tensor_parallel_size);
  if (!nodes || layout.data_parallel_size < 1 || num_ranks(layout) > devices) return {options.placement};
  auto placements = LinkPlacements(cluster, *std::move(nodes), layout).worth_a_search();
  if (placements.empty()) return {options.placement};
  return placements;
}

}  // namespace frostpipe
