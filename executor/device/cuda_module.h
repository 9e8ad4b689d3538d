#pragma once
#include <filesystem>

namespace frostpipe {

/// libfrostpipe_cuda.so beside this program, whether it is there or not.
std::filesystem::path cuda_module();

/// Loads it, and with it LibTorch's CUDA libraries: the handle for dlsym. Throws RuntimeFailure if it is not there (a
/// build without CUDA), or if they are not complete.
void* load_cuda_module();

}  // namespace frostpipe
