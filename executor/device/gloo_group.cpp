#include "executor/device/gloo_group.h"

#include <ATen/ops/empty.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "executor/device/memory_meter.h"
#include "executor/device/ordered_sum.h"

namespace frostpipe {
namespace {

using c10d::ProcessGroupGloo;
using Work = c10::intrusive_ptr<c10d::Work>;

/// The time limit of a message. Without a limit of its own, Gloo would end the wait after its connect timeout and close
/// all connections.
constexpr std::chrono::milliseconds kLongestWait = std::chrono::minutes(30);

/// The messages in progress. When Gloo closes a connection, a wait for a half sent or half received message goes on, so
/// abort() must end each wait by itself.
class MessagesUnderway {
 public:
  void add(c10d::Work& message) {
    const std::lock_guard lock(mutex_);
    messages_.insert(&message);
  }
  void remove(c10d::Work& message) {
    const std::lock_guard lock(mutex_);
    messages_.erase(&message);
  }
  void abort() {
    const std::lock_guard lock(mutex_);
    is_aborted_ = true;
    for (c10d::Work* const message : messages_) message->abort();
  }
  bool is_aborted() const { return is_aborted_; }

 private:
  std::mutex mutex_;
  std::set<c10d::Work*> messages_;
  std::atomic<bool> is_aborted_ = false;
};

/// A Gloo message that is registered in MessagesUnderway while it lives.
class NotedMessage final : public c10d::Work {
 public:
  NotedMessage(c10::intrusive_ptr<c10d::Work> message, std::shared_ptr<MessagesUnderway> underway)
      : message_(std::move(message)), underway_(std::move(underway)) {
    underway_->add(*message_);
  }
  ~NotedMessage() override { underway_->remove(*message_); }
  bool wait(std::chrono::milliseconds limit) override {
    const bool has_come = !underway_->is_aborted() && message_->wait(limit == kNoTimeout ? kLongestWait : limit);
    if (!has_come) throw std::runtime_error("the connections were given up");
    return true;
  }

 private:
  c10::intrusive_ptr<c10d::Work> message_;
  std::shared_ptr<MessagesUnderway> underway_;
};

/// Uses Gloo's connections and messages but not its collectives: its ring adds each part of a tensor in another order.
/// Here the order is that of the ranks, and each rank sends and receives as many bytes as in the ring.
class GlooGroup final : public c10d::Backend {
 public:
  GlooGroup(int rank, int size, c10::intrusive_ptr<ProcessGroupGloo> gloo)
      : Backend(rank, size), gloo_(std::move(gloo)) {
    const UncountedMemory uncounted;
    for (int other = 0; other < size; ++other) {
      if (other == rank) continue;
      std::vector<at::Tensor> nothing{at::empty({1}, at::kByte)};
      never_.push_back(gloo_->recv(nothing, other, kNeverTag));
    }
  }

  /// Gloo cannot abort, but it closes all connections of a group when one of its receives times out. A receive from a
  /// peer that is gone fails without closing them, so there is one receive from each peer.
  void abort() override {
    underway_->abort();
    const std::lock_guard lock(aborting_);
    for (const Work& work : never_) {
      try {
        work->wait(std::chrono::milliseconds(1));
      } catch (const std::exception&) {  // expected
      }
    }
    never_.clear();
  }

  const std::string getBackendName() const override { return gloo_->getBackendName(); }
  Work send(std::vector<at::Tensor>& tensors, int to, int tag) override { return noted(gloo_->send(tensors, to, tag)); }
  Work recv(std::vector<at::Tensor>& tensors, int from, int tag) override {
    return noted(gloo_->recv(tensors, from, tag));
  }

  Work barrier(const c10d::BarrierOptions&) override {
    const UncountedMemory uncounted;
    const std::vector<at::Tensor> all = slices_of(scratch_like(at::empty({size_}, at::kByte)), size_);
    return start_gather(all[rank_], all, next_exchange());
  }

  Work broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override {
    const int root = static_cast<int>(options.rootRank);
    const Exchange exchange = next_exchange();
    std::vector<Finish> started;
    if (tensors.at(0).numel() == 0) return work_that([](std::chrono::milliseconds) {});
    if (rank_ != root) started.push_back(exchange.start_to_receive(tensors.at(0), root));
    for (int other = 0; rank_ == root && other < size_; ++other)
      if (other != root) started.push_back(exchange.start_to_send(tensors.at(0), other));
    return work_that([started = std::move(started)](std::chrono::milliseconds limit) {
      for (const Finish& finish : started) finish(limit);
    });
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

  /// Adds in the order of ranks, as allreduce() does.
  Work reduce_scatter(std::vector<at::Tensor>& own, std::vector<std::vector<at::Tensor>>& all,
                      const c10d::ReduceScatterOptions& options) override {
    FROSTPIPE_CHECK(options.reduceOp == c10d::ReduceOp::SUM, "ranks only sum");
    return start_scatter_of_sums(own.at(0), all.at(0), next_exchange());
  }

 private:
  Work noted(Work message) const { return c10::make_intrusive<NotedMessage>(std::move(message), underway_); }

  static Finish waiting_for(const Work& work) {
    return [work](std::chrono::milliseconds limit) { work->wait(limit); };
  }

  Exchange next_exchange() {
    const int tag = next_tag();
    Exchange exchange{.index = rank_, .size = size_};
    exchange.start_to_send = [this, tag](const at::Tensor& tensor, int to) {
      std::vector<at::Tensor> list{tensor};
      return waiting_for(send(list, to, tag));
    };
    exchange.start_to_receive = [this, tag](const at::Tensor& tensor, int from) {
      std::vector<at::Tensor> list{tensor};
      return waiting_for(recv(list, from, tag));
    };
    return exchange;
  }

  /// Tags of collectives are above those of messages.
  int next_tag() { return (3 << 29) + (num_sums_++ & ((1 << 28) - 1)); }
  /// A tag above those of collectives, with which no rank sends.
  static constexpr int kNeverTag = (3 << 29) + (1 << 28);

  int num_sums_ = 0;
  std::shared_ptr<MessagesUnderway> underway_ = std::make_shared<MessagesUnderway>();
  std::mutex aborting_;
  std::vector<Work> never_;  // receives that never complete, one per peer, for abort()
  c10::intrusive_ptr<ProcessGroupGloo> gloo_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_gloo_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                                  const std::string& address) {
  // While ranks connect, Gloo waits this long for the address of a rank that has died, and five times as long for its
  // connection. All ranks arrive at the same time, so it can be short. Later, dead ranks are found by heartbeat.
  auto options = ProcessGroupGloo::Options::create(std::chrono::seconds(2));
  options->devices.push_back(ProcessGroupGloo::createDeviceForHostname(address));
  auto gloo = c10::make_intrusive<ProcessGroupGloo>(store, rank, size, options);
  gloo->setTimeout(kLongestWait);
  return c10::make_intrusive<GlooGroup>(rank, size, std::move(gloo));
}

}  // namespace frostpipe
