#include "executor/device/gloo_group.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <chrono>
#include <functional>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "executor/device/memory_meter.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

using c10d::ProcessGroupGloo;
using Work = c10::intrusive_ptr<c10d::Work>;

/// Of a message of a sum: Gloo's own limit is the one that ranks connect within. Deaths are found by heartbeat.
constexpr std::chrono::minutes kLongestWait(30);

/// A collective that was started, and what remains to be done by whoever waits for it.
class StartedWork final : public c10d::Work {
 public:
  explicit StartedWork(std::function<void()> finish) : finish_(std::move(finish)) {}
  bool wait(std::chrono::milliseconds) override {
    if (finish_) std::exchange(finish_, nullptr)();
    return true;
  }

 private:
  std::function<void()> finish_;
};

/// Gloo, but for sums: its ring adds each part of a tensor in another order. Here each rank gets one part of all, adds
/// in the order of ranks, and gives the sum to everybody: as many bytes as the ring's.
class GlooGroup final : public c10d::Backend {
 public:
  GlooGroup(int rank, int size, c10::intrusive_ptr<ProcessGroupGloo> gloo)
      : Backend(rank, size), gloo_(std::move(gloo)) {}

  const std::string getBackendName() const override { return gloo_->getBackendName(); }
  Work send(std::vector<at::Tensor>& tensors, int to, int tag) override { return gloo_->send(tensors, to, tag); }
  Work recv(std::vector<at::Tensor>& tensors, int from, int tag) override { return gloo_->recv(tensors, from, tag); }
  Work barrier(const c10d::BarrierOptions& options) override { return gloo_->barrier(options); }
  Work broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override {
    return gloo_->broadcast(tensors, options);
  }

  Work allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    FROSTPIPE_CHECK(options.reduceOp == c10d::ReduceOp::SUM, "ranks only sum");
    FROSTPIPE_CHECK(tensors.at(0).is_contiguous(), "a sum is in place");
    const at::NoGradGuard no_grad;
    const UncountedMemory of_the_transport;
    const at::Tensor flat = tensors[0].detach().view({-1});
    const std::int64_t part = (flat.numel() + size_ - 1) / size_;
    // By rank: what it is to add, and what it has of this rank's part.
    const at::Tensor parts = at::zeros({size_, part}, flat.options()), here = at::empty_like(parts);
    parts.view({-1}).narrow(0, 0, flat.numel()).copy_(flat);
    const int tag = next_tag();
    const std::vector<Work> exchange = exchanged([&](int other) { return parts.select(0, other); },
                                                 [&](int other) { return here.select(0, other); }, tag);
    return c10::make_intrusive<StartedWork>([this, exchange, flat, parts, here, tag] {
      const at::NoGradGuard within_wait;
      for (const Work& work : exchange) work->wait(kLongestWait);
      here.select(0, rank_).copy_(parts.select(0, rank_));
      at::Tensor sum = here.select(0, 0);
      for (std::int64_t rank = 1; rank < size_; ++rank) sum.add_(here.select(0, rank));
      for (const Work& work :
           exchanged([&](int) { return sum; }, [&](int other) { return parts.select(0, other); }, tag))
        work->wait(kLongestWait);
      parts.select(0, rank_).copy_(sum);
      flat.copy_(parts.view({-1}).narrow(0, 0, flat.numel()));
    });
  }

  Work allgather(std::vector<std::vector<at::Tensor>>& all, std::vector<at::Tensor>& own,
                 const c10d::AllgatherOptions&) override {
    const std::vector<at::Tensor> parts = all.at(0);
    parts[rank_].copy_(own.at(0));
    return waiting_for(exchanged([&](int) { return own[0]; }, [&](int other) { return parts[other]; }, next_tag()));
  }

  /// In the order of ranks too.
  Work reduce_scatter(std::vector<at::Tensor>& own, std::vector<std::vector<at::Tensor>>& all,
                      const c10d::ReduceScatterOptions& options) override {
    FROSTPIPE_CHECK(options.reduceOp == c10d::ReduceOp::SUM, "ranks only sum");
    const at::NoGradGuard no_grad;
    const UncountedMemory of_the_transport;
    const at::Tensor sum = own.at(0);
    std::vector<at::Tensor> here(static_cast<std::size_t>(size_), all.at(0)[rank_]);
    for (int other = 0; other < size_; ++other)
      if (other != rank_) here[other] = at::empty_like(sum);
    const std::vector<Work> exchange =
        exchanged([&](int other) { return all[0][other]; }, [&](int other) { return here[other]; }, next_tag());
    return c10::make_intrusive<StartedWork>([exchange, here, sum] {
      const at::NoGradGuard within_wait;
      for (const Work& work : exchange) work->wait(kLongestWait);
      sum.copy_(here.front());
      for (std::size_t rank = 1; rank < here.size(); ++rank) sum.add_(here[rank]);
    });
  }

 private:
  static Work waiting_for(std::vector<Work> works) {
    return c10::make_intrusive<StartedWork>([works = std::move(works)] {
      for (const Work& work : works) work->wait(kLongestWait);
    });
  }

  /// Beyond all tags of messages.
  int next_tag() { return (3 << 29) + (num_sums_++ & ((1 << 28) - 1)); }

  /// Starts to send one tensor to each other rank and to receive another one from it; none without values.
  template <class Sent, class Received>
  std::vector<Work> exchanged(Sent sent, Received received, int tag) {
    std::vector<Work> works;
    for (int step = 1; step < size_; ++step) {
      const int to = (rank_ + step) % size_, from = (rank_ + size_ - step) % size_;
      std::vector<at::Tensor> in{received(from)}, out{sent(to)};
      if (in[0].numel() > 0) works.push_back(gloo_->recv(in, from, tag));
      if (out[0].numel() > 0) works.push_back(gloo_->send(out, to, tag));
    }
    return works;
  }

  int num_sums_ = 0;
  c10::intrusive_ptr<ProcessGroupGloo> gloo_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_gloo_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                                  const std::string& address) {
  // While ranks connect, Gloo waits for one that has died: this long for its address, five times as long for its
  // connection. They come together, so this need not be long. Later, deaths are found by heartbeat and not by this.
  auto options = ProcessGroupGloo::Options::create(std::chrono::seconds(2));
  options->devices.push_back(ProcessGroupGloo::createDeviceForHostname(address));
  auto gloo = c10::make_intrusive<ProcessGroupGloo>(store, rank, size, options);
  gloo->setTimeout(kLongestWait);
  return c10::make_intrusive<GlooGroup>(rank, size, std::move(gloo));
}

}  // namespace frostpipe
