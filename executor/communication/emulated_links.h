#pragma once
#include <map>
#include <vector>

#include "profiles/cluster.h"

namespace frostpipe {

/// The links of a cluster as one rank's messages use them in virtual time (virtual_clock.h). One direction of the link
/// between two ranks carries one message at a time, in the order in which they are sent; latency delays and does not
/// occupy. Tensors are 1 / `shrink` of the bytes that the links carry.
class EmulatedLinks {
 public:
  EmulatedLinks(Cluster cluster, int shrink, int self);

  /// When a message of `bytes` (shrunk) bytes arrives that is sent at `now`.
  Nanoseconds arrival_ns(int to_rank, Bytes bytes, Nanoseconds now);
  /// Time of an all-reduce over `ranks`, from the last of them on.
  Nanoseconds all_reduce_ns(const std::vector<int>& ranks, Bytes bytes) const;

 private:
  Cluster cluster_;
  int shrink_;
  int self_;
  std::map<int, Nanoseconds> link_free_;  // by receiver
};

}  // namespace frostpipe
