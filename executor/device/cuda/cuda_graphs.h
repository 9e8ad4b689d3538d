#pragma once
#include <c10/cuda/CUDAStream.h>

#include <memory>

#include "executor/device/device.h"

namespace frostpipe {

/// Makes graphs that are captured on `stream`. Use one stream per process: cuBLAS keeps a workspace for each.
std::unique_ptr<DeviceGraphs> make_cuda_graphs(const c10::cuda::CUDAStream& stream);

}  // namespace frostpipe
