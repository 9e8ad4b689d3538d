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

/// What NVIDIA's driver says, which is there without CUDA, NCCL and LibTorch.
struct NvidiaDriver {
  std::string fault;     // why it cannot be asked, or why it has no GPU for this process; empty: neither
  int cuda_version = 0;  // the highest that it serves, 13000 is 13.0; 0: there is no driver
  std::vector<Gpu> gpus;
};

/// Loads the driver's library, by name as the system has it.
NvidiaDriver nvidia_driver(const std::string& library = "libcuda.so.1");

/// "13.0" of 13000.
std::string cuda_version_text(int version);

}  // namespace frostpipe
