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

/// A point-to-point transfer in progress. It keeps its tensor alive. In virtual time a receive ends when its message
/// arrives, and a send takes no time.
class Transfer {
 public:
  Transfer() = default;
  /// Waits until the transfer is done; with NCCL only the device's current stream waits. Throws PeerLost "rank 0:
  /// 0SEND_F3 to rank 1: ..." when the peer is gone.
  void wait();
  /// True if wait() would return at once. With Gloo it is never true for a tensor with values. Not valid for a receive
  /// in virtual time.
  bool is_done() const;
  /// Returns the tensor that is received, or that is sent unless it is a GPU tensor that is staged in host memory.
  const at::Tensor& tensor() const;

 private:
  friend class Group;
  struct State;
  std::shared_ptr<State> state_;
};

/// A process group: ranks of the job that exchange messages and run collectives. Rank numbers are those of the whole
/// job. All ranks of the group must call a collective, in the same order. A default-constructed group has no ranks. In
/// a group of none or one, all_reduce_sum(), broadcast() and barrier() return at once; the other functions need two
/// ranks.
class Group {
 public:
  Group() = default;
  /// Makes the group of `ranks`, of which this process is rank `self`. `backend` numbers its ranks in the order of
  /// `ranks`; null for a group of one. With `host_staging`, tensors of the device are copied to host memory and back.
  Group(int self, std::vector<int> ranks, c10::intrusive_ptr<c10d::Backend> backend, bool host_staging);
  /// Switches to virtual time: messages carry the times at which they arrive, and a rank that waits for another
  /// advances its `clock` to that time. `links` gives the transfer times; if null, transfers take no time. Both must
  /// outlive the group.
  void keep_virtual_time(VirtualClock* clock, EmulatedLinks* links);
  bool keeps_virtual_time() const { return clock_ != nullptr; }
  const std::vector<int>& ranks() const { return ranks_; }
  /// Returns this process's rank in the job.
  int self() const { return self_; }
  /// Start a transfer and return at once. Messages between two ranks with the same tag arrive in the order in which
  /// they were sent. The tensor must not change until the transfer has been waited for. `into` must be contiguous and
  /// as large as the tensor that is sent. `what` names the transfer in errors.
  Transfer send(const at::Tensor& tensor, int to_rank, int tag, std::string what);
  Transfer receive(at::Tensor into, int from_rank, int tag, std::string what);
  /// Sums each tensor over all ranks, in place, and waits for the results, which are the same bits on every rank. All
  /// reductions are started before the first is waited for.
  void all_reduce_sum(std::vector<at::Tensor> tensors, const std::string& what);
  /// Returns the rows of all ranks, concatenated in the order of ranks; the i-th rank has `rows_of_each[i]` of them.
  /// Not available in virtual time.
  at::Tensor all_gather(const at::Tensor& own, const std::vector<std::int64_t>& rows_of_each, const std::string& what);
  /// Gathers the parts of all ranks into `all`, one after another. The i-th rank's part, its `own`, has `sizes[i]`
  /// values. `all` must be contiguous, and `own` contiguous and one-dimensional.
  void all_gather_into(const at::Tensor& all, const at::Tensor& own, const std::vector<std::int64_t>& sizes,
                       const std::string& what);
  /// Returns this rank's rows of the sum over all ranks, on CPUs with the same bits as all_reduce_sum(). Not available
  /// in virtual time.
  at::Tensor reduce_scatter_sum(const at::Tensor& all, const std::vector<std::int64_t>& rows_of_each,
                                const std::string& what);
  /// Copies the tensor of `from_rank` into those of all other ranks.
  void broadcast(at::Tensor tensor, int from_rank, const std::string& what);
  void barrier();

 private:
  friend class WithoutVirtualTime;
  int index_of(int rank) const;
  void synchronize_clocks(Nanoseconds took);
  int self_ = 0;
  bool host_staging_ = false;
  std::vector<int> ranks_;
  struct Link;  // LibTorch's process group, kept out of this header
  std::shared_ptr<Link> link_;
  VirtualClock* clock_ = nullptr;
  EmulatedLinks* links_ = nullptr;
};

/// While it lives, the group's operations take no virtual time. All ranks of the group must make one at the same point.
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
