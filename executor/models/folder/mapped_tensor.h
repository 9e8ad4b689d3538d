#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "executor/models/folder/weight_files.h"

namespace frostpipe {

/// Returns the type of a safetensors dtype. Throws InvalidInput that names `place` for others than F32, F64, BF16, F16
/// and I64.
at::ScalarType scalar_type(const std::string& dtype, const std::string& place);

/// Returns a tensor as a view of the mapped file. It must not be changed, and must not outlive `files`. Throws
/// InvalidInput that names the file if there is no such tensor, or it has another shape, or a dtype other than F32,
/// F64, BF16, F16 or I64.
at::Tensor mapped_tensor(const WeightFiles& files, const std::string& name, const std::vector<std::int64_t>& shape);

}  // namespace frostpipe
