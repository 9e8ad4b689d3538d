#include "executor/communication/tensor_parallel.h"

#include <utility>

#include "executor/communication/group.h"

namespace frostpipe {

void TensorParallel::sum(at::Tensor tensor) const {
  group.all_reduce_sum({std::move(tensor)}, "sum over the tensor ranks");
}

}  // namespace frostpipe
