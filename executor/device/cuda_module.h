#pragma once
#include <filesystem>

namespace frostpipe {

/// Returns the path of libfrostpipe_cuda.so beside this program, even if the file does not exist.
std::filesystem::path cuda_module();

/// Loads that library, and with it LibTorch's CUDA libraries, and returns the handle for dlsym(). Throws RuntimeFailure
/// if the file is missing (a build without CUDA) or if one of the CUDA libraries is.
void* load_cuda_module();

}  // namespace frostpipe
