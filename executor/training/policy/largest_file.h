#pragma once
#include <filesystem>

#include "executor/execute.h"

namespace frostpipe {

struct LargestFile {
  std::filesystem::path path;  // path of the file, or of the folder that will have it
  Bytes bytes = 0;             // size of the tensors, without the file's header
};

/// Returns an estimate from above of the largest file that training writes. The saved model is one file, or if it is
/// larger than kMaxBytesOfWeightsFile several of at most that size, or of one tensor, which counts as large as its
/// layer. A checkpoint has a file per layer in float32, with the optimizer's moments, and with a second version of the
/// weights if a phase trains the layer with delayed updates.
LargestFile largest_file(const TrainOptions& options, const Model& model);

}  // namespace frostpipe
