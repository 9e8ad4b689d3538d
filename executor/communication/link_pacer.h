#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "profiles/cluster.h"

namespace frostpipe {

/// Makes this rank's messages as slow as a cluster's links, where the real ones are faster: a message leaves when it
/// would have arrived. One direction of the link between two ranks carries one message at a time; latency delays and
/// does not occupy. Needs a thread, so that computing goes on.
class LinkPacer {
 public:
  /// Tensors are 1 / `shrink` of the bytes that the links are paced for.
  LinkPacer(Cluster cluster, int shrink, int self);
  /// Drops what has not left.
  ~LinkPacer();

  /// Calls `leave` from the pacer's thread when a message of `bytes` (shrunk) bytes, handed over now, would have
  /// arrived.
  void send(int to_rank, Bytes bytes, std::function<void()> leave);
  /// Time of an all-reduce over `ranks`, from the last of them on.
  Nanoseconds all_reduce_ns(const std::vector<int>& ranks, Bytes bytes) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace frostpipe
