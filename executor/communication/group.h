#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"

namespace c10d {
class Backend;
}

namespace frostpipe {

class EmulatedLinks;
class VirtualClock;

/// A transfer on its way. Its tensor is kept alive until wait() has returned. In virtual time a receive ends when its
/// message arrives, and a send takes none.
class Transfer {
 public:
  Transfer() = default;
  /// Blocks until done. Throws RuntimeFailure "rank 0: 0SEND_F3 to rank 1: ..." when the peer is gone.
  void wait();
  /// True where wait() would return at once; Gloo's messages are never known to be done before. Not of a receive in
  /// virtual time.
  bool is_done() const;
  const at::Tensor& tensor() const;

 private:
  friend class Group;
  struct State;
  std::shared_ptr<State> state_;
};

/// Some ranks of the job that talk to each other. Ranks are numbered as in the whole job. A default-made group has no
/// ranks; a group of one does nothing in its collectives.
class Group {
 public:
  Group() = default;
  /// Of this rank, `self`, with the others in `ranks`. `backend`: theirs, in that order; null for a group of one.
  /// `host_staging`: tensors of the device are copied to host memory and back.
  Group(int self, std::vector<int> ranks, c10::intrusive_ptr<c10d::Backend> backend, bool host_staging);
  /// From now on messages say when they arrive by the virtual clocks of their ranks, and whoever waits for others waits
  /// until then. `links`: what that takes; null: no time. Both must outlive the group.
  void keep_virtual_time(VirtualClock* clock, EmulatedLinks* links);
  bool keeps_virtual_time() const { return clock_ != nullptr; }
  const std::vector<int>& ranks() const { return ranks_; }
  /// This rank.
  int self() const { return self_; }
  /// Messages between two ranks with one tag arrive in the order in which they were sent. Neither call blocks; until
  /// the transfer is waited for, what is sent must not change.
  Transfer send(const at::Tensor& tensor, int to_rank, int tag, std::string what);
  Transfer receive(at::Tensor into, int from_rank, int tag, std::string what);
  /// In place, over all ranks; starts all of them before it waits for the first. Every rank gets the same bits.
  void all_reduce_sum(std::vector<at::Tensor> tensors, const std::string& what);
  /// All ranks' rows, in the order of ranks, which have rows_of_each. Not in virtual time, as the next.
  at::Tensor all_gather(const at::Tensor& own, const std::vector<std::int64_t>& rows_of_each, const std::string& what);
  /// This rank's rows of the sum over all ranks, the same bits that all_reduce_sum gives on CPUs.
  at::Tensor reduce_scatter_sum(const at::Tensor& all, const std::vector<std::int64_t>& rows_of_each,
                                const std::string& what);
  void broadcast(at::Tensor tensor, int from_rank, const std::string& what);
  void barrier();

 private:
  friend class WithoutVirtualTime;
  int index_of(int rank) const;
  void meet(Bytes bytes);
  int self_ = 0;
  bool host_staging_ = false;
  std::vector<int> ranks_;
  struct Link;  // LibTorch's process group, kept out of this header
  std::shared_ptr<Link> link_;
  VirtualClock* clock_ = nullptr;
  EmulatedLinks* links_ = nullptr;
};

/// While it lives, what the group does waits for others on the host alone. All its ranks make one at the same point.
class WithoutVirtualTime {
 public:
  explicit WithoutVirtualTime(Group& group) : group_(group), clock_(std::exchange(group.clock_, nullptr)) {}
  ~WithoutVirtualTime() { group_.clock_ = clock_; }
  WithoutVirtualTime(const WithoutVirtualTime&) = delete;
  WithoutVirtualTime& operator=(const WithoutVirtualTime&) = delete;

 private:
  Group& group_;
  VirtualClock* clock_;
};

}  // namespace frostpipe
