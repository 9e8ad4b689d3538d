#pragma once
#include <filesystem>
#include <string>

#include "serving/serving_profile.h"

namespace frostpipe {

/// Imports a model of PPipe's artifact from its folder: block-timing-tf32/MODEL-GPU-SHARE.csv (a row per block, a
/// column per batch size 1, 2, ..., in microseconds, for all GPUs and shares found) and
/// prepartition_mappings/MODEL/contraction_trans-size_*.csv (a line per cut, bytes of one request over it). Shorter
/// times are raised to one microsecond, as the artifact does; the bytes of weights are unknown (0). Throws InvalidInput
/// that names file and line.
ServingProfile import_ppipe_model(const std::filesystem::path& folder, const std::string& model);

}  // namespace frostpipe
