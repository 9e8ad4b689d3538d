#pragma once
#include <filesystem>

#include "executor/execute.h"

namespace frostpipe {

struct LargestFile {
  std::filesystem::path path;  // path of the file, or of the folder that will have it
  Bytes bytes = 0;             // size of the tensors, without the file's header
};

/// Returns an estimate from above of the largest file that training writes. The saved model counts as one file with all
/// parameters in float32, although it may be divided into several files and have another dtype (options.save_dtype). A
/// checkpoint has a file per layer, with the optimizer's moments, and with a second version of the weights if a phase
/// trains the layer with delayed updates.
LargestFile largest_file(const TrainOptions& options, const Model& model);

}  // namespace frostpipe
