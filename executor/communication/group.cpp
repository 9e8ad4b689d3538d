#include "executor/communication/group.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <numeric>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "base/error.h"
#include "executor/communication/emulated_links.h"
#include "executor/communication/guarded.h"
#include "executor/communication/staged_sends.h"
#include "executor/device/memory_meter.h"
#include "executor/device/virtual_clock.h"

namespace frostpipe {
namespace {

using Work = c10::intrusive_ptr<c10d::Work>;

/// Returns a virtual time as a tensor, to be sent along with a message. It does not count as memory of the emulated
/// device.
at::Tensor moment(Nanoseconds time) {
  const UncountedMemory uncounted;
  return at::full({1}, time, at::kLong);
}

/// Allocates host memory for `tensor`, page-locked if it is on a GPU: copies are faster then, and the host need not
/// wait for copies to the device.
at::Tensor host_memory_for(const at::Tensor& tensor) {
  return at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(tensor.is_cuda()));
}

/// Copies tensors to the host. The copies are complete when this returns: the device copies in order, and the host
/// waits for the last one.
std::vector<at::Tensor> host_copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  const auto has_values = [](const at::Tensor& tensor) { return tensor.numel() > 0; };
  std::ptrdiff_t left = std::ranges::count_if(tensors, has_values);
  for (const at::Tensor& tensor : tensors) {
    if (has_values(tensor)) --left;
    copies.push_back(host_memory_for(tensor).copy_(tensor, /*non_blocking=*/left > 0));
  }
  return copies;
}
at::Tensor host_copy_of(const at::Tensor& tensor) { return host_copies_of({tensor}).front(); }

/// Copies a tensor from the host. The device may still be copying when this returns, even after `from` has been
/// released.
void copy_from_host(const at::Tensor& from, const at::Tensor& to) { to.copy_(from, /*non_blocking=*/true); }

}  // namespace

struct Group::Link {
  c10::intrusive_ptr<c10d::Backend> backend;
  std::unique_ptr<StagedSends> staged;  // made at the first send of a GPU tensor through host memory
  StagedSends& staged_of(const at::Tensor& tensor) {
    if (!staged) staged = std::make_unique<StagedSends>(tensor.device());
    return *staged;
  }
};

struct Transfer::State {
  Work work;
  std::future<Work> coming = {};  // the future of a send by StagedSends, until `work` is known
  at::Tensor tensor;
  int self;
  std::string what;
  at::Tensor received = {};  // receive buffer in host memory, to be copied to `tensor`; undefined if there is none
  // In virtual time:
  Work time_work = {};
  at::Tensor time = {};
  VirtualClock* clock = nullptr;  // set for a receive
};

void Transfer::wait() {
  if (!state_->work && !state_->coming.valid()) return;
  guarded(state_->self, state_->what, [&] {
    if (state_->coming.valid()) state_->work = state_->coming.get();
    if (state_->time_work) state_->time_work->wait();
    state_->work->wait();
  });
  if (state_->clock) state_->clock->wait_until(state_->time.item<std::int64_t>());
  if (!state_->received.defined()) return;
  copy_from_host(state_->received, state_->tensor);
  state_->received = at::Tensor();
}

