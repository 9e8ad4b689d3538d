#pragma once
#include <ATen/core/TensorBody.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <functional>
#include <vector>

namespace c10d {
class Work;
}

namespace frostpipe {

/// The rest of an operation that has been started. The thread that waits for the operation runs it, with a time limit.
using Finish = std::function<void(std::chrono::milliseconds)>;

/// Returns a Work whose first wait() runs `finish`.
c10::intrusive_ptr<c10d::Work> work_that(Finish finish);

/// The point-to-point operations of a group's ranks, for contiguous tensors in host memory. Other ranks are given by
/// index.
struct Exchange {
  int index = 0, size = 1;
  std::function<Finish(const at::Tensor&, int to)> start_to_send;
  std::function<Finish(const at::Tensor&, int from)> start_to_receive;
};

/// Starts an all-reduce (sum), in place, of a one-dimensional tensor. Adds in the order of ranks, so that all get the
/// same bits: each rank adds its slice of all ranks and sends the result to all. The receives of the slices are started
/// at once.
c10::intrusive_ptr<c10d::Work> start_sum_by_slices(const at::Tensor& flat, const Exchange& exchange);

/// Starts an all-gather into `all`, by index. The tensors may differ in their number of values.
c10::intrusive_ptr<c10d::Work> start_gather(const at::Tensor& own, const std::vector<at::Tensor>& all,
                                            const Exchange& exchange);
/// Starts a reduce-scatter: `own` becomes the sum, in the order of ranks, of the tensors that each rank has for this
/// rank. `all` are this rank's tensors for each rank, by index.
c10::intrusive_ptr<c10d::Work> start_scatter_of_sums(const at::Tensor& own, const std::vector<at::Tensor>& all,
                                                     const Exchange& exchange);

/// Returns the slices that the ranks add in start_sum_by_slices(), by index. Some are empty if there are more ranks
/// than values.
std::vector<at::Tensor> slices_of(const at::Tensor& flat, int size);
/// Adds `parts` in order into `own`, which is one of them. Overwrites the first part.
void add_up(const std::vector<at::Tensor>& parts, const at::Tensor& own);
/// Returns an uninitialized tensor in the shape of `tensor`, in host memory that the memory meter does not count.
at::Tensor scratch_like(const at::Tensor& tensor);

}  // namespace frostpipe
