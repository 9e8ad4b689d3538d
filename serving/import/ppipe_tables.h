#pragma once
#include <filesystem>
#include <string>

#include "serving/serving_profile.h"

namespace frostpipe {

/// A model of PPipe's artifact, from its folder: block-timing-tf32/MODEL-GPU-SHARE.csv (a row per block, a column per
/// batch size 1, 2, ..., microseconds; GPUs and shares as found) and
/// prepartition_mappings/MODEL/contraction_trans-size_*.csv (bytes of one request over each cut, a line each). Times
/// are at least a microsecond, as there; weights are not known. Throws InvalidInput that names file and line.
ServingProfile import_ppipe_model(const std::filesystem::path& folder, const std::string& model);

}  // namespace frostpipe
