#pragma once
#include <filesystem>

#include "executor/execute.h"

namespace frostpipe {

struct LargestFile {
  std::filesystem::path path;  // path of the file, or of the folder that will have it
  Bytes bytes = 0;             // size without the header
};

/// Returns the largest file that training writes, as far as its size is known in advance. The saved model has all
/// parameters once, in float32. A checkpoint has a file per layer, with the optimizer's moments, and with a second
/// version of the weights if a phase trains the layer with delayed updates.
LargestFile largest_file(const TrainOptions& options, const Model& model);

}  // namespace frostpipe
