#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "executor/models/folder/weight_files.h"

namespace frostpipe {

/// A tensor as the files have it, not copied: it must not be changed, nor outlive them. Throws InvalidInput that names
/// the file if there is none of that name, or it has another shape or a dtype that is not F32, F64, BF16, F16 or I64.
at::Tensor mapped_tensor(const WeightFiles& files, const std::string& name, const std::vector<std::int64_t>& shape);

}  // namespace frostpipe