bool Transfer::is_done() const {
  if (state_->coming.valid()) {
    if (state_->coming.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    guarded(state_->self, state_->what, [&] { state_->work = state_->coming.get(); });
  }
  const bool is_timed = state_->time_work && !state_->time_work->isCompleted();
  return !is_timed && (!state_->work || state_->work->isCompleted());
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

void Group::keep_virtual_time(VirtualClock* clock, EmulatedLinks* links) {
  clock_ = clock;
  links_ = links;
}

/// In virtual time the time of arrival is sent first, with the same tag, and then the message.
Transfer Group::send(const at::Tensor& tensor, int to_rank, int tag, std::string what) {
  what += fmt::format(" to rank {}", to_rank);
  Transfer transfer;
  transfer.state_ = guarded(self_, what, [&] {
    if (host_staging_ && tensor.is_cuda() && tensor.numel() > 0) {
      const auto send_copy = [backend = link_->backend, to = index_of(to_rank), tag](const at::Tensor& copy) {
        std::vector<at::Tensor> list{copy};
        return backend->send(list, to, tag);
      };
      return std::make_shared<Transfer::State>(
          Transfer::State{.coming = link_->staged_of(tensor).send(tensor, send_copy), .self = self_, .what = what});
    }
    const at::Tensor contiguous = host_staging_ ? host_copy_of(tensor) : tensor.contiguous();
    Transfer::State state{.work = {}, .tensor = contiguous, .self = self_, .what = what};
    if (contiguous.numel() == 0) return std::make_shared<Transfer::State>(std::move(state));
    const int to = index_of(to_rank);
    if (clock_) {
      const auto bytes = static_cast<Bytes>(contiguous.nbytes());
      state.time = moment(links_ ? links_->arrival_ns(to_rank, bytes, clock_->now()) : clock_->now());
      std::vector<at::Tensor> list{state.time};
      state.time_work = link_->backend->send(list, to, tag);
    }
    std::vector<at::Tensor> list{contiguous};
    state.work = link_->backend->send(list, to, tag);
    return std::make_shared<Transfer::State>(std::move(state));
  });
  return transfer;
}

Transfer Group::receive(at::Tensor into, int from_rank, int tag, std::string what) {
  what += fmt::format(" from rank {}", from_rank);
  Transfer transfer;
  transfer.state_ = guarded(self_, what, [&] {
    Transfer::State state{.work = {},
                          .tensor = into,
                          .self = self_,
                          .what = what,
                          .received = host_staging_ ? host_memory_for(into) : at::Tensor(),
                          .clock = clock_};
    if (into.numel() == 0) {
      state.received = at::Tensor();
      return std::make_shared<Transfer::State>(std::move(state));
    }
    const int from = index_of(from_rank);
    if (clock_) {
      state.time = moment(0);
      std::vector<at::Tensor> list{state.time};
      state.time_work = link_->backend->recv(list, from, tag);
    }
    std::vector<at::Tensor> list{host_staging_ ? state.received : into};
    state.work = link_->backend->recv(list, from, tag);
    return std::make_shared<Transfer::State>(std::move(state));
  });
  return transfer;
}

void Group::all_reduce_sum(std::vector<at::Tensor> tensors, const std::string& what) {
  if (ranks_.size() < 2) return;
  guarded(self_, what, [&] {
    const std::vector<at::Tensor> summed = host_staging_ ? host_copies_of(tensors) : tensors;
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    for (const at::Tensor& tensor : summed) {
      std::vector<at::Tensor> list{tensor};
      works.push_back(link_->backend->allreduce(list));
    }
    for (auto& work : works) work->wait();
    for (std::size_t i = 0; host_staging_ && i < tensors.size(); ++i) copy_from_host(summed[i], tensors[i]);
    if (!clock_) return;
    Bytes bytes = 0;
    for (const at::Tensor& tensor : tensors) bytes += static_cast<Bytes>(tensor.nbytes());
    synchronize_clocks(links_ ? links_->all_reduce_ns(ranks_, bytes) : 0);
  });
}

at::Tensor Group::all_gather(const at::Tensor& own, const std::vector<std::int64_t>& rows_of_each,
                             const std::string& what) {
  FROSTPIPE_CHECK(!clock_, "what layers of an emulated device exchange is in their measured times");
  return guarded(self_, what, [&] {
    at::Tensor mine = host_staging_ ? host_copy_of(own) : own.contiguous();
    std::vector<std::int64_t> sizes = own.sizes().vec();
    sizes[0] = std::accumulate(rows_of_each.begin(), rows_of_each.end(), std::int64_t{0});
    const at::Tensor all =
        at::empty(sizes, mine.options().requires_grad(false).pinned_memory(host_staging_ && own.is_cuda()));
    std::vector<std::vector<at::Tensor>> parts{all.split_with_sizes(rows_of_each)};
    std::vector<at::Tensor> given{mine};
    link_->backend->allgather(parts, given)->wait();
    return host_staging_ ? all.to(own.device(), /*non_blocking=*/true) : all;
  });
}

void Group::all_gather_into(const at::Tensor& all, const at::Tensor& own, const std::vector<std::int64_t>& sizes,
                            const std::string& what) {
  if (all.numel() == 0) return;
  guarded(self_, what, [&] {
    const at::Tensor gathered = host_staging_ ? host_memory_for(all) : all;
    std::vector<std::vector<at::Tensor>> parts{gathered.view({-1}).split_with_sizes(sizes)};
    std::vector<at::Tensor> given{host_staging_ ? host_copy_of(own) : own};
    link_->backend->allgather(parts, given)->wait();
    if (host_staging_) copy_from_host(gathered, all);
    if (clock_)
      synchronize_clocks(
          links_ ? links_->all_gather_ns(static_cast<int>(ranks_.size()), static_cast<Bytes>(all.nbytes())) : 0);
  });
}

at::Tensor Group::reduce_scatter_sum(const at::Tensor& all, const std::vector<std::int64_t>& rows_of_each,
                                     const std::string& what) {
  FROSTPIPE_CHECK(!clock_, "what layers of an emulated device exchange is in their measured times");
  return guarded(self_, what, [&] {
    const at::Tensor mine = host_staging_ ? host_copy_of(all) : all.contiguous();
    std::vector<std::vector<at::Tensor>> parts{mine.split_with_sizes(rows_of_each)};
    const at::Tensor& slice = parts[0][index_of(self_)];
    std::vector<at::Tensor> own{
        at::empty(slice.sizes(), slice.options().pinned_memory(host_staging_ && all.is_cuda()))};
    link_->backend->reduce_scatter(own, parts)->wait();
    return host_staging_ ? own[0].to(all.device(), /*non_blocking=*/true) : own[0];
  });
}

/// In virtual time all ranks leave a collective together, `took` after the last has entered it.
void Group::synchronize_clocks(Nanoseconds took) {
  const UncountedMemory uncounted;
  at::Tensor arrivals = at::zeros({static_cast<std::int64_t>(ranks_.size())}, at::kLong);
  arrivals[index_of(self_)] = clock_->now();
  std::vector<at::Tensor> list{arrivals};
  link_->backend->allreduce(list)->wait();
  clock_->wait_until(arrivals.max().item<std::int64_t>() + took);
}

void Group::broadcast(at::Tensor tensor, int from_rank, const std::string& what) {
  if (ranks_.size() < 2) return;
  guarded(self_, what, [&] {
    std::vector<at::Tensor> list{host_staging_ ? host_copy_of(tensor) : tensor};
    c10d::BroadcastOptions options;
    options.rootRank = index_of(from_rank);
    link_->backend->broadcast(list, options)->wait();
    if (host_staging_ && from_rank != self_) copy_from_host(list[0], tensor);
    if (!clock_) return;
    std::vector<at::Tensor> sent{moment(clock_->now())};
    link_->backend->broadcast(sent, options)->wait();
    clock_->wait_until(sent[0].item<std::int64_t>());
  });
}

void Group::barrier() {
  if (ranks_.size() < 2) return;
  guarded(self_, "barrier", [&] {
    if (clock_) return synchronize_clocks(links_ ? links_->all_reduce_ns(ranks_, 0) : 0);
    link_->backend->barrier()->wait();
  });
}

}  // namespace frostpipe
