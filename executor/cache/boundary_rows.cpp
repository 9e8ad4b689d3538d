#include "executor/cache/boundary_rows.h"

#include <ATen/ops/empty.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "executor/device/to_device.h"

namespace frostpipe {

void BoundaryRows::take(const at::Tensor& activation, const MicroBatch& batch, bool is_last) {
  is_whole = is_last;
  if (!batch.sliced) {
    rows = activation;
    return;
  }
  const std::vector<std::int64_t>& lengths = batch.sliced->lengths;
  if (!rows.defined())
    rows = at::empty({std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), activation.size(1)},
                     activation.options());
  rows.index_copy_(0, to_device(rows_of_slice(lengths, batch.sliced->tokens), activation.device()), activation);
}

}  // namespace frostpipe
