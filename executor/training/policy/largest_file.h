#pragma once
#include <filesystem>

#include "executor/execute.h"

namespace frostpipe {

struct LargestFile {
  std::filesystem::path path;  // of the file, or of the folder in which it will be
  Bytes bytes = 0;             // without its header
};

/// What training writes, as far as its size is known before. The saved model has all parameters once, in float32. A
/// checkpoint has each layer in a file of its own: with the optimizer's moments, and once more where a phase that
/// trains it delays its updates.
LargestFile largest_file(const TrainOptions& options, const Model& model);

}  // namespace frostpipe
