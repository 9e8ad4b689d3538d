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

/// What remains to be done of something that was started, by whoever waits for it, and within which time.
using Finish = std::function<void(std::chrono::milliseconds)>;

/// Finishes once, however often it is waited for.
c10::intrusive_ptr<c10d::Work> work_that(Finish finish);

/// By what the ranks of a group exchange tensors, contiguous and in host memory; other ranks by index.
struct Exchange {
  int index = 0, size = 1;
  std::function<Finish(const at::Tensor&, int to)> start_to_send;
  std::function<Finish(const at::Tensor&, int from)> start_to_receive;
};

/// Adds `flat`, of one dimension, in place over all ranks and in their order, so that all have the same bits: each adds
/// its slice of all and sends the sum to everybody. What others have of the slice is sent for at once.
c10::intrusive_ptr<c10d::Work> start_sum_by_slices(const at::Tensor& flat, const Exchange& exchange);

/// Everybody's tensors into `all`, by index; they may differ in their number of values.
c10::intrusive_ptr<c10d::Work> start_gather(const at::Tensor& own, const std::vector<at::Tensor>& all,
                                            const Exchange& exchange);
/// Into `own` the sum, in the order of ranks, of what each has for this rank; `all`: what this one has for each, by
/// index.
c10::intrusive_ptr<c10d::Work> start_scatter_of_sums(const at::Tensor& own, const std::vector<at::Tensor>& all,
                                                     const Exchange& exchange);

/// Of such a sum: what each rank adds, by index. Some are empty where there are more ranks than values.
std::vector<at::Tensor> slices_of(const at::Tensor& flat, int size);
/// One after the other, into `own`, which is one of them. Overwrites the first.
void add_up(const std::vector<at::Tensor>& parts, const at::Tensor& own);
/// Host memory beside the tensors that a rank's memory is counted by, as a transport's own.
at::Tensor scratch_like(const at::Tensor& tensor);

}  // namespace frostpipe
