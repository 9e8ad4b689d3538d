#pragma once
#include <string>
#include <vector>

#include "base/units.h"

namespace frostpipe {

struct Gpu {
  std::string name;
  Bytes memory = 0;
  int compute_capability = 0;  // 90 is 9.0

  bool operator==(const Gpu&) const = default;
};

/// Information from NVIDIA's driver, which needs neither CUDA nor NCCL nor LibTorch.
struct NvidiaDriver {
  std::string fault;     // why the driver cannot be queried or has no GPU for this process; "" if neither
  int cuda_version = 0;  // highest CUDA version that it supports, 13000 is 13.0; 0: there is no driver
  std::vector<Gpu> gpus;
};

/// Loads the driver's library by its name, which the dynamic linker searches for, and asks it.
NvidiaDriver nvidia_driver(const std::string& library = "libcuda.so.1");

/// Returns "13.0" for 13000.
std::string cuda_version_text(int version);

}  // namespace frostpipe
