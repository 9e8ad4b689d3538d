#include "executor/communication/tensor_parallel.h"

#include <ATen/ops/zeros.h>

#include <utility>
#include <vector>

#include "executor/communication/group.h"

namespace frostpipe {

TensorParallel::TensorParallel(Group& with_group)
    : group(with_group), slice(slice_of(group.index(), static_cast<int>(group.ranks().size()))) {}

void TensorParallel::sum(at::Tensor tensor) const {
  group.all_reduce_sum({std::move(tensor)}, "sum over the tensor ranks");
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
