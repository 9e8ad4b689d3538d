#include "executor/communication/tensor_parallel.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "executor/communication/group.h"
#include "executor/device/to_device.h"

namespace frostpipe {

void TensorParallel::sum(at::Tensor tensor) const {
  group.all_reduce_sum({std::move(tensor)}, "sum over the tensor ranks");
}

std::vector<double> TensorParallel::sum(std::vector<double> values) const {
  const at::Tensor sums = to_device(at::tensor(values, at::kDouble), device);
  sum(sums);
  const at::Tensor host = sums.to(at::kCPU);
  return {host.data_ptr<double>(), host.data_ptr<double>() + host.numel()};
}

at::Tensor TensorParallel::gather(const at::Tensor& own) const {
  std::vector<std::int64_t> sizes = own.sizes().vec();
  sizes.insert(sizes.begin(), slice.of);
  at::Tensor all = at::zeros(sizes, own.options());
  all.select(0, slice.begin).copy_(own);
  sum(all);
  return all;
}

}  // namespace frostpipe
