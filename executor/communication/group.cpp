#include "executor/communication/group.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "executor/communication/guarded.h"
#include "executor/communication/link_pacer.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

std::shared_future<c10::intrusive_ptr<c10d::Work>> ready(c10::intrusive_ptr<c10d::Work> work) {
  std::promise<c10::intrusive_ptr<c10d::Work>> promise;
  promise.set_value(std::move(work));
  return promise.get_future().share();
}

at::Tensor host_memory_for(const at::Tensor& tensor) {
  return at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
}

/// There when this returns.
at::Tensor host_copy_of(const at::Tensor& tensor) { return host_memory_for(tensor).copy_(tensor); }

}  // namespace

struct Group::Link {
  c10::intrusive_ptr<c10d::Backend> backend;
  /// Of a message: Gloo's own limit is the one that ranks connect within. NCCL's stays: with another one the host would
  /// wait.
  std::chrono::milliseconds longest_wait() const {
    return backend->getBackendName() == "gloo" ? std::chrono::milliseconds(std::chrono::minutes(30)) : kNoTimeout;
  }
};

struct Transfer::State {
  std::shared_future<c10::intrusive_ptr<c10d::Work>> work;  // there at once, but for a paced message
  at::Tensor tensor;
  std::chrono::milliseconds longest_wait;
  int self;
  std::string what;
  at::Tensor received = {};  // in host memory, to be copied to `tensor`; undefined where there is nothing to copy
};

void Transfer::wait() {
  guarded(state_->self, state_->what, [&] { state_->work.get()->wait(state_->longest_wait); });
  if (!state_->received.defined()) return;
  state_->tensor.copy_(state_->received);
  state_->received = at::Tensor();
}

const at::Tensor& Transfer::tensor() const { return state_->tensor; }

Group::Group(int self, std::vector<int> ranks, c10::intrusive_ptr<c10d::Backend> backend, bool host_staging)
    : self_(self), host_staging_(host_staging), ranks_(std::move(ranks)) {
  if (backend) link_ = std::make_shared<Link>(Link{std::move(backend)});
}

int Group::index_of(int rank) const {
  const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  FROSTPIPE_CHECK(found != ranks_.end(), "messages go to members of the group");
  return static_cast<int>(found - ranks_.begin());
}

Transfer Group::send(const at::Tensor& tensor, int to_rank, int tag, std::string what) {
  what += fmt::format(" to rank {}", to_rank);
  Transfer transfer;
  transfer.state_ = guarded(self_, what, [&] {
    const at::Tensor contiguous = host_staging_ ? host_copy_of(tensor) : tensor.contiguous();
    const auto send_now = [link = link_, contiguous, to = index_of(to_rank), tag] {
      std::vector<at::Tensor> list{contiguous};
      return link->backend->send(list, to, tag);
    };
    if (!pacer_)
      return std::make_shared<Transfer::State>(
          Transfer::State{ready(send_now()), contiguous, link_->longest_wait(), self_, what});
    const auto sending = std::make_shared<std::packaged_task<c10::intrusive_ptr<c10d::Work>()>>(send_now);
    pacer_->send(to_rank, static_cast<Bytes>(contiguous.nbytes()), [sending] { (*sending)(); });
    return std::make_shared<Transfer::State>(
        Transfer::State{sending->get_future().share(), contiguous, link_->longest_wait(), self_, what});
  });
  return transfer;
}

Transfer Group::receive(at::Tensor into, int from_rank, int tag, std::string what) {
  what += fmt::format(" from rank {}", from_rank);
  Transfer transfer;
  transfer.state_ = guarded(self_, what, [&] {
    const at::Tensor received = host_staging_ ? host_memory_for(into) : at::Tensor();
    std::vector<at::Tensor> list{host_staging_ ? received : into};
    return std::make_shared<Transfer::State>(
        Transfer::State{ready(link_->backend->recv(list, index_of(from_rank), tag)), into, link_->longest_wait(), self_,
                        what, received});
  });
  return transfer;
}

void Group::all_reduce_sum(std::vector<at::Tensor> tensors, const std::string& what) {
  if (ranks_.size() < 2) return;
  guarded(self_, what, [&] {
    if (pacer_) return paced_all_reduce(tensors);
    std::vector<at::Tensor> summed = tensors;
    if (host_staging_) std::transform(tensors.begin(), tensors.end(), summed.begin(), host_copy_of);
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    for (at::Tensor& tensor : summed) {
      std::vector<at::Tensor> list{tensor};
      works.push_back(link_->backend->allreduce(list));
    }
    for (auto& work : works) work->wait();
    for (std::size_t i = 0; host_staging_ && i < tensors.size(); ++i) tensors[i].copy_(summed[i]);
  });
}

/// All in one buffer, and after it when each rank came: microseconds of the hosts' common clock in two halves that a
/// float holds exactly.
void Group::paced_all_reduce(const std::vector<at::Tensor>& tensors) {
  using std::chrono::microseconds;
  constexpr std::int64_t kHalf = 1 << 22;
  const auto now =
      std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
  const auto num_ranks = static_cast<std::int64_t>(ranks_.size());
  Bytes bytes = 0;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& tensor : tensors) {
    bytes += static_cast<Bytes>(tensor.nbytes());
    parts.push_back(tensor.reshape({-1}));
  }
  at::Tensor arrivals = at::zeros({num_ranks, 2}, tensors.front().options());
  arrivals.select(0, index_of(self_)).copy_(at::tensor({now / kHalf, now % kHalf}, at::kLong));
  parts.push_back(arrivals.reshape({-1}));
  at::Tensor all = at::cat(parts);
  std::vector<at::Tensor> list{all};
  link_->backend->allreduce(list)->wait();
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(all.narrow(0, offset, tensor.numel()).view_as(tensor));
    offset += tensor.numel();
  }
  arrivals = all.narrow(0, offset, 2 * num_ranks).to(at::kDouble).view({num_ranks, 2});
  const double last =
      arrivals.select(1, 0).mul(static_cast<double>(kHalf)).add(arrivals.select(1, 1)).max().item<double>();
  const auto last_arrival = std::chrono::steady_clock::time_point(microseconds(static_cast<std::int64_t>(last)));
  std::this_thread::sleep_until(last_arrival + std::chrono::nanoseconds(pacer_->all_reduce_ns(ranks_, bytes)));
}

void Group::broadcast(at::Tensor tensor, int from_rank, const std::string& what) {
  if (ranks_.size() < 2) return;
  guarded(self_, what, [&] {
    std::vector<at::Tensor> list{host_staging_ ? host_copy_of(tensor) : tensor};
    c10d::BroadcastOptions options;
    options.rootRank = index_of(from_rank);
    link_->backend->broadcast(list, options)->wait();
    if (host_staging_ && from_rank != self_) tensor.copy_(list[0]);
  });
}

void Group::barrier() {
  if (ranks_.size() < 2) return;
  guarded(self_, "barrier", [&] { link_->backend->barrier()->wait(); });
}

}  // namespace frostpipe
