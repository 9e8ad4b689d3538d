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

/// Sends tensors of a GPU through host memory, beside what GPU and host do meanwhile: the GPU copies on a stream of its
/// own, and a thread sends what has come, in the order of calls.
class StagedSends {
 public:
  using Work = c10::intrusive_ptr<c10d::Work>;
  explicit StagedSends(const at::Device& device);
  /// Ends when everything has been handed on.
  ~StagedSends();
  StagedSends(const StagedSends&) = delete;
  StagedSends& operator=(const StagedSends&) = delete;

  /// What `send` of the copy in host memory returns, or throws, when it has been called. Until then the tensor must not
  /// change; it is what has been issued before on the current stream that makes it.
  std::future<Work> send(const at::Tensor& tensor, std::function<Work(const at::Tensor& copy)> send);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace frostpipe
