#pragma once
#include <string>

namespace frostpipe {

/// What LibTorch says of itself where it is loaded.
struct LibTorchFacts {
  std::string folder;            // with lib/libtorch_cpu.so, from where it was loaded
  std::string cpu_instructions;  // that its kernels use here: "AVX512"
  bool prefers_onednn = false;   // to its own products of float32 matrices, on this processor
  std::string onednn;            // the file of that library; empty: none is used
  bool has_cuda_module = false;  // this frostpipe was built with CUDA
  std::string cuda_fault;        // why there is no --device cuda here; empty: there is
  int cuda_version = 0;          // of CUDA's runtime, 13000 is 13.0; 0: it cannot be loaded
  int nccl_version = 0;          // 22809 is 2.28.9; 0: it cannot be loaded
  int num_gpus = 0;              // that the runtime can use

  bool operator==(const LibTorchFacts&) const = default;
};

/// Loads CUDA's libraries, if they are there. Throws RuntimeFailure in a program without LibTorch.
LibTorchFacts libtorch_facts();

}  // namespace frostpipe
