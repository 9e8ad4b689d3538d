#include "executor/communication/staged_sends.h"

#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

namespace frostpipe {

namespace {

/// Returns the one stream for all sends of the process, which has one device. LibTorch hands out its few streams in
/// turn, so another send could get a stream on which a graph is being captured.
c10::Stream stream_of(const c10::impl::VirtualGuardImpl& gpu, const at::Device& device) {
  static const c10::Stream stream = gpu.getStreamFromGlobalPool(device);
  return stream;
}

}  // namespace

struct StagedSends::State {
  struct Copying {
    at::Tensor from, copy;
    c10::Event there;
    std::function<Work(const at::Tensor&)> send;
    std::promise<Work> sent;
  };

  c10::impl::VirtualGuardImpl gpu;
  c10::Stream stream;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Copying> waiting;
  bool ends = false;
  std::thread thread;

  explicit State(const at::Device& device)
      : gpu(device.type()), stream(stream_of(gpu, device)), thread([this, device] { serve(device); }) {}

  void serve(const at::Device& device) {
    gpu.setDevice(device);  // else waiting for an event would set up CUDA on the first GPU, too
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return ends || !waiting.empty(); });
      if (waiting.empty()) return;
      Copying next = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      try {
        next.there.synchronize();
        next.from = at::Tensor();  // before the caller can learn that it is no longer needed
        next.sent.set_value(next.send(next.copy));
      } catch (...) {
        next.sent.set_exception(std::current_exception());
      }
      lock.lock();
    }
  }
};

StagedSends::StagedSends(const at::Device& device) : state_(std::make_unique<State>(device)) {}

StagedSends::~StagedSends() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ends = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

std::future<StagedSends::Work> StagedSends::send(const at::Tensor& tensor,
                                                 std::function<Work(const at::Tensor& copy)> send) {
  State::Copying copying{.from = tensor.contiguous(),
                         .copy = at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(true)),
                         .there = c10::Event(state_->gpu.type()),
                         .send = std::move(send),
                         .sent = {}};
  c10::Event made(state_->gpu.type());
  made.record(state_->gpu.getStream(tensor.device()));
  made.block(state_->stream);
  {
    const c10::StreamGuard on_stream(state_->stream);
    copying.copy.copy_(copying.from, /*non_blocking=*/true);
  }
  copying.there.record(state_->stream);
  std::future<Work> sent = copying.sent.get_future();
  {
    const std::lock_guard lock(state_->mutex);
    state_->waiting.push_back(std::move(copying));
  }
  state_->changed.notify_all();
  return sent;
}

}  // namespace frostpipe
