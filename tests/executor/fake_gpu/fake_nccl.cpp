#include "tests/executor/fake_gpu/fake_nccl.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

#include "executor/device/gloo_group.h"
#include "tests/executor/fake_gpu/fake_kernels.h"

namespace frostpipe::test {
namespace {

using Work = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;

constexpr int kMessage = 0, kReceived = 1;  // Gloo's tags

/// Work for a queue's thread.
class QueuedWork final : public c10d::Work {
 public:
  explicit QueuedWork(std::function<void()> body) : body_(std::move(body)) {}
  void perform() {
    try {
      std::exchange(body_, nullptr)();
    } catch (...) {
      error_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    done_.notify_all();
  }
  bool isCompleted() override {
    const std::lock_guard lock(mutex_);
    return is_done_;
  }
  bool wait(std::chrono::milliseconds) override {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return is_done_; });
    if (error_) std::rethrow_exception(error_);
    return true;
  }

 private:
  std::function<void()> body_;
  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;
  std::exception_ptr error_;
};

/// A stream of NCCL, which does one operation after the other.
class Queue {
 public:
  Queue() : thread_([this] { run(); }) {}
  ~Queue() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  Work add(std::function<void()> body) {
    auto work = c10::make_intrusive<QueuedWork>(std::move(body));
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(work);
    }
    changed_.notify_all();
    return work;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const auto next = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      next->perform();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<c10::intrusive_ptr<QueuedWork>> waiting_;
  bool ends_ = false;
  std::thread thread_;
};

/// The pending operations of each of this process's groups that has not been aborted.
struct OperationsUnderway {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<const void*, int> operations;
  static OperationsUnderway& instance() {
    static auto* const underway = new OperationsUnderway;
    return *underway;
  }
  template <class Change>
  void change(Change change) {
    {
      const std::lock_guard lock(mutex);
      change(operations);
    }
    changed.notify_all();
  }
};

class FakeNcclGroup final : public c10d::Backend {
 public:
  FakeNcclGroup(int rank, int size, c10::intrusive_ptr<c10d::Backend> gloo)
      : Backend(rank, size), gloo_(std::move(gloo)) {}

  const std::string getBackendName() const override { return "nccl"; }
  void abort() override {
    {
      const std::lock_guard lock(mutex_);
      is_aborted_ = true;
    }
    aborted_.notify_all();
    gloo_->abort();
    // NCCL frees memory, for which CUDA waits for the whole device.
    OperationsUnderway& underway = OperationsUnderway::instance();
    underway.change([this](auto& operations) { operations.erase(this); });
    std::unique_lock lock(underway.mutex);
    underway.changed.wait(lock, [&] {
      return std::ranges::all_of(underway.operations, [](const auto& of_group) { return of_group.second == 0; });
    });
  }

  Work send(Tensors& tensors, int to, int) override {
    return add(with(to), [this, to, own = on_device(tensors.at(0))] {
      Tensors message{own}, receipt{at::empty({1}, at::kByte)};
      gloo_->send(message, to, kMessage)->wait();
      gloo_->recv(receipt, to, kReceived)->wait();
    });
  }
  Work recv(Tensors& tensors, int from, int) override {
    return add(with(from), [this, from, own = on_device(tensors.at(0))] {
      Tensors message{own}, receipt{at::zeros({1}, at::kByte)};
      gloo_->recv(message, from, kMessage)->wait();
      gloo_->send(receipt, from, kReceived)->wait();
    });
  }
  Work allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return add(collectives_,
               [this, options, own = on_device(tensors)]() mutable { gloo_->allreduce(own, options)->wait(); });
  }
  Work broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return add(collectives_,
               [this, options, own = on_device(tensors)]() mutable { gloo_->broadcast(own, options)->wait(); });
  }
  Work allgather(std::vector<Tensors>& all, Tensors& own, const c10d::AllgatherOptions& options) override {
    return add(collectives_, [this, options, all = on_device(all), own = on_device(own)]() mutable {
      gloo_->allgather(all, own, options)->wait();
    });
  }
  Work reduce_scatter(Tensors& own, std::vector<Tensors>& all, const c10d::ReduceScatterOptions& options) override {
    return add(collectives_, [this, options, all = on_device(all), own = on_device(own)]() mutable {
      gloo_->reduce_scatter(own, all, options)->wait();
    });
  }
  Work barrier(const c10d::BarrierOptions& options) override {
    return add(collectives_, [this, options] { gloo_->barrier(options)->wait(); });
  }

 private:
  Work add(Queue& queue, std::function<void()> body) {
    OperationsUnderway::instance().change([this](auto& operations) { ++operations[this]; });
    return queue.add([this, body = std::move(body)] {
      try {
        body();
      } catch (const std::exception&) {
        std::unique_lock lock(mutex_);
        aborted_.wait(lock, [this] { return is_aborted_; });
      }
      OperationsUnderway::instance().change([this](auto& operations) {
        if (const auto own = operations.find(this); own != operations.end()) --own->second;
      });
    });
  }
  static at::Tensor on_device(const at::Tensor& tensor) {
    TORCH_CHECK(tensor.is_cuda() && tensor.is_contiguous(), "NCCL takes tensors that are contiguous on the device");
    return for_kernels(tensor);
  }
  static Tensors on_device(Tensors tensors) {
    for (at::Tensor& tensor : tensors) tensor = on_device(tensor);
    return tensors;
  }
  static std::vector<Tensors> on_device(std::vector<Tensors> lists) {
    for (Tensors& tensors : lists) tensors = on_device(tensors);
    return lists;
  }
  Queue& with(int other) {
    std::unique_ptr<Queue>& queue = pairs_[other];
    if (!queue) queue = std::make_unique<Queue>();
    return *queue;
  }

  c10::intrusive_ptr<c10d::Backend> gloo_;
  std::mutex mutex_;
  std::condition_variable aborted_;
  bool is_aborted_ = false;
  std::map<int, std::unique_ptr<Queue>> pairs_;  // by the other rank
  Queue collectives_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_fake_nccl_group(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                       int size) {
  return c10::make_intrusive<FakeNcclGroup>(rank, size, make_gloo_group(store, rank, size, "127.0.0.1"));
}

}  // namespace frostpipe::test
