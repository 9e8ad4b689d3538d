#include "executor/device/gloo_group.h"

#include <chrono>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "executor/device/ordered_sum.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

using c10d::ProcessGroupGloo;
using Work = c10::intrusive_ptr<c10d::Work>;

/// Gloo, but for sums: its ring adds each part of a tensor in another order. Here it is that of the
/// ranks, and each rank sends and receives as many bytes as in the ring.
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
    return start_sum_by_slices(tensors[0].detach().view({-1}), next_exchange());
  }

  Work allgather(std::vector<std::vector<at::Tensor>>& all, std::vector<at::Tensor>& own,
                 const c10d::AllgatherOptions&) override {
    return start_gather(own.at(0), all.at(0), next_exchange());
  }

  /// In the order of ranks too.
  Work reduce_scatter(std::vector<at::Tensor>& own, std::vector<std::vector<at::Tensor>>& all,
                      const c10d::ReduceScatterOptions& options) override {
    FROSTPIPE_CHECK(options.reduceOp == c10d::ReduceOp::SUM, "ranks only sum");
    return start_scatter_of_sums(own.at(0), all.at(0), next_exchange());
  }

 private:
  static Finish waiting_for(const Work& work) {
    return [work](std::chrono::milliseconds limit) { work->wait(limit); };
  }

  Exchange next_exchange() {
    const int tag = next_tag();
    Exchange exchange{.index = rank_, .size = size_};
    exchange.start_to_send = [this, tag](const at::Tensor& tensor, int to) {
      std::vector<at::Tensor> list{tensor};
      return waiting_for(gloo_->send(list, to, tag));
    };
    exchange.start_to_receive = [this, tag](const at::Tensor& tensor, int from) {
      std::vector<at::Tensor> list{tensor};
      return waiting_for(gloo_->recv(list, from, tag));
    };
    return exchange;
  }

  /// Beyond all tags of messages.
  int next_tag() { return (3 << 29) + (num_sums_++ & ((1 << 28) - 1)); }

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
  gloo->setTimeout(kLongestGlooWait);
  return c10::make_intrusive<GlooGroup>(rank, size, std::move(gloo));
}

}  // namespace frostpipe
