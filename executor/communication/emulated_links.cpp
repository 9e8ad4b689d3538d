#include "executor/communication/emulated_links.h"

#include <algorithm>
#include <utility>

namespace frostpipe {

EmulatedLinks::EmulatedLinks(Cluster cluster, int shrink, int self)
    : cluster_(std::move(cluster)), shrink_(shrink), self_(self) {}

Nanoseconds EmulatedLinks::arrival_ns(int to_rank, Bytes bytes, Nanoseconds now) {
  const Link& link = link_between(cluster_, self_, to_rank).point_to_point;
  LinkQueue& queue = queues_[to_rank];
  return queue.carry(std::max(queue.free_at(), now), transfer_occupancy_ns(link, bytes * shrink_)) + link.latency_ns;
}

Nanoseconds EmulatedLinks::all_reduce_ns(const std::vector<int>& ranks, Bytes bytes) const {
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  return frostpipe::all_reduce_ns(cluster_, sorted, bytes * shrink_);
}

Nanoseconds EmulatedLinks::all_gather_ns(int size, Bytes bytes) const {
  return frostpipe::all_gather_ns(cluster_, size, bytes * shrink_);
}

}  // namespace frostpipe
