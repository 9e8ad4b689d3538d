#include "executor/models/folder/mapped_tensor.h"

#include <ATen/ops/from_blob.h>

#include "base/error.h"

namespace frostpipe {

at::ScalarType scalar_type(const std::string& dtype, const std::string& place) {
  if (dtype == "F32") return at::kFloat;
  if (dtype == "F64") return at::kDouble;
  if (dtype == "BF16") return at::kBFloat16;
  if (dtype == "F16") return at::kHalf;
  if (dtype == "I64") return at::kLong;
  throw InvalidInput(place, "must have dtype F32, F64, BF16, F16 or I64", dtype);
}

at::Tensor mapped_tensor(const WeightFiles& files, const std::string& name, const std::vector<std::int64_t>& shape) {
  const StoredTensor& tensor = files.tensor(name, shape);
  return at::from_blob(const_cast<std::byte*>(tensor.data.data()), shape,
                       scalar_type(tensor.dtype, files.place_of(name)));
}

}  // namespace frostpipe
