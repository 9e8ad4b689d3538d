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
  /// The next pass is the first one.
  void clear() { *this = {}; }
  /// The next pass is a further one, and copies nothing.
  void rewind();
  /// While it lives, and on this thread, to_device() keeps what it copies in a first pass, and returns that, in its
  /// order, in a further one.
  class Pass {
   public:
    explicit Pass(DeviceCopies& copies);
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
  };

 private:
  friend at::Tensor to_device(const at::Tensor& host, const at::Device& device);
  const at::Tensor& next(const at::Tensor& host);
  bool is_first_ = true;
  std::vector<at::Tensor> tensors_;
  std::size_t next_ = 0;  // in a further pass
};

/// A copy of the device's tensor for the host, which is whole when the device has been synchronized; itself on the CPU.
at::Tensor to_host_later(const at::Tensor& tensor);

}  // namespace frostpipe
