#pragma once
#include <string>

namespace frostpipe {

/// Properties of the LibTorch that this program has loaded.
struct LibTorchFacts {
  std::string folder;            // the folder with lib/libtorch_cpu.so from which it was loaded
  std::string cpu_instructions;  // instruction set of its kernels on this processor: "AVX512"
  bool prefers_onednn = false;   // oneDNN is preferred to LibTorch's own float32 matrix products
  std::string onednn;            // file of that library; "" if it is not used
  bool has_cuda_module = false;  // this build has CUDA support
  std::string cuda_fault;        // why --device cuda is not available; "" if it is
  int cuda_version = 0;          // version of CUDA's runtime, 13000 is 13.0; 0: it cannot be loaded
  int nccl_version = 0;          // 22809 is 2.28.9; 0: it cannot be loaded
  int num_gpus = 0;              // GPUs that the runtime can use

  bool operator==(const LibTorchFacts&) const = default;
};

/// Loads the CUDA libraries, if they exist. Throws RuntimeFailure in a program without LibTorch.
LibTorchFacts libtorch_facts();

}  // namespace frostpipe
