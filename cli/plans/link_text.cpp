#include "cli/plans/link_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/shared/table.h"

namespace frostpipe {
namespace {

constexpr Bytes kMebibyte = 1 << 20;

/// Shows the time of a message of the slowest replica; "-" for the last pipeline rank, which sends none.
std::string message_cell(const ParallelLayout& layout, int pipeline_rank, const Cluster& cluster) {
  if (pipeline_rank + 1 == layout.pipeline_parallel_size) return "-";
  Nanoseconds slowest = 0;
  for (int replica = 0; replica < layout.data_parallel_size; ++replica) {
    const Link& link =
        link_between(cluster, rank_of(layout, pipeline_rank, replica), rank_of(layout, pipeline_rank + 1, replica))
            .point_to_point;
    slowest = std::max(slowest, link.latency_ns + transfer_occupancy_ns(link, kMebibyte));
  }
  return in_milliseconds(slowest);
}

}  // namespace

std::string placement_text(const Phase& phase, const Cluster& cluster) {
  if (!has_unequal_pairs(cluster)) return "";
  using enum Table::Align;
  const ParallelLayout& layout = phase.layout;
  Table table({{"pipeline rank", right},
               {"nodes by replica", left},
               {"1 MiB to the next [ms]", right},
               {"1 MiB summed [ms]", right}});
  for (int k = 0; k < layout.pipeline_parallel_size; ++k) {
    std::vector<int> ranks = replicas_of(layout, k), nodes;
    for (const int rank : ranks) nodes.push_back(cluster.devices.at(rank).node);
    std::sort(ranks.begin(), ranks.end());
    table.add_row({std::to_string(k), fmt::format("{}", fmt::join(nodes, " ")), message_cell(layout, k, cluster),
                   ranks.size() > 1 ? in_milliseconds(all_reduce_ns(cluster, ranks, kMebibyte)) : "-"});
  }
  return "\nfirst phase on nodes that are unequally connected\n" + table.to_string();
}

}  // namespace frostpipe
