#pragma once
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

namespace frostpipe {

/// A tensor of the host on the device, for which the host does not wait: through page-locked memory on CUDA; itself on
/// the CPU.
at::Tensor to_device(const at::Tensor& host, const at::Device& device);

/// What to_device() has copied to a device in one pass through some work, for further passes with the same values.
class DeviceCopies {
 public:
  void clear() { tensors_.clear(); }
  /// Another pass begins.
  void rewind() { next_ = 0; }
  /// While it lives, and on this thread, to_device() keeps what it copies.
  class Keep {
   public:
    explicit Keep(DeviceCopies& copies);
    ~Keep();
    Keep(const Keep&) = delete;
    Keep& operator=(const Keep&) = delete;
  };
  /// While it lives, and on this thread, to_device() copies nothing, and returns what was kept, in its order.
  class Reuse {
   public:
    explicit Reuse(DeviceCopies& copies);
    ~Reuse();
    Reuse(const Reuse&) = delete;
    Reuse& operator=(const Reuse&) = delete;
  };

 private:
  friend at::Tensor to_device(const at::Tensor& host, const at::Device& device);
  std::vector<at::Tensor> tensors_;
  std::size_t next_ = 0;  // to be reused
};

/// A copy of the device's tensor for the host, which is whole when the device has been synchronized; itself on the CPU.
at::Tensor to_host_later(const at::Tensor& tensor);

}  // namespace frostpipe
