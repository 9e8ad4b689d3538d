#include "executor/device/cuda_module.h"

#include <dlfcn.h>

#include <string>

#include "base/error.h"

namespace frostpipe {

std::filesystem::path cuda_module() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libfrostpipe_cuda.so";
}

void* load_cuda_module() {
  const std::filesystem::path module = cuda_module();
  if (!std::filesystem::exists(module)) {
    throw RuntimeFailure(
        "device cuda: " + module.string() +
        " does not exist: this frostpipe was built without CUDA. Build it where a CUDA toolkit with NCCL is "
        "installed, or use --device cpu.");
  }
  void* const handle = dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!handle) {
    throw RuntimeFailure(std::string("device cuda: ") + dlerror() +
                         ": LibTorch's CUDA libraries are not complete here. Install torch==2.11.0 with its "
                         "dependencies, or use --device cpu.");
  }
  return handle;
}

}  // namespace frostpipe
