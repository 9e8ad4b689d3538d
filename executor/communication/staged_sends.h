#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>
#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <future>
#include <memory>

namespace c10d {
class Work;
}  // namespace c10d

namespace frostpipe {

/// Sends GPU tensors through host memory without blocking the GPU or the host: the GPU copies on a separate stream, and
/// a thread sends the copies in the order of the calls.
class StagedSends {
 public:
  using Work = c10::intrusive_ptr<c10d::Work>;
  explicit StagedSends(const at::Device& device);
  /// Waits until `send` has been called for every tensor.
  ~StagedSends();
  StagedSends(const StagedSends&) = delete;
  StagedSends& operator=(const StagedSends&) = delete;

  /// Copies `tensor` to host memory, after all work issued so far on the current stream, and calls `send` with the
  /// copy. The future holds what `send` returns or throws. The tensor must not change until the future is ready.
  std::future<Work> send(const at::Tensor& tensor, std::function<Work(const at::Tensor& copy)> send);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace frostpipe
