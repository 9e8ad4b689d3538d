#pragma once
#include <map>
#include <vector>

#include "base/link_queue.h"
#include "profiles/cluster.h"

namespace frostpipe {

/// Times of the messages that one rank sends over a cluster's links in virtual time (virtual_clock.h). Each direction
/// of the link between two ranks is a queue as in the simulator (link_queue.h). Tensors have 1 / `shrink` of the bytes
/// that the links carry.
class EmulatedLinks {
 public:
  EmulatedLinks(Cluster cluster, int shrink, int self);

  /// Returns the time at which a message of `bytes` (shrunk) bytes arrives if it is sent at `now`.
  Nanoseconds arrival_ns(int to_rank, Bytes bytes, Nanoseconds now);
  /// Returns the duration of an all-reduce of `bytes` (shrunk) bytes over `ranks`, after the last of them has entered
  /// it.
  Nanoseconds all_reduce_ns(const std::vector<int>& ranks, Bytes bytes) const;
  /// Returns the duration of an all-gather of `size` ranks of a node, which have `bytes` (shrunk) bytes afterwards.
  Nanoseconds all_gather_ns(int size, Bytes bytes) const;

 private:
  Cluster cluster_;
  int shrink_;
  int self_;
  std::map<int, LinkQueue> queues_;  // by receiver
};

}  // namespace frostpipe
