#pragma once
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

namespace frostpipe {

/// Copies a host tensor to the device without making the host wait, through page-locked memory on CUDA. Returns the
/// tensor itself on the CPU.
at::Tensor to_device(const at::Tensor& host, const at::Device& device);

/// Keeps the results of to_device() from a first pass through some work, for further passes with the same values.
class DeviceCopies {
 public:
  /// Makes the next pass a first one.
  void clear() { *this = {}; }
  /// Makes the next pass a further one, which copies nothing.
  void rewind();
  /// While one lives, to_device() on this thread records its results in a first pass, and returns the recorded tensors
  /// in the same order in a further pass.
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

/// Starts a copy of the device's tensor to the host, which is complete once the device has been synchronized. Returns
/// the tensor itself on the CPU.
at::Tensor to_host_later(const at::Tensor& tensor);

}  // namespace frostpipe
